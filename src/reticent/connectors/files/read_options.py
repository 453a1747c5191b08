"""How a caller wants a table read, and the checks on column names that every format shares."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from reticent.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Data = TypeVar("Data", pa.Table, pa.RecordBatch)


@dataclass(frozen=True)
class ReadOptions:
    """The columns to keep (None: all), types that overrule the format's, rows per batch, whether to refuse NaN."""

    columns: tuple[str, ...] | None = None
    types: Mapping[str, pa.DataType] = field(default_factory=dict)
    batch_rows: int = 65536
    finite: bool = True

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


def typed(name: str, data: Data, options: ReadOptions) -> Data:
    """The columns with the types the caller wants instead of the file's own."""
    for place, column in enumerate(data.schema):
        target = options.types.get(column.name, column.type)
        if target != column.type:
            try:
                data = data.set_column(place, column.name, data.column(place).cast(target))
            except pa.ArrowException:
                raise DataError(
                    f"{name}: column {column.name!r} cannot be read as {target}.", hint=f"It is {column.type} there."
                ) from None
    return data
