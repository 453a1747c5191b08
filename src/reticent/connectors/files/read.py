"""The two ways in: all at once, or in batches when a table is larger than memory; and the checks that every format shares."""

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
    """The columns to keep (None: all), and rows per batch."""

    columns: tuple[str, ...] | None = None
    batch_rows: int = 65536

    def select_columns(self, name: str, names: Sequence[str]) -> tuple[str, ...]:
        """The wanted columns of a file that has `names`, after checking that they are there."""
        if self.columns is None:
            return tuple(names)
        for column in self.columns:
            if column not in names:
                near = difflib.get_close_matches(column, names, 1)
                hint = f"Did you mean {near[0]!r}?" if near else "Check the header and the delimiter of the file."
                raise DataError(f"{name} has no column {column!r}.", hint=hint)
        return self.columns


_TITLE_LINES = 20
"""Lines in which a header is looked for below titles."""


def check_names(
    name: str, names: Sequence[str], *, empty: Collection[int] = (), lines: Sequence[Sequence[Any]] = ()
) -> None:
    """Refuse nameless and repeated columns, by position: in a file without a header the names would be cells.

    A column in an `empty` place holds no cell and may be nameless: the end of a line with a delimiter too many, a gap between others.
    `lines` are the first ones of the file, by which a header below titles and merged cells is seen.
    """
    hint = "The first line must name every column, each once: remove titles above it, name or remove what has no name."
    line = _header_below(lines)
    if line is not None:
        hint = f"Line {line} seems to name the columns: remove titles above it, so that every column has one name."
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
    """The first line, from 2, that has as many words as the widest line has cells, all of them different."""
    texts = [[str(cell).strip() for cell in line] for line in lines[:_TITLE_LINES]]
    width = max((sum(map(bool, line)) for line in texts), default=0)
    for at, line in enumerate(texts[1:], 2):
        words = [cell for cell in line if cell and not cell[0].isdigit()]
        if len(words) == len(set(words)) == width > 1:
            return at
    return None


def no_rows_error(name: str) -> DataError:
    """The error for a table without rows."""
    return DataError(
        f"{name} has no rows.", hint="Its first line names the columns, rows follow; check the export that wrote it."
    )


def check_finite(table: pa.Table | pa.RecordBatch, *, name: str = "data") -> None:
    """Refuse NaN and infinity, with which nothing can be compared and no group built; null is fine.

    >>> check_finite(pa.table({"weight": [61.5, None]}))
    """
    for field in table.schema:
        if not pa.types.is_floating(field.type):
            continue
        strange = pc.sum(pc.invert(pc.is_finite(table[field.name]))).as_py()
        if strange:
            raise DataError(
                f"{name}: column {field.name!r} has {strange} cells that are NaN or infinite.",
                hint="Write missing numbers as null (an empty cell), and remove the others.",
            )


_READERS = {
    "csv": "csv_read",
    "ndjson": "ndjson_read",
    "parquet": "columnar",
    "arrow": "columnar",
    "excel": "cells",
    "stats": "cells",
}


def _reader(name: str) -> Any:
    """The reader of a format, loaded for files that have it."""
    return import_module(f"reticent.connectors.files.{_READERS[name]}")


def read_table(source: SourceLike) -> pa.Table:
    """Read a whole table from a path, ``-`` (standard input) or a binary stream.

    Raises:
        DataError: the source is missing, empty, damaged, or not a table, or holds NaN or infinities.
    """
    with open_input(source) as there:
        file_format = sniff(there)
        table = _reader(file_format.name).table(there, file_format, ReadOptions())
        check_finite(table, name=there.name)
        return table


def read_batches(
    source: SourceLike, *, columns: Sequence[str] | None = None, batch_rows: int = 65536
) -> Generator[pa.RecordBatch]:
    """Read some columns of a table, or all, in batches of at most `batch_rows` rows, holding only a few of them in memory.

    The errors are those of `read_table`; one may come after some batches were given.
    """
    options = ReadOptions(None if columns is None else tuple(columns), batch_rows)
    with open_input(source) as there:
        file_format = sniff(there)
        pieces = _reader(file_format.name).batches(there, file_format, options)
        with contextlib.closing(pieces):  # whoever stops early also stops the parser before the file closes
            for batch in pieces:
                check_finite(batch, name=there.name)
                yield batch


def read_head(source: SourceLike, rows: int) -> pa.Table:
    """Read at most the first `rows` rows, and little more of the file than that."""
    return first_of(read_batches(source), rows)


def first_of(batches: Generator[pa.RecordBatch], rows: int) -> pa.Table:
    """At most the first `rows` rows of what comes in batches."""
    parts: list[pa.RecordBatch] = []
    with contextlib.closing(batches):
        for batch in batches:
            parts.append(batch)
            if sum(map(len, parts)) >= rows:
                break
    return pa.Table.from_batches(parts).slice(0, rows)
