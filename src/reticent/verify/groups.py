"""Groups of records and their sensitive histograms, rebuilt from published columns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reticent.arrays import Floats, Int64s

_NEAR_FACTOR = 4
"""Whole numbers are dense if their range is at most this many times their count."""


@dataclass(frozen=True, repr=False)
class Groups:
    """Counts of sensitive values per group, as triples sorted by group.

    Attributes:
        group, value, count: one entry per group and value that occurs in it.
        size: number of groups, numbered from 0.
        values: the text of each value code.
    """

    group: Int64s
    value: Int64s
    count: Int64s
    size: int
    values: tuple[str | None, ...]

    @classmethod
    def from_records(
        cls, group: Int64s, value: Int64s, size: int, values: tuple[str | None, ...], times: Int64s | None = None
    ) -> Groups:
        """Build from the group and value of every record, counted once or `times` times."""
        width = max(1, len(values))
        key = group * width + value
        if times is None:
            pairs, count = np.unique(key, return_counts=True)
        else:
            pairs, at = np.unique(key, return_inverse=True)
            count = np.bincount(at.reshape(-1), weights=times)
        return cls(pairs // width, pairs % width, count.astype(np.int64), size, values)

    def sizes(self) -> Int64s:
        """Records per group."""
        return np.bincount(self.group, weights=self.count, minlength=self.size).astype(np.int64)

    def distinct(self) -> Int64s:
        """Distinct values per group."""
        return np.bincount(self.group, minlength=self.size).astype(np.int64)

    def largest(self) -> Int64s:
        """Count of the most frequent value per group."""
        out = np.zeros(self.size, dtype=np.int64)
        np.maximum.at(out, self.group, self.count)
        return out

    def shares(self) -> Floats:
        """Return, for each entry, the share of its group that has the value."""
        return np.asarray(self.count / np.maximum(self.sizes(), 1)[self.group])

    def counts_of(self, group: int) -> list[int]:
        """The counts of one group."""
        first, last = np.searchsorted(self.group, [group, group + 1])
        return [int(count) for count in self.count[first:last]]

    def totals(self) -> dict[str | None, int]:
        """How often each value occurs over all groups."""
        sums = np.bincount(self.value, weights=self.count, minlength=len(self.values)).astype(np.int64)
        return {value: int(total) for value, total in zip(self.values, sums, strict=True)}

    def iter_shares(self, width: int, places: Int64s) -> Iterator[tuple[int, Floats]]:
        """Shares per group over ``width`` values, a block of groups at a time; places maps value codes to columns."""
        step = max(1, (1 << 21) // max(1, width))
        sizes = np.maximum(self.sizes(), 1)
        for first in range(0, self.size, step):
            low, high = np.searchsorted(self.group, [first, first + step])
            block = np.zeros((min(step, self.size - first), width))
            rows = self.group[low:high]
            block[rows - first, places[self.value[low:high]]] = self.count[low:high] / sizes[rows]
            yield first, block


def present_columns(names: Iterable[str], table: pa.Table) -> list[str]:
    """Return the names that are columns of the table."""
    return [name for name in names if name in table.column_names]


def codes(column: pa.ChunkedArray) -> tuple[Int64s, tuple[str | None, ...]]:
    """Number the distinct values of a column; a missing value has its own code."""
    code, values = arrow_codes(column)
    return code, tuple(values.to_pylist())


def arrow_codes(column: pa.ChunkedArray) -> tuple[Int64s, pa.Array]:
    """Like `codes`, with the values as an Arrow array: a column of days has tens of thousands."""
    encoded = _dictionary_encode(column)
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), encoded.dictionary


def _dictionary_encode(column: pa.ChunkedArray) -> pa.DictionaryArray:
    if column.num_chunks == 1 and pa.types.is_dictionary(column.type):
        return column.chunk(0)
    if not column.num_chunks:
        return pa.DictionaryArray.from_arrays(pa.array([], pa.int32()), pa.array([], pa.string()))
    encoded = pc.dictionary_encode(column, null_encoding="encode").combine_chunks()
    return encoded.chunk(0) if isinstance(encoded, pa.ChunkedArray) else encoded


def decode_table(table: pa.Table) -> pa.Table:
    """Return the table with dictionary-encoded columns decoded."""
    for place, column in enumerate(table.columns):
        if pa.types.is_dictionary(column.type):
            table = table.set_column(place, table.column_names[place], column.cast(column.type.value_type))
    return table


def as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the column as text."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_nested(column.type):
        return pa.chunked_array([pa.array([json.dumps(value) for value in column.to_pylist()], pa.string())])
    return column if pa.types.is_string(column.type) else column.cast(pa.string())


def encode_table(table: pa.Table) -> pa.Table:
    """Return the table as text with every column dictionary-encoded, so that `codes` is cheap."""
    return pa.table([encode_column(column) for column in table.columns], names=table.column_names)


def encode_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Dictionary-encode a column as text; cells with equal text share a code."""
    if pa.types.is_dictionary(column.type) and (coded := _reuse_codes(column)) is not None:
        return pa.chunked_array([coded])
    if pa.types.is_nested(column.type) or pa.types.is_dictionary(column.type):
        column = as_text(column)
    if pa.types.is_int64(column.type) and (coded := _encode_near_integers(column)) is not None:
        return pa.chunked_array([coded])
    encoded, kind = _dictionary_encode(column), column.type
    if not pa.types.is_string(kind):
        texts = encoded.dictionary.cast(pa.string())
        if pa.types.is_integer(kind) or pa.types.is_date32(kind):  # distinct values have distinct texts
            return pa.chunked_array([pa.DictionaryArray.from_arrays(encoded.indices, texts)])
        alike = pc.dictionary_encode(texts, null_encoding="encode")
        encoded = pa.DictionaryArray.from_arrays(alike.indices.take(encoded.indices), alike.dictionary)
    return pa.chunked_array([encoded])


