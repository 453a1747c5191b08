"""A query's rows as Arrow batches, always read-only; each driver is loaded for whom it concerns."""

from __future__ import annotations

import datetime as dt
import re
import sqlite3
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import pyarrow as pa

from reticent.connectors.files.read import check_finite, check_names
from reticent.connectors.sql.url import SqlSource, parse_url
from reticent.errors import ConnectorError, DataError, PolicyError, require_extra


class NoRowsError(DataError):
    """A query has an answer without rows."""


def read_sql(source: str, query: str | None = None) -> pa.Table:
    """The whole answer as one table; see `read_sql_batches`."""
    return pa.Table.from_batches(list(read_sql_batches(source, query)))


def read_sql_batches(source: str, query: str | None = None, *, batch_rows: int = 65536) -> Generator[pa.RecordBatch]:
    """The rows of one SELECT, batch by batch; a query in the URL wins over `query`, and PostgreSQL's driver chooses batches by bytes.

    Raises:
        ConnectorError: the database cannot be reached, or refuses the query.
        NoRowsError: the answer has no rows.
    """
    base = parse_url(source)
    statement = base.query or query
    if not statement:
        raise PolicyError(
            "There is no query.", hint="Add ?table=NAME or ?query=SELECT... to the URL, or `sql:` to the policy."
        )
    readers = {"sqlite": _sqlite, "postgresql": _postgres, "duckdb": _duckdb, "mysql": _mysql}
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
        raise NoRowsError("The query gives no rows.", hint="Check it on the database itself.")


@contextmanager
def _translate_errors(base: SqlSource, errors: tuple[type[Exception], ...]) -> Iterator[None]:
    """The driver's own words may quote cells and addresses; its kind of error does not."""
    try:
        yield
    except errors as error:
        state = getattr(error, "sqlstate", None)
        code = f" (SQLSTATE {state})" if isinstance(state, str) and state.strip("\0") else ""
        raise ConnectorError(
            f"{base.name}: the database refused: {type(error).__name__}{code}.",
            hint="Check the address, the rights and the query; run the query on the database itself to see its message.",
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
    """Types the engines know: what PostgreSQL alone knows (numeric, uuid, ...) arrives as text."""
    arrays = []
    for column in batch.columns:
        if isinstance(column.type, pa.BaseExtensionType):
            column = column.storage  # noqa: PLW2901
        if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
            raise DataError("The query gives a column that is no single value.", hint="Cast it to text in the query.")
        arrays.append(column)
    return pa.record_batch(arrays, names=batch.schema.names)


def _sqlite(base: SqlSource, query: str, batch_rows: int) -> Generator[pa.RecordBatch]:
    if not base.path.is_file():
        raise ConnectorError(f"{base.name}: there is no such database.", hint="Check the path after sqlite:///.")
    with (
        _translate_errors(base, (sqlite3.Error, sqlite3.Warning)),
        closing(sqlite3.connect(f"{base.path.absolute().as_uri()}?mode=ro", uri=True)) as link,
    ):
        link.set_authorizer(_authorize_reads)
        yield from _cursor_batches(link.execute(query), batch_rows)


def _cursor_batches(cursor: Any, batch_rows: int) -> Generator[pa.RecordBatch]:
    """The rows of a cursor whose driver gives cells of Python."""
    names = [column[0] for column in cursor.description or ()]
    if not names:
        raise PolicyError("The query is no SELECT.", hint="Write a query that gives rows.")
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
    """Opened for reading, without a way to other files, to the network, or to settings that would open one."""
    with require_extra("DuckDB needs a driver", "duckdb"):
        import duckdb
    if not base.path.is_file():
        raise ConnectorError(f"{base.name}: there is no such database.", hint="Check the path after duckdb:///.")
    with (
        _translate_errors(base, (duckdb.Error,)),
        duckdb.connect(base.url, read_only=True, config=_READ_ONLY_CONFIG) as link,
    ):
        statements = link.extract_statements(query)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise PolicyError("The query is no SELECT.", hint="Write one query that gives rows.")
        reader: pa.RecordBatchReader = link.sql(query).to_arrow_reader(batch_rows)
        for batch in reader:
            yield _plain_types(batch)


_SELECT = re.compile(r"\s*(select|with|table|values)\b", re.IGNORECASE)
# `into` in any form: a comment may stand between it and `outfile`.
_WRITE_CLAUSES = re.compile(r"\binto\b|\bfor\s+update\b|/\*!", re.IGNORECASE)


def _mysql(base: SqlSource, query: str, batch_rows: int) -> Generator[pa.RecordBatch]:
    """One SELECT in a read-only transaction, its rows streamed by the server.

    Such a transaction still lets `SELECT ... INTO OUTFILE` write a file on the server; the account's rights (`FILE`) decide that, and the
    words are refused here as well.
    """
    if not _SELECT.match(query) or _WRITE_CLAUSES.search(query):
        raise PolicyError("The query is no plain SELECT.", hint="Write one query that gives rows and writes nothing.")
    import sqlalchemy as sa

    with require_extra("MySQL needs a driver", "mysql"):
        import pymysql
        from pymysql.cursors import SSCursor
    engine = sa.create_engine(base.url, poolclass=sa.NullPool)
    # The driver's own cursor: SQLAlchemy's reads rows ahead, which a cursor of the server gives only once.
    with (
        _translate_errors(base, (pymysql.MySQLError, sa.exc.SQLAlchemyError)),
        closing(engine.raw_connection()) as link,
        closing(link.cursor(SSCursor)) as cursor,
    ):
        cursor.execute("SET SESSION TRANSACTION READ ONLY")
        cursor.execute(query)
        yield from _cursor_batches(cursor, batch_rows)


_READ_ACTIONS = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)


def _authorize_reads(action: int, *_: str | None) -> int:
    """A read-only connection still lets VACUUM INTO copy the whole database, and ATTACH make new ones."""
    return sqlite3.SQLITE_OK if action in _READ_ACTIONS else sqlite3.SQLITE_DENY


def _data_type(column: Sequence[Any]) -> pa.DataType:
    """Such drivers type values, not columns: the first batch decides, and text holds what mixes."""
    types = {type(cell) for cell in column} - {type(None)}
    if bytes in types:
        raise DataError("The query gives a column of bytes.", hint="Cast it to text in the query.")
    if types == {int}:
        return pa.int64()
    if types and types <= {int, float}:
        return pa.float64()
    if types == {dt.date}:
        return pa.date32()
    return pa.timestamp("us") if types == {dt.datetime} else pa.string()


def _array(name: str, column: Sequence[Any], data_type: pa.DataType) -> pa.Array:
    if pa.types.is_string(data_type):
        column = [cell if cell is None or isinstance(cell, str) else str(cell) for cell in column]
    try:
        return pa.array(column, data_type)
    except (pa.ArrowException, OverflowError, TypeError):
        raise DataError(
            f"The query: column {name!r} changes its type within the answer.", hint="Cast it to text in the query."
        ) from None
