"""Words that stand for a missing cell, such as `?` or `-9`: what the policy declares is read as missing at every door."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc


def without_markers(table: pa.Table, words: Sequence[str]) -> pa.Table:
    """The table with nothing where a cell is one of the words; the same table where none is.

    >>> without_markers(pa.table({"age": ["31", "?"]}), ["?"]).column("age").to_pylist()
    ['31', None]
    """
    if not words:
        return table
    for place, name in enumerate(table.column_names):
        column = table.column(place)
        marked = _marked(column, words)
        if marked is not None:
            empty = pa.scalar(None, column.type)
            table = table.set_column(place, name, pc.if_else(marked, empty, column))
    return table


def _marked(column: pa.ChunkedArray, words: Sequence[str]) -> pa.ChunkedArray | None:
    """Which cells are markers, by their text: -9 is one whether it came as text or as a number."""
    kind = column.type
    if pa.types.is_nested(kind) or pa.types.is_null(kind) or pa.types.is_temporal(kind):
        return None
    texts = column.cast(kind.value_type) if pa.types.is_dictionary(kind) else column
    texts = texts if pa.types.is_string(texts.type) else texts.cast(pa.string())
    marked = pc.is_in(texts, value_set=pa.array(words, pa.string()))
    return marked if pc.any(marked).as_py() else None
