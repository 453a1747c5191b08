"""DATA as the command line names it: a file, a FHIR export, or the URL of a database; always a table in the end."""

from __future__ import annotations

from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa

from reticent.connectors.fhir import is_fhir, read_fhir, read_fhir_batches
from reticent.connectors.files import read_batches, read_table
from reticent.policy.settings import FhirSettings
from reticent.policy.settings.inputs import OMOP_VISITS

if TYPE_CHECKING:
    from collections.abc import Generator

    from reticent.policy import Policy

READY_FHIR = FhirSettings(mapping="encounters")


def is_sql(data: str) -> bool:
    """Whether the data is the URL of a database; the database layer is loaded only for what may be one."""
    if "://" not in data:
        return False
    from reticent.connectors.sql import is_sql as known

    return known(data)


def read_input(data: str, policy: Policy | None = None) -> pa.Table:
    """The whole of the data as one table; `policy` says how resources and databases become one.

    Raises:
        DataError: the data is missing, damaged, or not a table.
        ConnectorError: a database refuses.
    """
    if is_sql(data):
        from reticent.connectors.sql import read_sql

        return read_sql(data, _query(policy))
    if is_fhir(data):
        return read_fhir(data, _mapping(policy))
    return read_table(data)


def read_input_head(data: str, rows: int) -> pa.Table:
    """The first rows, and little more of the source than that where it can be read in order."""
    if is_sql(data):
        from reticent.connectors.sql import read_sql_batches

        return _first(read_sql_batches(data, OMOP_VISITS), rows)
    if is_fhir(data):
        return pa.Table.from_batches(list(islice(read_fhir_batches(data, READY_FHIR), 1))).slice(0, rows)
    return _first(read_batches(data), rows)


def section_for(data: str) -> str | None:
    """The line a guessed policy needs so that the data can be read again the same way."""
    if is_sql(data):
        from reticent.connectors.sql import parse

        return "sql: omop" if parse(data).query is None else None
    return "fhir: encounters" if is_fhir(data) else None


def _first(batches: Generator[pa.RecordBatch], rows: int) -> pa.Table:
    taken: list[pa.RecordBatch] = []
    with closing(batches):
        for batch in batches:
            taken.append(batch)
            if sum(map(len, taken)) >= rows:
                break
    return pa.Table.from_batches(taken).slice(0, rows)


def _query(policy: Policy | None) -> str | None:
    return policy.sql.statement if policy is not None and policy.sql is not None else None


def _mapping(policy: Policy | None) -> FhirSettings:
    return policy.fhir if policy is not None and policy.fhir is not None else READY_FHIR
