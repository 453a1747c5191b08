"""Bounds of generalized releases hold for every form of a cell, as published: sets, intervals of codes and days, fractions, missing cells."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

import reticent
from reticent.policy import Policy

ILLS = np.array(["asthma", "cancer", "flu", "gout", "stroke"])
WARDS = np.array(["birth", "eye", "inner", "surgery"])
COLUMNS = {
    "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20, 40]}},
    "bmi": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}},
    "seen": {"role": "quasi", "hierarchy": {"dates": ["month", "quarter", "year"]}},
    "code": {"role": "quasi", "hierarchy": {"prefix": 5}},
    "ward": "quasi",
    "smokes": "quasi",
    "ill": "sensitive",
}


@pytest.fixture(scope="module")
def people():
    rng, n = np.random.default_rng(1), 1500
    age = rng.integers(0, 100, n)
    days = [dt.date(2020, 1, 1) + dt.timedelta(days=int(day)) for day in rng.integers(0, 1400, n)]
    ward = [None if rng.random() < 0.05 else str(cell) for cell in rng.choice(WARDS, n)]
    bmi = [None if rng.random() < 0.05 else round(float(x), 1) for x in rng.normal(26, 4, n)]
    ills = ILLS[np.minimum((age + rng.integers(0, 60, n)) // 32, 4)]
    codes = [f"{code:05d}" for code in (rng.zipf(1.4, n) * 137) % 30000]
    cells = {"age": age, "bmi": bmi, "seen": days, "code": codes, "ward": ward, "smokes": rng.random(n) < 0.3}
    return pa.table(cells | {"ill": ills})


QUESTIONS = {
    "age>=60": lambda row: row["age"] >= 60,
    "age in 20..39": lambda row: 20 <= row["age"] <= 39,
    "bmi<=24": lambda row: row["bmi"] is not None and row["bmi"] <= 24,
    "bmi>24": lambda row: row["bmi"] is not None and row["bmi"] > 24,
    "seen>=2022-03": lambda row: row["seen"] >= dt.date(2022, 3, 1),
    "seen=2021": lambda row: row["seen"].year == 2021,
    "code=00*": lambda row: row["code"].startswith("00"),
    "code=00137": lambda row: row["code"] == "00137",
    "code>=01000": lambda row: row["code"] >= "01000",
    "ward=eye": lambda row: row["ward"] == "eye",
    "ward!=eye": lambda row: row["ward"] not in ("eye", None),
    "ward in eye, inner": lambda row: row["ward"] in ("eye", "inner"),
    "smokes=true": lambda row: row["smokes"],
}


@pytest.mark.parametrize("format_", ["csv", "parquet"])
@pytest.mark.parametrize(
    "method", [{"method": "optimal"}, {"method": "local"}, {"method": "mondrian"}, {"method": "mondrian", "sets": True}]
)
def test_counts_and_shares_lie_between_their_bounds(people, method, format_, tmp_path):
    rules = {"version": 1, "columns": COLUMNS, "privacy": {"k": 4, "l": 2, "suppression": 0.05}, "table": method}
    release = reticent.anonymize(people, Policy.from_dict(rules), seed=1)
    received = reticent.read(release.to_dir(tmp_path / "release", format=format_))
    rows = people.to_pylist()
    for text, holds in QUESTIONS.items():
        inside = [row["ill"] for row in rows if holds(row)]
        counts, shares = (ask(where=text, by="ill").to_list() for ask in (received.count, received.share))
        for count, share in zip(counts, shares, strict=True):
            exact = inside.count(count["ill"])
            assert count["low"] <= exact <= count["high"], (text, count["ill"])
            assert share["low"] - 1e-9 <= exact / len(inside) <= share["high"] + 1e-9, (text, share["ill"])
            assert count["low"] <= count["estimate"] <= count["high"]
