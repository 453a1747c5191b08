"""Names of persons and units: one spelling for each, so that somebody who is written in two ways is not two persons.

Guarantee: two names that are the same after Unicode normalisation (NFKC), without invisible characters and spaces around them, are
    one name; so are `7`, `7.0` and the number 7, as programs write whole numbers beside missing ones.
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

_TEXTS = (pa.string(), pa.large_string())
_WHOLE = re.compile(r"([+-]?[0-9]+)\.0+")


def single_names(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column with one spelling per name; itself where every cell is plain, or no text."""
    kind = column.type
    if kind not in _TEXTS or all(_core.stream.is_plain(chunk.__arrow_c_array__()) for chunk in column.chunks):
        return column
    coded = column.combine_chunks().dictionary_encode()
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.unify_dictionaries().combine_chunks()
    spelled = pa.array([single_name(word) for word in coded.dictionary.to_pylist()], kind)
    return pa.chunked_array([spelled.take(coded.indices)], kind)


def single_name(word: str) -> str:
    """What all spellings of a name share.

    >>> [single_name(word) for word in (" 7", "7.0", "7" + chr(0x200B), chr(0xFF17), "A  b", "007", " ")]
    ['7', '7', '7', '7', 'A b', '007', ' ']
    """
    text = word
    if not word.isascii():
        text = "".join(c for c in unicodedata.normalize("NFKC", word) if unicodedata.category(c) != "Cf")
    text = " ".join(text.split())
    whole = _WHOLE.fullmatch(text)
    return (whole[1] if whole else text) or word
