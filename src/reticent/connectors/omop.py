"""A release of OMOP tables as OMOP tables: a new SQLite or DuckDB file in the common data model 5.4, with its cdm_source.

Concepts that were made coarser or masked are concept 0, as the model says of what is not known. Of a coarser date or number
the first day or the lower end is written, and what was published stands beside it in a column of the same name with `_label`;
what is masked is null. Keys are the pseudonyms of the release as numbers.
"""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reticent.connectors.files import atomic_path
from reticent.errors import ConnectorError, PolicyError
from reticent.release.folder import read

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

_ROWS = 20_000
# Columns besides those of the policy that the common data model asks for, with what stands there.
_REQUIRED: dict[str, dict[str, int]] = {
    "person": {"gender_concept_id": 0, "race_concept_id": 0, "ethnicity_concept_id": 0},
    "visit_occurrence": {"visit_concept_id": 0, "visit_type_concept_id": 0},
    "condition_occurrence": {"condition_concept_id": 0, "condition_type_concept_id": 0},
    "drug_exposure": {"drug_concept_id": 0, "drug_type_concept_id": 0},
    "procedure_occurrence": {"procedure_concept_id": 0, "procedure_type_concept_id": 0},
    "measurement": {"measurement_concept_id": 0, "measurement_type_concept_id": 0},
    "death": {},
}
_DATES: dict[str, tuple[str, ...]] = {
    "person": ("year_of_birth",),
    "visit_occurrence": ("visit_start_date", "visit_end_date"),
    "condition_occurrence": ("condition_start_date",),
    "drug_exposure": ("drug_exposure_start_date", "drug_exposure_end_date"),
    "procedure_occurrence": ("procedure_date",),
    "measurement": ("measurement_date",),
    "death": ("death_date",),
}
_SOURCE = (
    "cdm_source_name VARCHAR(255), cdm_source_abbreviation VARCHAR(25), cdm_holder VARCHAR(255), source_description TEXT,"
    " source_documentation_reference VARCHAR(255), cdm_etl_reference VARCHAR(255), source_release_date DATE,"
    " cdm_release_date DATE, cdm_version VARCHAR(10), cdm_version_concept_id INTEGER, vocabulary_version VARCHAR(20)"
)
_VERSION_CONCEPT = 756265
_PARTIAL = re.compile(r"^(\d{4})(?:-(\d{2}))?(?:-(\d{2}))?$")
_QUARTER = re.compile(r"^(\d{4})-Q([1-4])$")
_DECADE = re.compile(r"^(\d{4})s$")
_FIRST = re.compile(r"^\[?(-?\d+(?:\.\d+)?)")
ANY = "*"


def write_omop_release(folder: Path, target: Path) -> dict[str, int]:
    """Writes a release of linked OMOP tables into a new database: DuckDB where its name ends in .duckdb, otherwise SQLite.

    Returns:
        How many rows each table has.

    Raises:
        PolicyError: the release was not made from OMOP.
        ConnectorError: the file exists, or cannot be written.
    """
    manifest, tables, documents = read(folder)
    if documents.get("linked", {}).get("standard") != "omop":
        raise PolicyError(
            f"{folder} was not made from OMOP.", hint="Release a database under a policy with tables: omop."
        )
    if target.exists():
        raise ConnectorError(f"{target} exists.", hint="Name a new file.")
    with atomic_path(target) as draft, closing(_connect(draft, target)) as link:
        counts = _places(link, tables["person"])
        for name in (name for name in _REQUIRED if name in tables):  # what others refer to comes first
            counts[name] = _fill(link, name, tables[name])
        about = _about(manifest, documents["codebook"])
        link.execute(f"CREATE TABLE cdm_source ({_SOURCE})")
        link.execute("INSERT INTO cdm_source VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", about)
        link.commit()
    return counts


def _connect(draft: Path, target: Path) -> Any:
    if target.suffix.lower() != ".duckdb":
        import sqlite3

        return sqlite3.connect(draft)
    try:
        import duckdb
    except ImportError:
        raise ConnectorError("DuckDB needs a driver.", hint="Install it: pip install 'reticent[duckdb]'.") from None
    draft.unlink()  # it makes its own file
    link = duckdb.connect(draft)
    link.execute("BEGIN")
    return link


def _places(link: Any, persons: pa.Table) -> dict[str, int]:
    """The table of locations: one for each published combination."""
    link.execute("CREATE TABLE location (location_id INTEGER PRIMARY KEY, state VARCHAR(64), zip VARCHAR(16))")
    rows = _locations(persons)
    if rows:
        link.executemany("INSERT INTO location VALUES (?, ?, ?)", [(number, *place) for place, number in rows.items()])
    return {"location": len(rows)} if rows else {}


def _locations(persons: pa.Table) -> dict[tuple[str | None, str | None], int]:
    if not {"state", "zip"} & set(persons.column_names):
        return {}
    return {place: number for number, place in enumerate(dict.fromkeys(_place_of(persons)), 1)}


def _place_of(persons: pa.Table) -> Iterator[tuple[str | None, str | None]]:
    nothing = [None] * persons.num_rows
    columns = [persons[name].to_pylist() if name in persons.column_names else nothing for name in ("state", "zip")]
    for state, code in zip(*columns, strict=True):
        yield (None if state == ANY else state, None if code == ANY else code)


