"""Columns before encoding: conversion to a type of the core, and normalization of the names of persons and households.

Guarantee: names that are equal after Unicode normalization (NFKC), without invisible characters and surrounding spaces,
    are one name, so that identifier variants of a person do not count as two persons. `7`, `7.0` and the number 7 are
    equal too, because programs write whole numbers this way in columns with missing values. Blank names are missing.
Not covered: other letter case, leading zeros, misspellings: identifiers that differ in these may belong to two persons.
Cost: one pass over the bytes of the column; a dictionary of the distinct names if one of them is not plain.
Reference: The Unicode Consortium, UAX 15, normalization forms.
Differences from the paper: none.
"""

from __future__ import annotations

import re
import unicodedata

import pyarrow as pa

from reticent import _core

_TEXT = pa.string()
_TEXTS = (_TEXT, pa.large_string())
_AS_TEXT = (pa.types.is_decimal, pa.types.is_binary, pa.types.is_large_binary, pa.types.is_string_view)
"""Types that are always converted to text: as a decimal, 7 may be 7.00."""
_WHOLE = re.compile(r"([+-]?[0-9]+)\.0+")
NOT_PLAIN = r"[^!-\-/-~]|^$"
"""Regular expression for names that are not plain, for any SQL engine; plain names are already normalized."""
_INVISIBLE = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""Invisible characters that Unicode classifies as letters, marks or symbols."""


def normalize_names(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the column with normalized names; unchanged if all cells are plain or not text."""
    if any(is_kind(column.type) for is_kind in _AS_TEXT):
        column = column.cast(_TEXT)
    kind = column.type
    if kind not in _TEXTS or all(_core.stream.is_plain(chunk.__arrow_c_array__()) for chunk in column.chunks):
        return column
    coded = column.combine_chunks().dictionary_encode()
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.unify_dictionaries().combine_chunks()
    names = pa.array([None if word is None else normalize_name(word) for word in coded.dictionary.to_pylist()], kind)
    return pa.chunked_array([names.take(coded.indices)], kind)


def normalize_name(name: str) -> str | None:
    """Return the common form of all variants of a name; None for a name without visible characters.

    >>> [normalize_name(word) for word in (" 7", "7.0", "7" + chr(0x200B), chr(0xFF17), "A  b", "007", " ", "")]
    ['7', '7', '7', '7', 'A b', '007', None, None]
    """
    text = name if name.isascii() and name.isprintable() else _remove_invisible(name)
    text = " ".join(text.split())
    whole = _WHOLE.fullmatch(text)
    return (whole[1] if whole else text) or None


def _remove_invisible(word: str) -> str:
    """Normalize, remove invisible characters, and normalize again: neighbors of a removed character may now combine."""
    characters = _INVISIBLE.sub("", unicodedata.normalize("NFKC", word))
    visible = (sign for sign in characters if sign.isspace() or unicodedata.category(sign) not in ("Cf", "Cc"))
    return unicodedata.normalize("NFKC", "".join(visible))


NATIVE_TYPES = (_TEXT, pa.large_string(), pa.int64(), pa.float64(), pa.bool_(), pa.null())
"""Types that the core reads."""


def to_native(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return a column as one array, in one of the types that the core reads."""
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    kind = column.type
    if kind is _TEXT or kind in NATIVE_TYPES:
        return column
    if pa.types.is_dictionary(kind):
        return to_native(column.dictionary_decode())
    if pa.types.is_integer(kind):
        return column.cast(pa.int64(), safe=True)
    if pa.types.is_floating(kind):
        return column.cast(pa.float64())
    return column.cast(pa.string())
