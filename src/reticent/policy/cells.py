"""Cells as they are meant: words that stand for a missing one, such as `?` or `-9`, numbers with a decimal comma, and equal ones by number."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from reticent.arrays import Int32s


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


def coded(column: pa.Array | pa.ChunkedArray) -> tuple[Int32s, pa.Array]:
    """The codes of a column's cells and its different values, in the order in which they come; a missing one is one of them.

    >>> codes, values = coded(pa.array(["b", None, "b"]))
    >>> codes.tolist(), values.to_pylist()
    ([0, 1, 0], ['b', None])
    """
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(whole.type):
        whole = whole.dictionary_decode()
    encoded = pc.dictionary_encode(whole, null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):  # more text than one array holds
        encoded = encoded.combine_chunks()
    return encoded.indices.to_numpy(), encoded.dictionary


_COMMA = r"^([+-]?[0-9]+),([0-9]+)$"


def with_points(table: pa.Table) -> pa.Table:
    """The table with a point in every cell of text that is a number with a decimal comma, cell by cell; the same table where none is.

    >>> with_points(pa.table({"weight": ["75,3", "80", "75,3 kg", None]})).column("weight").to_pylist()
    ['75.3', '80', '75,3 kg', None]
    """
    for place, name in enumerate(table.column_names):
        column = table.column(place)
        if pa.types.is_string(column.type) and pc.any(pc.match_substring(column, ",")).as_py():
            table = table.set_column(place, name, pc.replace_substring_regex(column, _COMMA, r"\1.\2"))
    return table
