"""Read a table at once, or in batches if it is larger than memory; checks that all formats share."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Collection, Generator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from reticent.connectors.files.sniff import sniff
from reticent.connectors.files.source import SourceLike, open_input
from reticent.errors import DataError


@dataclass(frozen=True)
class ReadOptions:
    """The columns to read (None: all) and the number of rows per batch."""

    columns: tuple[str, ...] | None = None
    batch_rows: int = 65536

    def select_columns(self, name: str, names: Sequence[str]) -> tuple[str, ...]:
        """Return the columns to read from a file with the columns `names`; refuse a missing one."""
        if self.columns is None:
            return tuple(names)
        for column in self.columns:
            if column not in names:
                near = difflib.get_close_matches(column, names, 1)
                hint = f"Did you mean {near[0]!r}?" if near else "Check the header and the delimiter of the file."
                raise DataError(f"{name} has no column {column!r}.", hint=hint)
        return self.columns


_TITLE_LINES = 20
"""Number of lines searched for a header below titles."""


def check_names(
    name: str, names: Sequence[str], *, empty: Collection[int] = (), lines: Sequence[Sequence[Any]] = ()
) -> None:
    """Refuse nameless and repeated columns, named by position: without a header, the names would be cells.

    A column in `empty` has no cells and may be nameless, for example after a delimiter at the end of a line. `lines`
    are the first lines of the file; they show a header below titles or merged cells.
    """
    hint = "Name every column once in the first line; remove titles above it and columns without a name."
    line = _header_below(lines)
    if line is not None:
        hint = f"Remove the lines above line {line}, which seems to be the header, and name every column once."
    first: dict[str, int] = {}
    for place, column in enumerate(names, 1):
        if not column.strip():
            if place in empty:
                continue
            raise DataError(f"{name}: column {place} has no name.", hint=hint)
        if column in first:
            raise DataError(f"{name}: columns {first[column]} and {place} have the same name.", hint=hint)
        first[column] = place


def _header_below(lines: Sequence[Sequence[Any]]) -> int | None:
    """Return the first line, from 2, with as many distinct words as the widest line has cells."""
    texts = [[str(cell).strip() for cell in line] for line in lines[:_TITLE_LINES]]
    width = max((sum(map(bool, line)) for line in texts), default=0)
    for at, line in enumerate(texts[1:], 2):
        words = [cell for cell in line if cell and not cell[0].isdigit()]
        if len(words) == len(set(words)) == width > 1:
            return at
    return None


def no_rows_error(name: str) -> DataError:
    """Return the error for a table without rows."""
    return DataError(
        f"{name} has no rows.", hint="Check the export: the first line must name the columns, and rows must follow."
    )


def check_finite(table: pa.Table | pa.RecordBatch, *, name: str = "data") -> None:
    """Refuse NaN and infinity, which cannot be compared or grouped; null is allowed.

    >>> check_finite(pa.table({"weight": [61.5, None]}))
    """
    for field in table.schema:
        if not pa.types.is_floating(field.type):
            continue
        count = pc.sum(pc.invert(pc.is_finite(table[field.name]))).as_py()
        if count:
            raise DataError(
                f"{name}: column {field.name!r} has {count} cells that are NaN or infinite.",
                hint="Write missing numbers as null (an empty cell), and remove infinite values.",
            )


_READERS = {
    "csv": "csv_read",
    "ndjson": "ndjson_read",
    "parquet": "columnar",
    "arrow": "columnar",
    "excel": "workbook_read",
    "stats": "workbook_read",
}


def _reader(name: str) -> Any:
    """Return the module that reads a format, loaded on first use."""
    return import_module(f"reticent.connectors.files.{_READERS[name]}")


def read_table(source: SourceLike) -> pa.Table:
    """Read a whole table from a path, ``-`` (standard input) or a binary stream.

    Raises:
        DataError: the source is missing, empty, corrupt, or not a table, or has NaN or infinite values.
    """
    with open_input(source) as opened:
        file_format = sniff(opened)
        table = _reader(file_format.name).table(opened, file_format, ReadOptions())
        check_finite(table, name=opened.name)
        return table


def read_batches(
    source: SourceLike, *, columns: Sequence[str] | None = None, batch_rows: int = 65536
) -> Generator[pa.RecordBatch]:
    """Read the columns of a table (default: all) in batches of at most `batch_rows` rows; only a few are in memory.

    The errors are those of `read_table`; they may occur after the first batches.
    """
    options = ReadOptions(None if columns is None else tuple(columns), batch_rows)
    with open_input(source) as opened:
        file_format = sniff(opened)
        pieces = _reader(file_format.name).batches(opened, file_format, options)
        with contextlib.closing(pieces):  # stop the parser before the file closes
            for batch in pieces:
                check_finite(batch, name=opened.name)
                yield batch


def read_head(source: SourceLike, rows: int) -> pa.Table:
    """Read at most the first `rows` rows, and little more of the file."""
    return first_of(read_batches(source), rows)


def first_of(batches: Generator[pa.RecordBatch], rows: int) -> pa.Table:
    """Return at most the first `rows` rows of the batches."""
    parts: list[pa.RecordBatch] = []
    with contextlib.closing(batches):
        for batch in batches:
            parts.append(batch)
            if sum(map(len, parts)) >= rows:
                break
    return pa.Table.from_batches(parts).slice(0, rows)
