from __future__ import annotations

import datetime as dt
import json
import sqlite3
from collections import Counter, defaultdict
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from reticent.datasets import codes, fhir, files, hospital, omop, visits
from reticent.datasets.codes import CHAPTER_OF, CODES
from reticent.errors import PolicyError
from reticent.policy import Policy

CHRONIC = dict(zip(CODES, codes.codes_in(codes.CHRONIC).tolist(), strict=True))
CHAPTER = dict(zip(CODES, CHAPTER_OF, strict=True))


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return visits.generate(60_000, seed=3, mean=3)


@pytest.fixture(scope="module")
def persons(table) -> dict[str, list[dict]]:
    """The visits of each person, as they stand."""
    rows: dict[str, list[dict]] = defaultdict(list)
    for row in table.to_pylist():
        rows[row["patient_id"]].append(row)
    return rows


def test_sixty_thousand_visits_of_twenty_thousand_persons(persons):
    assert len(persons) == 20_000
    counts = Counter(len(rows) for rows in persons.values())
    assert counts[1] > 3_000, "many come once"
    assert max(counts) > 8


@pytest.mark.parametrize("mean", [1, 1.5, 7.3, 50])
def test_any_mean_can_be_had(mean):
    ids = visits.generate(40_000, seed=1, mean=mean)["patient_id"]
    assert 40_000 / len(pc.unique(ids)) == pytest.approx(mean, rel=0.01)


@pytest.mark.parametrize("mean", [0, 0.9, 51])
def test_other_means_are_refused(mean):
    with pytest.raises(PolicyError, match="visits"):
        visits.generate(10, mean=mean)


def test_persons_stay_themselves(persons):
    for rows in persons.values():
        for name in ("name", "birth_date", "sex", "region", "postcode"):
            assert len({row[name] for row in rows}) == 1


def test_visits_are_numbered_in_the_order_of_time_and_do_not_overlap(persons):
    for rows in persons.values():
        assert [row["visit"] for row in rows] == list(range(1, len(rows) + 1))
        assert rows[0]["birth_date"] <= rows[0]["admission_date"]
        for one, other in pairwise(rows):
            assert one["admission_date"] + dt.timedelta(one["length_of_stay"]) <= other["admission_date"]


def test_the_chronically_ill_come_more_often_and_with_the_same(persons):
    steps = [(a["diagnosis"], b["diagnosis"]) for rows in persons.values() for a, b in pairwise(rows)]
    chronic = [old == new for old, new in steps if CHRONIC[old]]
    acute = [old == new for old, new in steps if not CHRONIC[old]]
    assert np.mean(chronic) > max(0.35, 2 * np.mean(acute))
    frequent = [rows for rows in persons.values() if len(rows) > 5]
    rare = [rows for rows in persons.values() if len(rows) == 1]
    assert ill(frequent) > 1.5 * ill(rare)


def ill(persons: list[list[dict]]) -> float:
    """The share of persons who have a chronic illness at their first visit."""
    return float(np.mean([CHRONIC[rows[0]["diagnosis"]] for rows in persons]))


def test_half_of_the_changes_stay_in_the_chapter(persons):
    steps = [(a["diagnosis"], b["diagnosis"]) for rows in persons.values() for a, b in pairwise(rows)]
    changes = [CHAPTER[old] == CHAPTER[new] for old, new in steps if old != new]
    assert 0.4 < np.mean(changes) < 0.6


def test_what_cannot_be_never_is(persons):
    possible = {
        (low, sex): hospital.true_shares(low, sex) > 0 for low in hospital.BANDS[:-1] for sex in ("female", "male")
    }
    place = {code: index for index, code in enumerate(CODES)}
    for rows in persons.values():
        values = [row["diagnosis"] for row in rows]
        for row in rows:
            age = years(row["birth_date"], row["admission_date"])
            band = max(low for low in hospital.BANDS if low <= age)
            assert possible[band, row["sex"]][place[row["diagnosis"]]]
        for code in ("O80", "K35", "Z38", "R95"):
            assert values.count(code) <= 1
        assert "Z38" not in values[1:]
        assert "R95" not in values[:-1]
        assert "birth" not in [row["admission_route"] for row in rows[1:]]


def years(born: dt.date, day: dt.date) -> int:
    """The age in full years."""
    return day.year - born.year - ((day.month, day.day) < (born.month, born.day))


def test_rows_do_not_depend_on_the_chunking_nor_on_the_length(table):
    parts = pa.concat_tables(visits.batches(60_000, 3, 7_777, mean=3)).combine_chunks()
    assert parts.equals(table)
    assert visits.generate(1_000, seed=3, mean=3).equals(table.slice(0, 1_000).combine_chunks())
    assert not visits.generate(1_000, seed=4, mean=3).equals(table.slice(0, 1_000).combine_chunks())


def test_hospital_with_visits_is_written_with_its_policy(tmp_path):
    path, written = files.write_hospital(tmp_path / "a.csv", 300, seed=1, visits=3)
    policy = Policy.load(written)
    names = path.read_text().splitlines()[0].split(",")
    assert list(policy.columns) == names
    assert policy.columns["visit"].role == "quasi"
    text = written.read_text()
    assert "evolving:" not in text
    assert "several per person" in text
    assert "ten persons" not in text, "visits are counted, not persons"


def test_fhir_patients_have_several_encounters(tmp_path):
    fhir.write_fhir(tmp_path, 3_000, seed=1, visits=3)

    def resources(kind: str) -> list[dict]:
        return [json.loads(line) for line in (tmp_path / f"{kind}.ndjson").read_text().splitlines()]

    patients, encounters = resources("Patient"), resources("Encounter")
    assert len(encounters) == len({one["id"] for one in encounters}) == 3_000
    assert len(patients) == len({one["id"] for one in patients}) == 1_000
    assert {one["subject"]["reference"] for one in encounters} == {f"Patient/{one['id']}" for one in patients}
    subjects = {one["id"]: one["subject"]["reference"] for one in encounters}
    for condition in resources("Condition"):
        encounter = condition["encounter"]["reference"].removeprefix("Encounter/")
        assert subjects[encounter] == condition["subject"]["reference"]


def test_omop_persons_have_several_visits(tmp_path):
    omop.write_omop(tmp_path / "a.db", 60_000, seed=1, visits=3)
    base = sqlite3.connect(tmp_path / "a.db")
    numbers = [
        base.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]  # noqa: S608 - our own names
        for table in ("person", "visit_occurrence", "condition_occurrence")
    ]
    assert numbers == [20_000, 60_000, 60_000]
    query = """SELECT p.person_source_value FROM condition_occurrence c
        JOIN visit_occurrence v USING (visit_occurrence_id) JOIN person p ON p.person_id = v.person_id
        WHERE c.person_id = v.person_id ORDER BY visit_occurrence_id"""
    expected = visits.generate(60_000, seed=1, mean=3)["patient_id"].to_pylist()
    assert [row[0] for row in base.execute(query)] == expected
    base.close()
