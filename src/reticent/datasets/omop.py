"""The hospital as an OMOP common data model in SQLite: person, visit_occurrence, condition_occurrence, location, concept."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

from reticent.datasets import hospital, people
from reticent.datasets.policies import policy_yaml
from reticent.datasets.writers import write_text
from reticent.errors import ConnectorError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TABLES = {
    "concept": "concept_id INTEGER PRIMARY KEY, concept_name VARCHAR(255)",
    "location": "location_id INTEGER PRIMARY KEY, state VARCHAR(64), zip VARCHAR(9)",
    "person": "person_id INTEGER PRIMARY KEY, gender_concept_id INTEGER, year_of_birth INTEGER, month_of_birth INTEGER,"
    " day_of_birth INTEGER, location_id INTEGER, person_source_value VARCHAR(50)",
    "visit_occurrence": "visit_occurrence_id INTEGER PRIMARY KEY, person_id INTEGER, visit_concept_id INTEGER,"
    " visit_start_date DATE, visit_end_date DATE",
    "condition_occurrence": "condition_occurrence_id INTEGER PRIMARY KEY, person_id INTEGER, visit_occurrence_id INTEGER,"
    " condition_concept_id INTEGER, condition_start_date DATE, condition_source_value VARCHAR(50)",
}
"""Columns of each table: those of the common data model that a release may need."""

INDEX = "CREATE INDEX condition_of_visit ON condition_occurrence (visit_occurrence_id)"
_GENDER = {"female": 8532, "male": 8507}
_VISIT = {"emergency": 9203, "outpatient clinic": 9202}


def rows(n: int, seed: int = 0) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of every table for n visits."""
    from datetime import timedelta

    found: dict[str, list[tuple[Any, ...]]] = {table: [] for table in TABLES}
    found["concept"] = [(number, sex.upper()) for sex, number in _GENDER.items()]
    places: dict[tuple[str, str], int] = {}
    at = 0
    for batch in hospital.batches(n, seed):
        for row in batch.to_pylist():
            at += 1
            place = places.setdefault((row["region"], row["postcode"]), len(places) + 1)
            born, start = row["birth_date"], row["admission_date"]
            gender, visit = _GENDER[row["sex"]], _VISIT.get(row["admission_route"], 9201)
            end = start + timedelta(row["length_of_stay"])
            found["person"].append((at, gender, born.year, born.month, born.day, place, row["patient_id"]))
            found["visit_occurrence"].append((at, at, visit, start.isoformat(), end.isoformat()))
            found["condition_occurrence"].append((at, at, at, 0, start.isoformat(), row["diagnosis"]))
    found["location"] = [(number, *place) for place, number in places.items()]
    return found


def write_omop(path: Path, n: int, seed: int = 0, *, on_rows: Callable[[int], None] | None = None) -> tuple[Path, ...]:
    """Writes a SQLite database with n visits and a policy beside it; says which files."""
    assert len(people.SEXES) == len(_GENDER)  # noqa: S101 - a sex without a concept would be lost
    if path.exists():
        raise ConnectorError(f"{path} exists.", hint="Give another file to --output.")
    path.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    with closing(sqlite3.connect(path)) as base, base:
        for table, columns in TABLES.items():
            base.execute(f"CREATE TABLE {table} ({columns})")
        for table, values in rows(n, seed).items():
            marks = ",".join("?" * len(values[0]))
            base.executemany(f"INSERT INTO {table} VALUES ({marks})", values)  # noqa: S608 - our own names
        base.execute(INDEX)
    if on_rows:
        on_rows(n)
    policy = path.with_suffix(".policy.yaml")
    write_text(policy_yaml("omop"), policy)
    return path, policy
