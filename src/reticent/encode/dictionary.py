"""Dictionary: the distinct values of one column in order of appearance, and their codes.

Codes are stable: a value keeps its code in every later batch. A missing value has a code, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reticent import _core
from reticent.arrays import Int32s, Int64s
from reticent.errors import DataError

# Up to this many values, single lookups are cheaper than Arrow's dictionary encoding.
_SMALL_CHUNK = 16
_MAX_KEY = 1 << 62
"""Largest packed number; larger keys are renumbered."""


class Dictionary:
    """A growing dictionary of values and their codes.

    Example:
        >>> words = Dictionary()
        >>> words.encode(pa.array(["b", "a", "b"])).tolist()
        [0, 1, 0]
        >>> words.decode(words.encode(pa.array(["c", None, "a"]))).to_pylist()
        ['c', None, 'a']
    """

    def __init__(self, values: pa.Array | pa.ChunkedArray | None = None) -> None:
        self._codes: dict[Any, int] = {}
        self._type: pa.DataType | None = None
        self._values: pa.Array | None = None
        if values is not None:  # one by one, so that the index of each value is its code, also of the missing value
            self._codes_of(self._to_own_type(values))

    def __len__(self) -> int:
        return len(self._codes)

    def __contains__(self, value: object) -> bool:
        return value in self._codes

    def __iter__(self) -> Iterator[Any]:
        return iter(self._codes)

    @property
    def values(self) -> pa.Array:
        """Return the distinct values; the index of a value is its code."""
        if self._values is None:
            self._values = pa.array(list(self._codes), type=self._type or pa.null())
        return self._values

    def encode(self, column: pa.Array | pa.ChunkedArray) -> Int32s:
        """Return the codes of a column's values; new values get the next free codes."""
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        parts = [self._encode_chunk(chunk) for chunk in chunks]
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.int32)

    def decode(self, codes: Int32s) -> pa.Array:
        """Return the values of codes."""
        return decode_values(codes, self.values)

    def reorder(self, places: Int64s) -> Dictionary:
        """Return a dictionary with the same values in another order; `places` has the old code of each new code."""
        words, values = Dictionary(), list(self._codes)
        words._type, words._codes = self._type, {values[place]: code for code, place in enumerate(places.tolist())}
        return words

    def _encode_chunk(self, chunk: pa.Array) -> Int32s:
        if len(chunk) <= _SMALL_CHUNK and not pa.types.is_dictionary(chunk.type):
            return self._codes_of(self._to_own_type(chunk))
        if pa.types.is_string(chunk.type) and not chunk.null_count:
            numbers, texts = encode_texts(chunk)
            return np.asarray(self._codes_of(self._to_own_type(texts))[numbers])
        coded = chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
        table = self._codes_of(self._to_own_type(coded.dictionary))
        indices = coded.indices
        if indices.null_count == 0:
            return np.asarray(table[indices.to_numpy(zero_copy_only=False)])
        null_code = self._code(None)
        filled = pc.fill_null(indices, 0).to_numpy(zero_copy_only=False)
        codes = table[filled] if len(table) else np.zeros(len(indices), dtype=np.int32)
        codes[indices.is_null().to_numpy(zero_copy_only=False)] = null_code
        return codes

    def _to_own_type(self, values: pa.Array) -> pa.Array:
        """Cast values to the type of the first batch, so that equal values stay equal."""
        if pa.types.is_floating(values.type) and not pc.all(pc.is_finite(values), skip_nulls=True).as_py():
            raise DataError(
                "A column of numbers contains NaN or infinity.", hint="Write missing numbers as empty cells."
            )
        if self._type is None or pa.types.is_null(self._type):
            if not pa.types.is_null(values.type):
                self._type = values.type
        elif values.type != self._type:
            try:
                values = values.cast(self._type)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                raise DataError(
                    f"A column changes its type between batches ({self._type}, then {values.type}).",
                    hint="Give every part of the input the same column types.",
                ) from None
        return values

    def _codes_of(self, values: pa.Array) -> Int32s:
        return np.fromiter((self._code(value) for value in values.to_pylist()), dtype=np.int32, count=len(values))

    def _code(self, value: Any) -> int:
        code = self._codes.get(value)
        if code is None:
            code = self._codes[value] = len(self._codes)
            self._values = None
        return code


def encode_texts(column: pa.Array) -> tuple[Int32s, pa.Array]:
    """Return the codes of texts (none missing) and the distinct texts in order of appearance; faster than Arrow."""
    numbered = _core.table.encode_texts(*_text_buffers(column))
    return numbered.codes, column.take(pa.array(numbered.firsts))


def decode_values(codes: Int32s, values: pa.Array) -> pa.Array:
    """Return the values of codes; faster than Arrow for texts."""
    if not pa.types.is_string(values.type) or values.null_count:
        return values.take(pa.array(codes))
    texts = _core.table.decode_texts(np.ascontiguousarray(codes, dtype=np.int32), *_text_buffers(values))
    return pa.StringArray.from_buffers(len(codes), pa.py_buffer(texts.ends), pa.py_buffer(texts.text))


def _text_buffers(column: pa.Array) -> tuple[Int32s, NDArray[np.uint8]]:
    """Return the offsets of the texts and their concatenated bytes."""
    _, ends, text = column.buffers()
    places = np.frombuffer(ends or bytes(4), np.int32)
    return places[column.offset : column.offset + len(column) + 1], np.frombuffer(text or b"", np.uint8)


@dataclass(frozen=True, repr=False)
class EncodedColumns:
    """Columns as codes, with the dictionaries that decode them."""

    codes: dict[str, Int32s]
    dictionaries: dict[str, Dictionary]


def encode_table(table: pa.Table, columns: Sequence[str]) -> EncodedColumns:
    """Encode some columns of a table."""
    dictionaries = {name: Dictionary() for name in columns}
    codes = {}
    for name in columns:
        try:
            codes[name] = dictionaries[name].encode(table.column(name))
        except DataError as error:
            raise DataError(f"Column '{name}': {error.message}", hint=error.hint) from None
    return EncodedColumns(codes, dictionaries)


def pack_codes(columns: Sequence[tuple[NDArray[Any], int]]) -> Int64s:
    """Return one number per row from the codes and widths of its columns: equal for equal rows, ordered by the codes.

    >>> pack_codes([(np.array([0, 1, 0]), 2), (np.array([2, 0, 2]), 3)]).tolist()
    [2, 3, 2]
    """
    key, room = np.zeros(len(columns[0][0]) if columns else 0, dtype=np.int64), 1
    for codes, width in columns:
        if room * width >= _MAX_KEY:
            distinct, key = np.unique(key, return_inverse=True)
            room = len(distinct)
        key, room = key * width + codes, room * width
    return key
