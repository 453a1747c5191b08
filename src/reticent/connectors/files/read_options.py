"""How a caller wants a table read, and the checks that every format shares."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from reticent.errors import DataError


@dataclass(frozen=True)
class ReadOptions:
    """The columns to keep (None: all), and rows per batch."""

    columns: tuple[str, ...] | None = None
    batch_rows: int = 65536

    def of(self, name: str, names: Sequence[str]) -> tuple[str, ...]:
        """The wanted columns of a file that has `names`, after checking that they are there."""
        if self.columns is None:
            return tuple(names)
        for column in self.columns:
            if column not in names:
                near = difflib.get_close_matches(column, names, 1)
                hint = f"Did you mean {near[0]!r}?" if near else "Check the header and the delimiter of the file."
                raise DataError(f"{name} has no column {column!r}.", hint=hint)
        return self.columns


def check_names(name: str, names: Sequence[str]) -> None:
    """Refuse nameless and repeated columns, by position: in a file without a header the names would be cells."""
    hint = "The first line must name every column, each once."
    first: dict[str, int] = {}
    for place, column in enumerate(names, 1):
        if not column.strip():
            raise DataError(f"{name}: column {place} has no name.", hint=hint)
        if column in first:
            raise DataError(f"{name}: columns {first[column]} and {place} have the same name.", hint=hint)
        first[column] = place


def no_rows(name: str) -> DataError:
    """The error for a table without rows."""
    return DataError(f"{name} has no rows.", hint="There is nothing to release; check the export that wrote it.")


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
