"""The hospital in the OMOP common data model, as SQLite: persons, visits, conditions, locations and concepts."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from itertools import accumulate, compress, islice
from pathlib import Path
from typing import Any

from reticent.connectors.files import atomic_path
from reticent.datasets import courses, people
from reticent.datasets.policies import policy_yaml
from reticent.datasets.visits import admissions
from reticent.datasets.writers import RowCallback, make_folder, write_text
from reticent.errors import ConnectorError

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
"""Columns of each table: the part of the common data model that a release may need."""

COURSES = {
    "drug_exposure": "drug_exposure_id INTEGER PRIMARY KEY, person_id INTEGER, visit_occurrence_id INTEGER,"
    " drug_concept_id INTEGER, drug_exposure_start_date DATE, drug_source_value VARCHAR(50)",
    "procedure_occurrence": "procedure_occurrence_id INTEGER PRIMARY KEY, person_id INTEGER, visit_occurrence_id INTEGER,"
    " procedure_concept_id INTEGER, procedure_date DATE, procedure_source_value VARCHAR(50)",
    "measurement": "measurement_id INTEGER PRIMARY KEY, person_id INTEGER, visit_occurrence_id INTEGER,"
    " measurement_concept_id INTEGER, measurement_date DATE, value_as_number NUMERIC",
    "death": "person_id INTEGER PRIMARY KEY, death_date DATE, cause_concept_id INTEGER",
}
"""Additional tables of a database with courses."""

INDEX = "CREATE INDEX condition_of_visit ON condition_occurrence (visit_occurrence_id)"
_GENDER = {"female": 8532, "male": 8507}
_VISIT = {"emergency": 9203, "outpatient clinic": 9202}


def rows(
    n: int, seed: int = 0, visits: float | None = None, *, further: bool = False
) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
    """Yield the rows for n visits in batches of one table each, so that memory does not depend on n."""
    yield "concept", [(number, sex.upper()) for sex, number in _GENDER.items()]
    places: dict[tuple[str, str], int] = {}
    at = persons = 0
    for batch in admissions(n, seed, 32_768, visits):
        known = len(places)
        cells = courses.move_together(batch.to_pydict(), seed) if further else batch.to_pydict()
        tables = _rows(cells, at, persons, places)
        yield from tables.items()
        if further:
            yield from _courses(cells, tables, seed).items()
        yield "location", [(number, *place) for place, number in islice(places.items(), known, None)]
        at, persons = at + batch.num_rows, persons + len(tables["person"])


def _rows(
    batch: dict[str, list[Any]], at: int, persons: int, places: dict[tuple[str, str], int]
) -> dict[str, list[tuple[Any, ...]]]:
    """Build the rows of one batch after ``at`` visits and ``persons`` persons; the last person may continue here."""
    ids = range(at + 1, at + 1 + len(batch["patient_id"]))
    first = [number == 1 for number in batch.get("visit", [1] * len(ids))]
    who = list(accumulate(first, initial=persons))[1:]
    where = [
        places.setdefault(place, len(places) + 1) for place in zip(batch["region"], batch["postcode"], strict=True)
    ]
    genders = [_GENDER[sex] for sex in batch["sex"]]
    kinds = [_VISIT.get(route, 9201) for route in batch["admission_route"]]
    stays = zip(batch["admission_date"], batch["length_of_stay"], strict=True)
    days = [(start.isoformat(), (start + timedelta(stay)).isoformat()) for start, stay in stays]
    born = [(day.year, day.month, day.day) for day in batch["birth_date"]]
    people = compress(zip(who, genders, born, where, batch["patient_id"], strict=True), first)
    return {
        "person": [(number, gender, *day, place, source) for number, gender, day, place, source in people],
        "visit_occurrence": [
            (number, person, kind, *period) for number, person, kind, period in zip(ids, who, kinds, days, strict=True)
        ],
        "condition_occurrence": [
            (number, person, number, 0, start, code)
            for number, person, (start, _), code in zip(ids, who, days, batch["diagnosis"], strict=True)
        ],
    }


def _courses(
    batch: dict[str, list[Any]], tables: dict[str, list[tuple[Any, ...]]], seed: int
) -> dict[str, list[tuple[Any, ...]]]:
    """Build the rows of the additional tables; keys derive from the visit's key, so that batches do not collide."""
    out: dict[str, list[tuple[Any, ...]]] = {"condition_occurrence": [], **{table: [] for table in COURSES}}
    for visit, course in zip(tables["visit_occurrence"], courses.visits(batch, seed), strict=True):
        key, person, start = visit[0], visit[1], visit[3]
        for table, codes in (
            ("condition_occurrence", course.further),
            ("drug_exposure", course.drugs),
            ("procedure_occurrence", course.procedures),
        ):
            for place, code in enumerate(codes):
                out[table].append((_COURSE_KEY_OFFSET + key * 10 + place, person, key, 0, start, code))
        out["measurement"].append((key, person, key, 3004249, start, 100 + key % 60))
    for row in tables["person"]:
        died = courses.person(row[-1], seed).died
        if died is not None:
            out["death"].append((row[0], died.isoformat(), 0))
    return out


_COURSE_KEY_OFFSET = 1_000_000_000


def write_omop(
    path: Path,
    n: int,
    seed: int = 0,
    *,
    visits: float | None = None,
    further: bool = False,
    on_rows: RowCallback = None,
) -> tuple[Path, ...]:
    """Write a SQLite database with n visits, and its policy next to it; return the paths.

    `further` adds courses: several diagnoses per visit, drugs, procedures, measurements, families, deaths.
    """
    assert len(people.SEXES) == len(_GENDER)  # noqa: S101 - every sex needs a concept
    if path.exists():
        raise ConnectorError(f"{path} already exists.", hint="Choose another file for --output.")
    make_folder(path.parent)
    try:
        with atomic_path(path) as draft, closing(sqlite3.connect(draft)) as base, base:
            _fill(base, rows(n, seed, visits, further=further), on_rows, TABLES | COURSES if further else TABLES)
    except sqlite3.Error as error:
        raise ConnectorError(
            f"{path} cannot be written: {type(error).__name__}.", hint="Choose a folder with enough free space."
        ) from None
    policy = path.with_suffix(".policy.yaml")
    write_text(policy_yaml("omop-linked" if further else "omop"), policy)
    return path, policy


def _fill(
    base: sqlite3.Connection,
    parts: Iterator[tuple[str, list[tuple[Any, ...]]]],
    on_rows: RowCallback,
    tables: dict[str, str],
) -> None:
    base.execute("PRAGMA journal_mode=MEMORY")  # the file is moved into place when complete, so no rollback is needed
    for table, columns in tables.items():
        base.execute(f"CREATE TABLE {table} ({columns})")
    for table, values in parts:
        marks = ",".join("?" * (tables[table].count(",") + 1))
        base.executemany(f"INSERT INTO {table} VALUES ({marks})", values)  # noqa: S608 - our own names
        if on_rows and table == "visit_occurrence":
            on_rows(len(values))
    base.execute(INDEX)
