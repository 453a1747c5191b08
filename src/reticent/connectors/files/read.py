"""The two ways in: all at once, or in batches when a table is larger than memory."""

from __future__ import annotations

import contextlib
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from reticent.connectors.files.finite import check_finite
from reticent.connectors.files.read_options import ReadOptions
from reticent.connectors.files.sniff import Format, sniff_head
from reticent.connectors.files.source import SourceLike, opened

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

_READERS = {
    "csv": "csv_read",
    "ndjson": "ndjson_read",
    "parquet": "columnar",
    "arrow": "columnar",
    "excel": "excel_read",
    "stats": "stats_read",
}


def _reader(name: str) -> Any:
    """The reader of a format, loaded for files that have it."""
    return import_module(f"reticent.connectors.files.{_READERS[name]}")


def read_table(
    source: SourceLike,
    *,
    file_format: Format | None = None,
    columns: Sequence[str] | None = None,
    types: Mapping[str, pa.DataType] | None = None,
    finite: bool = True,
) -> pa.Table:
    """Read a whole table from a path, ``-`` (standard input) or a binary stream.

    Args:
        source: where the table is.
        file_format: its format, when the guess from its content must be overruled.
        columns: the columns to read; all when None.
        types: Arrow types that overrule the format's own (text for CSV).
        finite: refuse NaN and infinities in floating-point columns.

    Raises:
        DataError: the source is missing, empty, damaged, or not a table.
    """
    options = ReadOptions(None if columns is None else tuple(columns), types or {}, finite=finite)
    with opened(source) as there:
        file_format = file_format or sniff_head(there)
        table = _reader(file_format.name).table(there, file_format, options)
        if finite:
            check_finite(table, name=there.name)
        return table


def read_batches(
    source: SourceLike,
    *,
    file_format: Format | None = None,
    columns: Sequence[str] | None = None,
    types: Mapping[str, pa.DataType] | None = None,
    batch_rows: int = 65536,
    finite: bool = True,
) -> Generator[pa.RecordBatch]:
    """Read a table in batches of at most `batch_rows` rows, holding only a few of them in memory.

    The arguments and errors are those of `read_table`; an error may come after some batches were given.
    """
    options = ReadOptions(None if columns is None else tuple(columns), types or {}, batch_rows, finite)
    with opened(source) as there:
        file_format = file_format or sniff_head(there)
        pieces = _reader(file_format.name).batches(there, file_format, options)
        with contextlib.closing(pieces):  # whoever stops early also stops the parser before the file closes
            for batch in pieces:
                if finite:
                    check_finite(batch, name=there.name)
                yield batch


def read_head(source: SourceLike, rows: int) -> pa.Table:
    """Read at most the first `rows` rows, and little more of the file than that."""
    taken: list[pa.RecordBatch] = []
    with contextlib.closing(read_batches(source)) as batches:
        for batch in batches:
            taken.append(batch)
            if sum(map(len, taken)) >= rows:
                break
    return pa.Table.from_batches(taken).slice(0, rows)
