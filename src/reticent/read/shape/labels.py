"""Conversion of columns to text and to codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reticent.arrays import Int64s

MISSING = "(missing)"


def to_text(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as text in a single array."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(whole.type):
        whole = whole.cast(whole.type.value_type)
    return whole if pa.types.is_string(whole.type) else whole.cast(pa.string())


def codes(column: pa.ChunkedArray, domain: Sequence[str]) -> Int64s:
    """Return the position of each cell in the domain, -1 for others; a missing cell has the label `MISSING`."""
    cells = pc.fill_null(to_text(column), MISSING)
    places = pc.fill_null(pc.index_in(cells, pa.array(domain, pa.string())), -1)
    return np.asarray(places.to_numpy(zero_copy_only=False), dtype=np.int64)


def domain(column: pa.ChunkedArray) -> tuple[str, ...]:
    """Return the distinct cells of a column, sorted."""
    cells = pc.unique(pc.fill_null(to_text(column), MISSING)).to_pylist()
    return tuple(sorted(cells))


def number_combinations(columns: Sequence[pa.ChunkedArray]) -> tuple[Int64s, list[tuple[Any, ...]]]:
    """Return the number of each record's combination of cells, and the sorted combinations."""
    return _sort_combinations(*combinations(columns))


def combinations(columns: Sequence[pa.ChunkedArray]) -> tuple[Int64s, list[tuple[Any, ...]]]:
    """Return the same as `number_combinations`, unsorted."""
    parts = [pc.dictionary_encode(column, null_encoding="encode") for column in columns]
    parts = [part.combine_chunks() if isinstance(part, pa.ChunkedArray) else part for part in parts]
    at = np.zeros(len(parts[0]), dtype=np.int64)
    for part in parts:
        # Renumber at each column: the product of all domains may exceed 64 bits.
        _, first, at = np.unique(
            at * max(len(part.dictionary), 1) + part.indices.to_numpy(), return_index=True, return_inverse=True
        )
        at = at.reshape(-1)
    shown = (part.dictionary.take(part.indices.take(pa.array(first))).to_pylist() for part in parts)
    return at, list(zip(*shown, strict=True))


def _sort_combinations(at: Int64s, cells: list[tuple[Any, ...]]) -> tuple[Int64s, list[tuple[Any, ...]]]:
    order = sorted(range(len(cells)), key=lambda number: [_key(cell) for cell in cells[number]])
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return place[at], [cells[number] for number in order]


def _key(cell: Any) -> tuple[int, float, str]:
    """Return a sort key: numbers and intervals by their lower end, then text, then missing cells."""
    from reticent.read.cells import date_extent, number_extent

    if cell is None:
        return (2, 0.0, "")
    extent = number_extent(cell) or date_extent(cell)
    return (1, 0.0, str(cell)) if extent is None else (0, extent.low, str(cell))
