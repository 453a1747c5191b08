"""Groups of records and their sensitive histograms, rebuilt from published columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True, repr=False)
class Groups:
    """Counts of sensitive values per group, as triples sorted by group.

    Attributes:
        group, value, count: one entry per group and value that occurs in it.
        size: number of groups, numbered from 0.
        values: the text of each value code.
    """

    group: NDArray[np.int64]
    value: NDArray[np.int64]
    count: NDArray[np.int64]
    size: int
    values: tuple[str | None, ...]

    def sizes(self) -> NDArray[np.int64]:
        """Records per group."""
        return np.bincount(self.group, weights=self.count, minlength=self.size).astype(np.int64)

    def distinct(self) -> NDArray[np.int64]:
        """Distinct values per group."""
        return np.bincount(self.group, minlength=self.size).astype(np.int64)

    def largest(self) -> NDArray[np.int64]:
        """Count of the most frequent value per group."""
        out = np.zeros(self.size, dtype=np.int64)
        np.maximum.at(out, self.group, self.count)
        return out

    def counts_of(self, group: int) -> list[int]:
        """The counts of one group."""
        first, last = np.searchsorted(self.group, [group, group + 1])
        return [int(count) for count in self.count[first:last]]

    def totals(self) -> dict[str | None, int]:
        """How often each value occurs over all groups."""
        sums = np.bincount(self.value, weights=self.count, minlength=len(self.values)).astype(np.int64)
        return {value: int(total) for value, total in zip(self.values, sums, strict=True)}

    def matrices(self, width: int, places: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.float64]]]:
        """Shares per group over ``width`` values, a block of groups at a time; places maps value codes to columns."""
        step = max(1, (1 << 21) // max(1, width))
        sizes = np.maximum(self.sizes(), 1)
        for first in range(0, self.size, step):
            low, high = np.searchsorted(self.group, [first, first + step])
            block = np.zeros((min(step, self.size - first), width))
            rows = self.group[low:high]
            block[rows - first, places[self.value[low:high]]] = self.count[low:high] / sizes[rows]
            yield first, block


def codes(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], tuple[str | None, ...]]:
    """Number the distinct values of a column; a missing value is a value of its own."""
    encoded = pc.dictionary_encode(column, null_encoding="encode").combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = (
            encoded.chunk(0) if encoded.num_chunks else pa.DictionaryArray.from_arrays(pa.array([], pa.int32()), [])
        )
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), tuple(encoded.dictionary.to_pylist())


def coded(table: pa.Table) -> pa.Table:
    """The table with the texts of every column numbered, so that `codes` need not do it again."""
    columns = [pc.dictionary_encode(column, null_encoding="encode") for column in table.columns]
    return pa.table(columns, names=table.column_names)


def numbered(table: pa.Table, columns: Sequence[str]) -> tuple[NDArray[np.int64], int]:
    """The group of every row: rows alike in all the columns share a number."""
    key, cardinality = np.zeros(table.num_rows, dtype=np.int64), 1
    for name in columns:
        code, values = codes(table[name])
        width = max(1, len(values))
        if cardinality * width >= 2**62:
            key, cardinality = _dense(key)
        key, cardinality = key * width + code, cardinality * width
    return _dense(key)


def histograms(rows: NDArray[np.int64], size: int, column: pa.ChunkedArray) -> Groups:
    """Count a sensitive column within groups."""
    code, values = codes(column)
    width = max(1, len(values))
    pairs, count = np.unique(rows * width + code, return_counts=True)
    return Groups(pairs // width, pairs % width, count.astype(np.int64), size, values)


def _dense(key: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    distinct, inverse = np.unique(key, return_inverse=True)
    return inverse.astype(np.int64), len(distinct)
