"""Intervals of dates and codes, and cells that may have been empty: what Mondrian publishes, the verifier accepts and a recipient can read."""

from __future__ import annotations

import datetime as dt
import re

import numpy as np
import pyarrow as pa
import pytest

from reticent import anonymize, read, verify
from reticent.engine.table.cuts import MISSING_SUFFIX, Cuts
from reticent.policy import Policy

ROWS = 400


def policy(**columns):
    roles = columns | {"ill": "sensitive"}
    return Policy.from_dict(
        {
            "version": 1,
            "columns": roles,
            "privacy": {"k": 5, "l": 2},
            "table": {"method": "mondrian", "sets": True},
        }
    )


def cells(release, name):
    return set(release.tables["data"][name].to_pylist())


def table(**columns):
    rng = np.random.default_rng(3)
    return pa.table(columns | {"ill": rng.choice(["a", "b", "c"], ROWS).tolist()})


def moments(rng):
    start = dt.datetime(2023, 1, 1, 8)  # noqa: DTZ001 - a hospital writes local time
    return [str(start + dt.timedelta(minutes=int(m))) for m in rng.integers(0, 500_000, ROWS)]


def test_dates_are_published_by_intervals_of_days_and_read_as_such(tmp_path):
    rng = np.random.default_rng(1)
    data = table(seen=moments(rng))
    asked = policy(seen={"role": "quasi", "hierarchy": {"dates": ["day", "month", "year"]}})
    release = anonymize(data, asked, seed=1)
    assert verify(release, asked, original=data).holds
    assert all(re.fullmatch(r"\[2023-\d\d-\d\d, 2023-\d\d-\d\d\]", cell) for cell in cells(release, "seen"))
    release.to_dir(tmp_path / "release")
    spring = read(tmp_path / "release").count(where="seen in 2023-03-01..2023-05-31")
    expected = sum("2023-03-01" <= moment[:10] <= "2023-05-31" for moment in data["seen"].to_pylist())
    assert spring.low <= expected <= spring.high


def test_codes_of_one_length_are_published_by_intervals():
    rng = np.random.default_rng(1)
    data = table(zip=[f"{x:05d}" for x in rng.integers(1000, 99_000, ROWS)])
    asked = policy(zip={"role": "quasi", "hierarchy": {"prefix": 5}})
    release = anonymize(data, asked, seed=1)
    assert verify(release, asked, original=data).holds
    assert all(re.fullmatch(r"\[\d{5}, \d{5}\]", cell) for cell in cells(release, "zip"))


@pytest.fixture
def gaps():
    """Numbers and words, one in ten of them missing."""
    rng = np.random.default_rng(2)
    empty = rng.random((2, ROWS)) < 0.1
    age = [None if gone else int(x) for gone, x in zip(empty[0], rng.integers(18, 90, ROWS), strict=True)]
    town = [None if gone else str(x) for gone, x in zip(empty[1], rng.choice([*"ABCDEFGH"], ROWS), strict=True)]
    return table(age=age, town=town)


AGES = {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20, 40]}}


def test_a_missing_cell_does_not_suppress_its_class(gaps):
    asked = policy(age=AGES, town="quasi")
    release = anonymize(gaps, asked, seed=1)
    assert verify(release, asked, original=gaps).holds
    assert any(str(cell).endswith(MISSING_SUFFIX) for cell in cells(release, "age"))
    for name in ("age", "town"):
        hidden = release.tables["data"][name].to_pylist().count("*")
        assert hidden < ROWS / 4


def test_a_missing_cell_that_its_label_does_not_admit_is_refuted(gaps):
    from dataclasses import replace

    asked = policy(age=AGES, town="quasi")
    release = anonymize(gaps, asked, seed=1)
    data = release.tables["data"]
    cut = [cell and cell.removesuffix(MISSING_SUFFIX) for cell in data["age"].to_pylist()]
    lie = replace(release, tables={"data": data.set_column(data.column_names.index("age"), "age", pa.array(cut))})
    assert not verify(lie, asked, original=gaps).holds


def test_a_recipient_counts_what_may_be_missing_as_perhaps(gaps, tmp_path):
    anonymize(gaps, policy(age=AGES, town="quasi"), seed=1).to_dir(tmp_path / "release")
    received = read(tmp_path / "release")
    old = sum(age is not None and age >= 60 for age in gaps["age"].to_pylist())
    answer = received.count(where="age>=60")
    assert answer.low <= old <= answer.high


@pytest.mark.parametrize("numeric", [True, False])
def test_chances_and_masses_are_those_of_the_published_cells(numeric):
    rng = np.random.default_rng(5)
    values = [None, "1", "2", "3", "4", "5"]
    ranks = rng.integers(0, 6, 60).astype(np.int32)
    classes = np.sort(rng.integers(0, 12, 60))
    classes = np.unique(classes, return_inverse=True)[1].astype(np.int64)
    order = np.array([3, 0, 5, 1, 2, 4])
    cuts = Cuts(values, ranks, np.linspace(0, 1, 6), classes, numeric, 6, order)
    labels = cuts.labels(np.arange(60)).to_pylist()
    stands = [{order[i] for i, value in enumerate(values) if held(label, value)} for label in labels]
    asked = rng.random(6)
    expected = [np.mean([asked[code] for code in codes]) for codes in stands]
    assert cuts.match_share(asked) == pytest.approx(expected)
    weights = rng.random(60)
    mass = np.zeros(6)
    for weight, codes in zip(weights, stands, strict=True):
        for code in codes:
            mass[code] += weight / len(codes)
    assert cuts.mass(weights) == pytest.approx(mass)
    assert (cuts.exact_rows() == [len(codes) == 1 for codes in stands]).all()
    assert cuts.recoding_of(np.arange(60)).share == pytest.approx([len(codes) / 6 for codes in stands])


def held(label, value):
    if label == "*":
        return True
    if label is None or value is None:
        return value is None and (label is None or label.endswith(MISSING_SUFFIX))
    inner = label.removesuffix(MISSING_SUFFIX)
    if inner.startswith("["):
        low, high = inner[1:-1].split(", ")
        return low <= value <= high
    return value in inner.strip("{}").split(", ")
