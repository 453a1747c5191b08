"""The hospital as an OMOP common data model in SQLite: person, visit_occurrence, condition_occurrence, location, concept."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta
from itertools import accumulate, compress, islice
from typing import TYPE_CHECKING, Any

from reticent.connectors.files import atomic_path
from reticent.datasets import people
from reticent.datasets.policies import policy_yaml
from reticent.datasets.visits import admissions
from reticent.datasets.writers import make_folder, write_text
from reticent.errors import ConnectorError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
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


def rows(n: int, seed: int = 0, visits: float | None = None) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
    """The rows for n visits, a table's name with some of its rows at a time, so that memory does not depend on n."""
    yield "concept", [(number, sex.upper()) for sex, number in _GENDER.items()]
    places: dict[tuple[str, str], int] = {}
    at = persons = 0
    for batch in admissions(n, seed, 32_768, visits):
        known = len(places)
        tables = _rows(batch.to_pydict(), at, persons, places)
        yield from tables.items()
        yield "location", [(number, *place) for place, number in islice(places.items(), known, None)]
        at, persons = at + batch.num_rows, persons + len(tables["person"])


def _rows(
    batch: dict[str, list[Any]], at: int, persons: int, places: dict[tuple[str, str], int]
) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of one batch; ``at`` visits and ``persons`` came before, the last of whom may go on here."""
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


def write_omop(
    path: Path,
    n: int,
    seed: int = 0,
    *,
    visits: float | None = None,
    on_rows: Callable[[int], None] | None = None,
) -> tuple[Path, ...]:
    """Writes a SQLite database with n visits and a policy beside it; says which files."""
    assert len(people.SEXES) == len(_GENDER)  # noqa: S101 - a sex without a concept would be lost
    if path.exists():
        raise ConnectorError(f"{path} exists.", hint="Give another file to --output.")
    make_folder(path.parent)
    try:
        with atomic_path(path) as draft, closing(sqlite3.connect(draft)) as base, base:
            _fill(base, rows(n, seed, visits), on_rows)
    except sqlite3.Error as error:
        raise ConnectorError(
            f"{path} cannot be written: {type(error).__name__}.", hint="Choose a folder that has room."
        ) from None
    policy = path.with_suffix(".policy.yaml")
    write_text(policy_yaml("omop"), policy)
    return path, policy


def _fill(
    base: sqlite3.Connection,
    parts: Iterator[tuple[str, list[tuple[Any, ...]]]],
    on_rows: Callable[[int], None] | None,
) -> None:
    base.execute("PRAGMA journal_mode=MEMORY")  # the file appears when it is complete: nothing to roll back on disk
    for table, columns in TABLES.items():
        base.execute(f"CREATE TABLE {table} ({columns})")
    for table, values in parts:
        marks = ",".join("?" * (TABLES[table].count(",") + 1))
        base.executemany(f"INSERT INTO {table} VALUES ({marks})", values)  # noqa: S608 - our own names
        if on_rows and table == "visit_occurrence":
            on_rows(len(values))
    base.execute(INDEX)