def _fill(link: Any, name: str, table: pa.Table) -> int:
    columns = _columns(name, table)
    definitions = [f"{column} {kind}" for column, (kind, _) in columns.items()]
    link.execute(f"CREATE TABLE {name} ({', '.join(definitions)})")
    for start in range(0, table.num_rows, _ROWS):
        _insert(link, name, {column: cells[start : start + _ROWS] for column, (_, cells) in columns.items()})
    return int(table.num_rows)


def _insert(link: Any, name: str, columns: dict[str, list[Any]]) -> None:
    if hasattr(link, "register"):  # DuckDB takes rows one by one slowly, and columns at once
        import pyarrow as pa

        link.register("block", pa.table(columns))
        link.execute(f"INSERT INTO {name} SELECT * FROM block")  # noqa: S608 - names of the model
        link.unregister("block")
        return
    marks = ", ".join("?" * len(columns))
    link.executemany(f"INSERT INTO {name} VALUES ({marks})", list(zip(*columns.values(), strict=True)))  # noqa: S608


def _columns(name: str, table: pa.Table) -> dict[str, tuple[str, list[Any]]]:
    """Every column of a table of the model: its type and keys, and its cells."""
    rows = table.num_rows
    columns: dict[str, tuple[str, list[Any]]] = {}
    persons = [int(person[1:]) for person in table["person"].to_pylist()]
    if name == "person":
        columns["person_id"] = ("INTEGER PRIMARY KEY", persons)
        locations = _locations(table)
        if locations:
            columns["location_id"] = (
                "INTEGER REFERENCES location (location_id)",
                [locations[p] for p in _place_of(table)],
            )
    else:
        if name not in ("visit_occurrence", "death"):
            columns[f"{name}_id"] = ("INTEGER PRIMARY KEY", list(range(1, rows + 1)))
        key = "INTEGER PRIMARY KEY REFERENCES" if name == "death" else "INTEGER NOT NULL REFERENCES"
        columns["person_id"] = (f"{key} person (person_id)", persons)
    if "visit" in table.column_names:
        visits = [None if visit is None else int(visit[1:]) for visit in table["visit"].to_pylist()]
        own = (
            "INTEGER PRIMARY KEY"
            if name == "visit_occurrence"
            else "INTEGER REFERENCES visit_occurrence (visit_occurrence_id)"
        )
        columns["visit_occurrence_id"] = (own, visits)
    for column in (c for c in table.column_names if c not in ("person", "visit", "state", "zip")):
        columns |= _written(name, column, table[column].to_pylist())
    for column, value in _REQUIRED[name].items():
        columns.setdefault(column, ("INTEGER NOT NULL", [value] * rows))
    for column in _DATES[name]:
        columns.setdefault(column, ("DATE" if column != "year_of_birth" else "INTEGER", [None] * rows))
    return columns


def _written(table: str, column: str, cells: list[str | None]) -> dict[str, tuple[str, list[Any]]]:
    if column.endswith("_concept_id"):
        return {
            column: ("INTEGER NOT NULL", [int(cell) if cell is not None and cell.isdigit() else 0 for cell in cells])
        }
    if column.endswith("_source_value"):
        return {column: ("VARCHAR(50)", [None if cell == ANY else cell for cell in cells])}
    date = column in _DATES[table] and column != "year_of_birth"
    kind = "DATE" if date else "INTEGER" if column == "year_of_birth" else "NUMERIC"
    known: Mapping[str | None, Any] = {cell: _first_day(cell) if date else _lower(cell) for cell in set(cells)}
    values = [known[cell] for cell in cells]
    labels = [None if cell is None or str(known[cell]) == cell else cell for cell in cells]
    return {column: (kind, values), f"{column}_label": ("VARCHAR(32)", labels)}


def _first_day(cell: str | None) -> str | None:
    """The first day that a partial date, a quarter or a decade may mean."""
    text = cell or ""
    if match := _PARTIAL.match(text):
        return f"{match[1]}-{match[2] or '01'}-{match[3] or '01'}"
    if match := _QUARTER.match(text):
        return f"{match[1]}-{3 * int(match[2]) - 2:02d}-01"
    match = _DECADE.match(text)
    return f"{match[1]}-01-01" if match else None


def _lower(cell: str | None) -> float | int | None:
    """The lower end of a range, or the number itself."""
    match = _FIRST.match(cell or "")
    if match is None:
        return None
    return float(match[1]) if "." in match[1] else int(match[1])


def _about(manifest: Mapping[str, Any], codebook: Mapping[str, Any]) -> list[Any]:
    day = manifest["time"][:10]
    words = ". ".join([*codebook["guarantee"]["words"], f"Against {codebook['guarantee']['against']}"])
    return [
        "Released tables",
        "RETICENT",
        "see the release",
        f"Made coarser and under pseudonyms, dates shifted where the policy says so. {words}.",
        f"policy {manifest['policy_hash']}",
        f"Reticent {manifest['versions']['reticent']}, method {manifest['method']}",
        day,
        day,
        "5.4",
        _VERSION_CONCEPT,
        "",
    ]
