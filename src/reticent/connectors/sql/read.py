"""Read the rows of a query as Arrow batches, always read-only; each driver is loaded on first use."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import pyarrow as pa

from reticent.connectors.files.read import check_finite, check_names
from reticent.connectors.sql.url import SqlSource, parse_url
from reticent.errors import ConnectorError, DataError, PolicyError, require_extra


class NoRowsError(DataError):
    """A query returned no rows."""


def read_sql(source: str, query: str | None = None) -> pa.Table:
    """Return all rows of a query as one table; see `read_sql_batches`."""
    return pa.Table.from_batches(list(read_sql_batches(source, query)))


def read_sql_batches(source: str, query: str | None = None, *, batch_rows: int = 65536) -> Generator[pa.RecordBatch]:
    """Yield the rows of one SELECT in batches; a query in the URL takes precedence over `query`.

    Raises:
        ConnectorError: the database cannot be reached, or rejects the query.
        NoRowsError: the query returns no rows.
    """
    base = parse_url(source)
    statement = base.query or query
    if not statement:
        raise PolicyError(
            "No query is given.", hint="Add ?table=NAME or ?query=SELECT... to the URL, or `sql:` to the policy."
        )
    readers = {"sqlite": _sqlite, "postgresql": _postgres, "duckdb": _duckdb}
    reader, rows = readers[base.dialect](base, statement, batch_rows), 0
    with closing(reader):
        for batch in reader:
            if not batch.num_rows:
                continue
            if not rows:
                check_names("The query", batch.schema.names)
            check_finite(batch, name="The query")
            rows += batch.num_rows
            yield batch
    if not rows:
        raise NoRowsError("The query returns no rows.", hint="Run the query directly on the database to check it.")


@contextmanager
def _translate_errors(base: SqlSource, errors: tuple[type[Exception], ...]) -> Iterator[None]:
    """Replace the driver's errors, which may quote cells and addresses, with their type and SQLSTATE."""
    try:
        yield
    except errors as error:
        state = getattr(error, "sqlstate", None)
        code = f" (SQLSTATE {state})" if isinstance(state, str) and state.strip("\0") else ""
        raise ConnectorError(
            f"{base.name}: the database refused the request: {type(error).__name__}{code}.",
            hint="Check the URL, the permissions and the query; run the query directly on the database to see its message.",
        ) from None


def _postgres(base: SqlSource, query: str, _: int) -> Generator[pa.RecordBatch]:
    with require_extra("PostgreSQL needs a driver", "postgres"):
        import adbc_driver_manager as manager
        from adbc_driver_postgresql import dbapi
    with _translate_errors(base, (manager.Error,)), dbapi.connect(base.url) as link, link.cursor() as cursor:
        cursor.execute("SET TRANSACTION READ ONLY")
        cursor.execute(query)
        for batch in cursor.fetch_record_batch():
            yield _plain_types(batch)


def _plain_types(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with types that the engines know; PostgreSQL's own types (numeric, uuid, ...) arrive as text."""
    arrays = []
    for column in batch.columns:
        if isinstance(column.type, pa.BaseExtensionType):
            column = column.storage  # noqa: PLW2901
        if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
            raise DataError(
                "The query returns a column of nested or binary values.", hint="Cast it to text in the query."
            )
        arrays.append(column)
    return pa.record_batch(arrays, names=batch.schema.names)


def _sqlite(base: SqlSource, query: str, batch_rows: int) -> Generator[pa.RecordBatch]:
    if not base.path.is_file():
        raise ConnectorError(f"{base.name}: no such database.", hint="Check the path after sqlite:///.")
    with (
        _translate_errors(base, (sqlite3.Error, sqlite3.Warning)),
        closing(sqlite3.connect(f"{base.path.absolute().as_uri()}?mode=ro", uri=True)) as link,
    ):
        link.set_authorizer(_authorize_reads)
        yield from _cursor_batches(link.execute(query), batch_rows)


def _cursor_batches(cursor: sqlite3.Cursor, batch_rows: int) -> Generator[pa.RecordBatch]:
    """Yield the rows of a cursor."""
    names = [column[0] for column in cursor.description or ()]
    if not names:
        raise PolicyError("The query is not a SELECT.", hint="Write a query that returns rows.")
    types: list[pa.DataType] | None = None
    while rows := cursor.fetchmany(batch_rows):
        columns = list(zip(*rows, strict=True))
        types = types or [_data_type(column) for column in columns]
        yield pa.record_batch(list(map(_array, names, columns, types)), names=names)


_READ_ONLY_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "lock_configuration": "true",
}


def _duckdb(base: SqlSource, query: str, batch_rows: int) -> Generator[pa.RecordBatch]:
    """Read from a read-only connection without access to other files, the network or the settings."""
    with require_extra("DuckDB needs a driver", "duckdb"):
        import duckdb
    if not base.path.is_file():
        raise ConnectorError(f"{base.name}: no such database.", hint="Check the path after duckdb:///.")
    with (
        _translate_errors(base, (duckdb.Error,)),
        duckdb.connect(base.url, read_only=True, config=_READ_ONLY_CONFIG) as link,
    ):
        statements = link.extract_statements(query)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise PolicyError("The query is not a SELECT.", hint="Write one query that returns rows.")
        reader: pa.RecordBatchReader = link.sql(query).to_arrow_reader(batch_rows)
        for batch in reader:
            yield _plain_types(batch)


_READ_ACTIONS = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)


def _authorize_reads(action: int, *_: str | None) -> int:
    """Allow reads only: a read-only connection still allows VACUUM INTO and ATTACH to create databases."""
    return sqlite3.SQLITE_OK if action in _READ_ACTIONS else sqlite3.SQLITE_DENY


def _data_type(column: Sequence[Any]) -> pa.DataType:
    """Return a column's type from its first batch, because SQLite types values, not columns; text if types mix."""
    types = {type(cell) for cell in column} - {type(None)}
    if bytes in types:
        raise DataError("The query returns a column of bytes.", hint="Cast it to text in the query.")
    if types == {int}:
        return pa.int64()
    return pa.float64() if types and types <= {int, float} else pa.string()


def _array(name: str, column: Sequence[Any], data_type: pa.DataType) -> pa.Array:
    if pa.types.is_string(data_type):
        column = [cell if cell is None or isinstance(cell, str) else str(cell) for cell in column]
    try:
        return pa.array(column, data_type)
    except (pa.ArrowException, OverflowError, TypeError):
        raise DataError(
            f"The query: column {name!r} changes its type within the result.", hint="Cast it to text in the query."
        ) from None
