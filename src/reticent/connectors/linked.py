"""Read the linked tables of the policy's `tables` section: a FHIR export, an OMOP database, or the user's own tables.

Only the keys and the columns of the policy are read.
"""

from __future__ import annotations

import datetime as dt
import logging
import re
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from reticent.connectors.fhir.paths import Getter
from reticent.connectors.sql.read import NoRowsError, read_sql
from reticent.connectors.sql.url import is_sql, parse_url
from reticent.errors import DataError, PolicyError
from reticent.policy import Policy
from reticent.policy.settings.inputs import FhirColumn
from reticent.policy.settings.linked import VISIT, Layout, LinkedSettings

LOG = logging.getLogger(__name__)
_SUFFIXES = (".csv", ".csv.gz", ".tsv", ".parquet", ".arrow", ".ndjson")
_BATCH_ROWS = 16_384
_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")


def read_tables(data: str, policy: Policy) -> tuple[dict[str, pa.Table], dict[str, Any]]:
    """Return the tables of the policy by name, and their origin: the standard and the path of each column.

    Raises:
        DataError: a table is missing or corrupt.
        ConnectorError: a database cannot be read.
    """
    settings = policy.tables
    assert settings is not None  # noqa: S101 - the caller has checked
    layout = settings.layout(policy.released)
    if settings.mapping == "fhir":
        return _read_fhir_tables(data, policy, settings, layout)
    standard = {
        "standard": settings.mapping or "tables",
        "tables": {name: list(one.columns) for name, one in layout.items()},
    }
    if is_sql(data):
        if parse_url(data).query is not None:
            raise PolicyError(
                "The URL names one table.", hint="Give the URL of the database only; the policy names its tables."
            )
        return {name: _read_sql_table(data, policy, settings, one) for name, one in layout.items()}, standard
    return {name: _read_file_table(data, policy, one) for name, one in layout.items()}, standard


def _read_fhir_tables(
    data: str, policy: Policy, settings: LinkedSettings, layout: dict[str, Layout]
) -> tuple[dict[str, pa.Table], dict[str, Any]]:
    from reticent.connectors.fhir.code_systems import CodeSystems
    from reticent.connectors.fhir.paths import version_of
    from reticent.connectors.fhir.read import LINKED_PATIENT, iter_resources, log_warnings
    from reticent.connectors.fhir.spill import text_batch

    paths, warning_counts = settings.paths, Counter[str]()
    systems = CodeSystems()
    take = {
        name: [
            _whole_days(systems.getter(column, paths[column]), paths[column], warning_counts) for column in one.columns
        ]
        for name, one in layout.items()
    }
    names = {name: [str(policy.person), *one.link_columns[1:], *one.columns] for name, one in layout.items()}
    buffers: dict[str, list[tuple[str | None, ...]]] = {name: [] for name in layout}
    batches: dict[str, list[pa.RecordBatch]] = {name: [] for name in layout}
    version = None
    for resource, (patient, visit), cells in iter_resources(data, take):
        kind = resource["resourceType"]
        version = version or version_of(resource)
        warning_counts[f"{kind} without a patient: skipped"] += patient is None
        warning_counts[LINKED_PATIENT] += kind == "Patient" and "link" in resource
        keys = (patient,) if kind == "Patient" else (patient, visit)
        rows = buffers[kind]
        rows.append((*keys, *cells))
        if len(rows) >= _BATCH_ROWS:
            batches[kind].append(text_batch(rows, names[kind]))
            rows.clear()
    tables = {
        kind: pa.Table.from_batches([*batches[kind], text_batch(rows, names[kind])]) for kind, rows in buffers.items()
    }
    log_warnings(data, warning_counts)
    for kind in ("Patient", "Encounter"):
        if not tables[kind].num_rows:
            raise DataError(f"{data} has no {kind}.", hint="Export Patient, Encounter and Condition together.")
    columns = {kind: {name: paths[name].write_path for name in one.columns} for kind, one in layout.items()}
    known, unknown = systems.resolve()
    for name in unknown:
        LOG.warning("The codes of '%s' come from several or unknown code systems: the release names none.", name)
    return tables, {"standard": "fhir", "version": version or "R4", "tables": columns, "systems": known}


def _whole_days(get: Getter, column: FhirColumn, warning_counts: Counter[str]) -> Getter:
    """Return a getter that empties partial dates (a month or a year alone), which can be neither shifted nor sorted."""
    if column.read_as != "date":
        return get

    def take(resource: dict[str, Any]) -> str | None:
        cell = get(resource)
        if cell is None or _is_day(cell):
            return cell
        warning_counts[f"{column.path} without a full date: left empty"] += 1
        return None

    return take


@lru_cache(maxsize=1 << 16)
def _is_day(cell: str) -> bool:
    try:
        return dt.date.fromisoformat(cell).isoformat() == cell
    except ValueError:
        return False


def _read_sql_table(data: str, policy: Policy, settings: LinkedSettings, layout: Layout) -> pa.Table:
    """Read a table of a database; in OMOP, the location of persons comes from a separate table."""
    names = (layout.name, layout.person, layout.visit or "visit", str(policy.person), *layout.columns)
    if not all(map(_NAME.match, names)):
        raise PolicyError(
            f"tables: '{layout.name}' has a name with special characters.", hint="Create a view with plain names."
        )
    schema = f"{settings.schema_name}." if settings.schema_name else ""
    columns = [f"t.{layout.person} AS {policy.person}"]
    columns += [f"t.{layout.visit} AS {VISIT}"] if VISIT in layout.link_columns else []
    place = settings.mapping == "omop" and layout.of_persons and {"state", "zip"} & set(layout.columns)
    columns += [f"{'l' if place and name in ('state', 'zip') else 't'}.{name} AS {name}" for name in layout.columns]
    query = f"SELECT {', '.join(columns)} FROM {schema}{layout.name} t"  # noqa: S608 - names of the policy, checked there
    if place:
        query += f" LEFT JOIN {schema}location l ON l.location_id = t.location_id"
    try:
        return read_sql(data, query)
    except NoRowsError:
        if layout.of_persons or layout.of_visits:
            raise
        return pa.table({name.rpartition(" AS ")[2]: pa.array([], pa.string()) for name in columns})


def _read_file_table(data: str, policy: Policy, layout: Layout) -> pa.Table:
    from reticent.connectors.files import read_table

    folder = Path(data)
    path = next((path for form in _SUFFIXES if (path := folder / f"{layout.name}{form}").is_file()), None)
    if path is None:
        raise DataError(
            f"{data} has no file for the table '{layout.name}'.", hint=f"Add a file such as {layout.name}.csv."
        )
    table = read_table(str(path))
    keys = {str(policy.person): layout.person} | ({VISIT: str(layout.visit)} if VISIT in layout.link_columns else {})
    absent = [name for name in (*keys.values(), *layout.columns) if name not in table.column_names]
    if absent:
        raise DataError(
            f"The table '{layout.name}' has no column '{absent[0]}'.", hint="Correct the name in the policy."
        )
    return pa.table({name: table.column(source) for name, source in (keys | {n: n for n in layout.columns}).items()})
