"""Columns in one piece and in a type that the core reads."""

from __future__ import annotations

import pyarrow as pa

_TEXT = pa.string()
AS_THEY_ARE = (_TEXT, pa.large_string(), pa.int64(), pa.float64(), pa.bool_(), pa.null())
"""Types that the core reads."""


def native(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """A column in one piece and in one of the types the core reads."""
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    kind = column.type
    if kind is _TEXT or kind in AS_THEY_ARE:
        return column
    if pa.types.is_dictionary(kind):
        return native(column.dictionary_decode())
    if pa.types.is_integer(kind):
        return column.cast(pa.int64(), safe=True)
    if pa.types.is_floating(kind):
        return column.cast(pa.float64())
    return column.cast(pa.string())
