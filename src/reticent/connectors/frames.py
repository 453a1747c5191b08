"""Frames of other libraries as Arrow tables: whatever speaks the Arrow interface, pandas, polars, DuckDB."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from reticent.errors import DataError


def is_frame(data: Any) -> bool:
    """Whether something is a table in memory, of whatever library; a single column is none."""
    if isinstance(data, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        return True
    return hasattr(data, "__arrow_c_stream__") and hasattr(data, "columns")


def table_of(frame: Any) -> pa.Table:
    """The columns of a frame; refuses what a table cannot say, in words and without a cell.

    Raises:
        DataError: a pandas index that carries data, columns of mixed types, cells that are no single values.
    """
    if isinstance(frame, pa.Table):
        return frame
    _refuse_index(frame)
    try:
        table = pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise DataError(
            f"The frame cannot be read as a table ({type(error).__name__}).",
            hint="Give every column one type, and single values in its cells.",
        ) from None
    return pa.table({field.name: _plain(field, table.column(at)) for at, field in enumerate(table.schema)})


def _refuse_index(frame: Any) -> None:
    """An index with a name or gaps is data that has no column."""
    index = getattr(frame, "index", None)
    if index is None or not hasattr(frame, "iloc"):
        return
    if type(index).__name__ != "RangeIndex":
        raise DataError(
            "The frame has an index of its own, which is no column.",
            hint="Call reset_index() to make it one, or reset_index(drop=True) to leave it out.",
        )


def _plain(field: pa.Field, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Types that engines know: views, large strings and categories become what they stand for."""
    kind = field.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_string_view(kind) or pa.types.is_large_string(kind):
        return column.cast(pa.string())
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        raise DataError(
            f"Column '{field.name}' holds cells that are no single value.", hint="Leave it out, or write it as text."
        )
    return column
