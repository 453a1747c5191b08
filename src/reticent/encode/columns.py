"""Columns before they are coded: in a type that the core reads; names of persons and units in one spelling for each.

Guarantee: two names that are the same after Unicode normalisation (NFKC), without signs that nobody sees and spaces around them, are
    one name, so that somebody who is written in two ways is not two persons; so are `7`, `7.0` and the number 7, as programs write whole
    numbers beside missing ones. Blanks alone, or nothing, are no name.
Not covered: another case, leading zeros, misspellings: identifiers that differ in them may be of two persons.
Cost: a look at the bytes of the column; a dictionary of the different names where one of them is not plain.
Reference: The Unicode Consortium, UAX 15, normalisation forms.
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
"""Types that are read as text in any case: as a decimal, 7 may be 7.00."""
_WHOLE = re.compile(r"([+-]?[0-9]+)\.0+")
NOT_PLAIN = r"[^!-\-/-~]|^$"
"""What no plain name has, in the words of any engine that counts: names without it are their own single names."""
_INVISIBLE = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""Letters and marks by their kind that nobody sees."""


def normalize_names(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column with one spelling per name; itself where every cell is plain, or no text."""
    if any(is_kind(column.type) for is_kind in _AS_TEXT):
        column = column.cast(_TEXT)
    kind = column.type
    if kind not in _TEXTS or all(_core.stream.is_plain(chunk.__arrow_c_array__()) for chunk in column.chunks):
        return column
    coded = column.combine_chunks().dictionary_encode()
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.unify_dictionaries().combine_chunks()
    spelled = pa.array([None if word is None else normalize_name(word) for word in coded.dictionary.to_pylist()], kind)
    return pa.chunked_array([spelled.take(coded.indices)], kind)


def normalize_name(name: str) -> str | None:
    """What all spellings of a name share; a name of which nothing is seen is missing.

    >>> [single_name(word) for word in (" 7", "7.0", "7" + chr(0x200B), chr(0xFF17), "A  b", "007", " ", "")]
    ['7', '7', '7', '7', 'A b', '007', None, None]
    """
    text = name if name.isascii() and name.isprintable() else _remove_invisible(name)
    text = " ".join(text.split())
    whole = _WHOLE.fullmatch(text)
    return (whole[1] if whole else text) or None


def _remove_invisible(word: str) -> str:
    """Compatible characters without those that nobody sees; once more, since what stood beside one may now be one letter."""
    signs = _INVISIBLE.sub("", unicodedata.normalize("NFKC", word))
    seen = (sign for sign in signs if sign.isspace() or unicodedata.category(sign) not in ("Cf", "Cc"))
    return unicodedata.normalize("NFKC", "".join(seen))


NATIVE_TYPES = (_TEXT, pa.large_string(), pa.int64(), pa.float64(), pa.bool_(), pa.null())
"""Types that the core reads."""


def to_native(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """A column in one piece and in one of the types the core reads."""
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
