"""Write a release of OMOP tables to a new SQLite or DuckDB file in the common data model 5.4, with its cdm_source.

A generalized or masked concept becomes concept 0, the model's value for "not known". Of a generalized date or number,
the first day or the lower end is written, and the published label goes into a further column with the suffix `_label`.
A masked value is null. Keys are the pseudonyms of the release as numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa

from reticent.connectors.files import atomic_path
from reticent.connectors.omop.model import REQUIRED_CONCEPTS, TABLES, table_definition
from reticent.errors import ConnectorError, PolicyError, require_extra
from reticent.release.folder import read

Location = tuple[str | None, str | None]

_ROWS = 20_000
_VERSION_CONCEPT = 756265
_PARTIAL = re.compile(r"^(\d{4})(?:-(\d{2}))?(?:-(\d{2}))?$")
_QUARTER = re.compile(r"^(\d{4})-Q([1-4])$")
_DECADE = re.compile(r"^(\d{4})s$")
_FIRST = re.compile(r"^\[?(-?\d+(?:\.\d+)?)")
ANY = "*"


def write_omop_release(folder: Path, target: Path) -> dict[str, int]:
    """Write a release of linked OMOP tables to a new database: DuckDB if the name ends in .duckdb, otherwise SQLite.

    Return the number of rows of each table.
    """
    manifest, tables, documents = read(folder)
    if documents.get("linked", {}).get("standard") != "omop":
        raise PolicyError(
            f"{folder} was not made from OMOP.", hint="Release a database under a policy with tables: omop."
        )
    if target.exists():
        raise ConnectorError(f"{target} already exists.", hint="Name a new file.")
    with atomic_path(target) as draft, closing(_connect(draft, target)) as link:
        locations = _locations(tables["person"])
        columns = {"state": [state for state, _ in locations], "zip": [code for _, code in locations]}
        counts = {"location": _fill(link, "location", {"location_id": list(locations.values())} | columns)}
        for name in (name for name in TABLES if name in tables):  # referenced tables first
            counts[name] = _fill(link, name, _columns(name, tables[name], locations))
        _fill(link, "cdm_source", {name: [cell] for name, cell in _cdm_source(manifest, documents["codebook"]).items()})
        link.commit()
    return {name: count for name, count in counts.items() if count or name in tables}


def _connect(draft: Path, target: Path) -> Any:
    if target.suffix.lower() != ".duckdb":
        import sqlite3

        connection = sqlite3.connect(draft)
        connection.execute("PRAGMA foreign_keys = ON")
        return connection
    with require_extra("DuckDB needs a driver", "duckdb"):
        import duckdb
    draft.unlink()  # DuckDB creates its own file
    link = duckdb.connect(draft)
    link.execute("BEGIN")
    return link


def _locations(persons: pa.Table) -> dict[Location, int]:
    """Return the published combinations of state and postal code, each with its number."""
    if not {"state", "zip"} & set(persons.column_names):
        return {}
    return {place: number for number, place in enumerate(dict.fromkeys(_iter_locations(persons)), 1)}


def _iter_locations(persons: pa.Table) -> Iterator[Location]:
    nothing = [None] * persons.num_rows
    columns = [persons[name].to_pylist() if name in persons.column_names else nothing for name in ("state", "zip")]
    for state, code in zip(*columns, strict=True):
        yield (None if state == ANY else state, None if code == ANY else code)


def _fill(link: Any, name: str, columns: dict[str, list[Any]]) -> int:
    """Create and fill a table of the model, with extra columns last; missing columns stay null."""
    extra = tuple(column for column in columns if column not in TABLES[name])
    link.execute(f"CREATE TABLE {name} ({table_definition(name, extra)})")
    rows = len(next(iter(columns.values())))
    for start in range(0, rows, _ROWS):
        _insert(link, name, {column: cells[start : start + _ROWS] for column, cells in columns.items()})
    return rows


def _insert(link: Any, name: str, columns: dict[str, list[Any]]) -> None:
    columns_clause = f"{name} ({', '.join(columns)})"
    if hasattr(link, "register"):  # DuckDB inserts single rows slowly, columns fast
        link.register("block", pa.table(columns))
        link.execute(f"INSERT INTO {columns_clause} SELECT * FROM block")  # noqa: S608 - names of the model
        link.unregister("block")
        return
    marks = ", ".join("?" * len(columns))
    link.executemany(f"INSERT INTO {columns_clause} VALUES ({marks})", list(zip(*columns.values(), strict=True)))  # noqa: S608


def _columns(name: str, table: pa.Table, locations: Mapping[Location, int]) -> dict[str, list[Any]]:
    """Return the cells of every column to fill."""
    rows = table.num_rows
    columns: dict[str, list[Any]] = {"person_id": [int(person[1:]) for person in table["person"].to_pylist()]}
    if name == "person" and locations:
        columns["location_id"] = [locations[place] for place in _iter_locations(table)]
    if "visit" in table.column_names:
        visits = table["visit"].to_pylist()
        columns["visit_occurrence_id"] = [None if visit is None else int(visit[1:]) for visit in visits]
    if name not in ("person", "visit_occurrence", "death"):
        columns[f"{name}_id"] = list(range(1, rows + 1))
    for column in (c for c in table.column_names if c not in ("person", "visit", "state", "zip")):
        columns |= _column_values(column, table[column].to_pylist())
    for column in REQUIRED_CONCEPTS.get(name, ()):
        columns.setdefault(column, [0] * rows)
    return columns


def _column_values(column: str, cells: list[str | None]) -> dict[str, list[Any]]:
    if column.endswith("_concept_id"):
        return {column: [int(cell) if cell is not None and cell.isdigit() else 0 for cell in cells]}
    if column.endswith("_source_value"):
        return {column: [None if cell == ANY else cell for cell in cells]}
    first = _first_day if column.endswith("_date") else _lower_end
    value_of: Mapping[str | None, Any] = {cell: first(cell) for cell in set(cells)}
    values = [value_of[cell] for cell in cells]
    labels = [None if cell is None or str(value_of[cell]) == cell else cell for cell in cells]
    return {column: values, f"{column}_label": labels}


def _first_day(cell: str | None) -> str | None:
    """Return the first day of a partial date, a quarter or a decade."""
    text = cell or ""
    if match := _PARTIAL.match(text):
        return f"{match[1]}-{match[2] or '01'}-{match[3] or '01'}"
    if match := _QUARTER.match(text):
        return f"{match[1]}-{3 * int(match[2]) - 2:02d}-01"
    match = _DECADE.match(text)
    return f"{match[1]}-01-01" if match else None


def _lower_end(cell: str | None) -> float | int | None:
    """Return the lower end of a range, or the number itself."""
    match = _FIRST.match(cell or "")
    if match is None:
        return None
    return float(match[1]) if "." in match[1] else int(match[1])


def _cdm_source(manifest: Mapping[str, Any], codebook: Mapping[str, Any]) -> dict[str, Any]:
    day = manifest["time"][:10]
    words = ". ".join([*codebook["guarantee"]["words"], f"Against {codebook['guarantee']['against']}"])
    return {
        "cdm_source_name": "Released tables",
        "cdm_source_abbreviation": "RETICENT",
        "cdm_holder": "see the release",
        "source_description": f"Generalized and pseudonymized; dates are shifted if the policy says so. {words}.",
        "source_documentation_reference": f"policy {manifest['policy_hash']}",
        "cdm_etl_reference": f"Reticent {manifest['versions']['reticent']}, method {manifest['method']}",
        "source_release_date": day,
        "cdm_release_date": day,
        "cdm_version": "5.4",
        "cdm_version_concept_id": _VERSION_CONCEPT,
        "vocabulary_version": "",
    }
