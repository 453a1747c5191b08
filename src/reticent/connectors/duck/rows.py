"""Count and recode the rows of Parquet files with DuckDB, which spills to disk when memory runs out."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from reticent.connectors.pushdown.rows import MOST_COMBINATIONS, RECORDS, Rows
from reticent.encode.columns import NOT_PLAIN, normalize_names
from reticent.errors import ConnectorError, DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from duckdb import DuckDBPyConnection

    from reticent.connectors.pushdown.rows import Recoding

_BATCH, _NORMALIZE_NAMES = 1 << 17, "single_name"


class DuckRows(Rows):
    """The rows of a DuckDB query."""

    quote, escapes = '"', {"'": "''"}
    hash = "sha256({key} || CAST(ROW({cells}) AS VARCHAR))"
    null_position, replacement = "NULLS LAST", r"'\1\2', 'g'"

    def __init__(self, connection: DuckDBPyConnection, query: str, path: Path | None = None) -> None:
        self._connection, self.source = connection, f"({query})"
        with translate_errors(path):
            self.schema: pa.Schema = connection.sql(f"{query} LIMIT 0").to_arrow_table().schema
        self.columns = list(self.schema.names)

    @classmethod
    def of(cls, connection: DuckDBPyConnection, path: Path) -> DuckRows:
        """Return the rows of a Parquet file."""
        return cls(connection, f"SELECT * FROM read_parquet({cls._quote_text(str(path))})", path)  # noqa: S608 - names are quoted

    def is_text(self, name: str) -> bool:
        """Return whether a column holds text."""
        return bool(pa.types.is_string(self.schema.field(name).type))

    def normalize_persons(self, person: str | None) -> DuckRows:
        """Return the rows with one identifier per person; Python normalizes only the identifiers that are not plain."""
        if person is None:
            return self
        cells = self._quote_name(person)
        if pa.types.is_binary(self.schema.field(person).type):
            cells = f"decode({cells})"
        elif not self.is_text(person):
            return self
        not_plain = f"regexp_matches({cells}, {self._quote_text(NOT_PLAIN)})"
        if not self._scalar(f"SELECT count(*) FROM (SELECT 1 FROM {self.source} WHERE {not_plain} LIMIT 1)"):  # noqa: S608
            return self
        self._connection.create_function(_NORMALIZE_NAMES, _normalize_names, ["VARCHAR"], "VARCHAR", type="arrow")  # type: ignore[call-overload,unused-ignore]
        normalized = f"CASE WHEN {not_plain} THEN {_NORMALIZE_NAMES}({cells}) ELSE {cells} END"
        return self._select(f"SELECT * REPLACE ({normalized} AS {self._quote_name(person)}) FROM {self.source}")  # noqa: S608

    def count_combinations(self, names: Sequence[str]) -> pa.Table:
        """Return each distinct combination of the columns with its row count, in a stable order; text as codes."""
        order = ", ".join(f"{self._quote_name(name)} NULLS LAST" for name in names)
        with translate_errors():
            # Count first, sort afterwards: otherwise DuckDB keeps the groups in memory twice.
            query = f"{self._count_query(names)} LIMIT {MOST_COMBINATIONS + 1}"
            self._connection.execute(f"CREATE OR REPLACE TEMP TABLE counted AS {query}")
            reader = self._connection.sql(f"SELECT * FROM counted ORDER BY {order}").to_arrow_reader(_BATCH)  # noqa: S608
            parts = [pa.table(_encode_text(batch)) for batch in reader]
            schema = reader.schema
            self._connection.execute("DROP TABLE counted")
        return pa.concat_tables(parts).unify_dictionaries() if parts else schema.empty_table()

    def iter_published_parts(self, recoding: Recoding) -> Iterator[pa.Table]:
        """Yield the published rows, sorted by their cells, in parts that fit in memory."""
        query, tables = self._recoding_query(recoding)
        for name, table in tables.items():
            self._connection.register(name, table)
        try:
            with translate_errors():
                for batch in self._connection.sql(query).to_arrow_reader(_BATCH):
                    yield from _repeat_rows(pa.table(_encode_text(batch)))
        finally:
            for name in tables:
                self._connection.unregister(name)

    def _select(self, query: str) -> DuckRows:
        return DuckRows(self._connection, query)

    def _scalar(self, query: str) -> int:
        with translate_errors():
            rows = self._connection.execute(query).fetchall()  # read to the end: the connection is used again
        return int(rows[0][0])


def _normalize_names(names: pa.ChunkedArray) -> pa.ChunkedArray:
    return normalize_names(names)


def _encode_text(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    return {
        name: column.dictionary_encode() if pa.types.is_string(column.type) else column
        for name, column in columns.items()
    }


def _repeat_rows(table: pa.Table) -> Iterator[pa.Table]:
    """Yield every row as often as its count says, one part at a time."""
    times = table.column(RECORDS).to_numpy()
    table = table.drop_columns([RECORDS])
    ends = np.cumsum(times)
    total = int(ends[-1]) if len(ends) else 0
    for first in range(0, total, 8 * _BATCH):
        places = np.searchsorted(ends, np.arange(first, min(total, first + 8 * _BATCH)), side="right")
        yield table.take(pa.array(places))


@contextlib.contextmanager
def translate_errors(path: Path | None = None) -> Iterator[None]:
    """Translate DuckDB's errors, which may quote cells, into ours."""
    import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException:
        raise ConnectorError(
            "DuckDB ran out of memory and disk space.",
            hint="Raise --memory, or free disk space in the output directory.",
        ) from None
    except (duckdb.IOException, duckdb.InvalidInputException) as error:
        what = "The input" if path is None else str(path)
        raise ConnectorError(
            f"{what} cannot be read ({type(error).__name__}).", hint="Provide a Parquet file."
        ) from None
    except duckdb.Error as error:
        raise DataError(f"DuckDB refuses the table ({type(error).__name__}).", hint="Check the column types.") from None


def connection_settings(folder: Path, memory: str) -> dict[str, Any]:
    """Return settings for a connection that spills into `folder` and downloads no extension."""
    return {
        "memory_limit": memory,
        "temp_directory": str(folder),
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "preserve_insertion_order": "false",
    }