def _reuse_codes(column: pa.ChunkedArray) -> pa.DictionaryArray | None:
    """Return a dictionary-encoded column as it is if its texts are distinct and all used; else None."""
    if column.num_chunks != 1 or column.null_count or not pa.types.is_string(column.type.value_type):
        return None
    encoded = column.chunk(0)
    words, times = encoded.dictionary, np.bincount(encoded.indices.to_numpy(zero_copy_only=False))
    distinct = len(pc.unique(words)) == len(words)
    return encoded if distinct and len(times) == len(words) and times.all() else None


def _encode_near_integers(column: pa.ChunkedArray) -> pa.DictionaryArray | None:
    """Encode dense whole numbers, such as group numbers, by size without a hash table; None if they are not dense."""
    if column.null_count or not len(column):
        return None
    cells = column.to_numpy()
    low = int(cells.min())
    if int(cells.max()) - low >= _NEAR_FACTOR * len(cells):
        return None
    present = np.bincount(cells - low) > 0
    place = (np.cumsum(present) - 1).astype(np.int32)
    texts = pa.array(np.flatnonzero(present) + low).cast(pa.string())
    return pa.DictionaryArray.from_arrays(place[cells - low], texts)


def common_codes(*columns: pa.Array) -> list[Int64s]:
    """Return codes for several columns from one common dictionary; a missing text has its own code."""
    texts = pa.concat_arrays([column.cast(pa.string()) for column in columns])
    code = pc.dictionary_encode(texts, null_encoding="encode").indices.to_numpy(zero_copy_only=False)
    ends = np.cumsum([len(column) for column in columns])
    return [code[end - len(column) : end].astype(np.int64) for end, column in zip(ends, columns, strict=True)]


def number_rows(table: pa.Table, columns: Sequence[str]) -> tuple[Int64s, int]:
    """Number the rows by group: rows that agree in all columns share a number."""
    key, cardinality = np.zeros(table.num_rows, dtype=np.int64), 1
    for name in columns:
        code, values = arrow_codes(table[name])
        width = max(1, len(values))
        if cardinality * width >= 2**62:
            key, cardinality = _renumber(key)
        key, cardinality = key * width + code, cardinality * width
    return _renumber(key)


def rank_texts(texts: Sequence[str | None], *, missing_last: bool = False) -> Int64s:
    """Rank texts: as numbers if all are numbers, else by text; missing texts come first, or last."""
    try:
        keys = [((text is None) == missing_last, float(text or 0), "") for text in texts]
    except ValueError:
        keys = [((text is None) == missing_last, 0.0, text or "") for text in texts]
    place = np.empty(len(texts), dtype=np.int64)
    place[sorted(range(len(texts)), key=keys.__getitem__)] = np.arange(len(texts))
    return place


def rank_cells(column: pa.ChunkedArray, *, missing_last: bool = False) -> Int64s:
    """Rank each cell among the distinct values of its column, as `rank_texts` does."""
    code, texts = codes(encode_column(column))
    return rank_texts(texts, missing_last=missing_last)[code]


def distinct_numbers(key: Int64s) -> Int64s:
    """Return the distinct numbers, sorted."""
    ordered = np.sort(key)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def histograms(rows: Int64s, size: int, column: pa.ChunkedArray, times: Int64s | None = None) -> Groups:
    """Count a sensitive column within groups."""
    code, values = codes(column)
    return Groups.from_records(rows, code, size, values, times)


def normalize_rows(weights: Floats) -> Floats:
    """Scale rows to sum to one; rows of zeros stay zero."""
    total = weights.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(weights, total, out=np.zeros_like(weights), where=total > 0))


def _renumber(key: Int64s) -> tuple[Int64s, int]:
    encoded = pc.dictionary_encode(pa.array(key))
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), len(encoded.dictionary)
