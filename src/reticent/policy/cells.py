"""Normalization of cells: missing-value markers such as `?` or `-9`, decimal commas, value codes and canonical forms."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from reticent.arrays import Int32s


def without_markers(table: pa.Table, words: Sequence[str]) -> pa.Table:
    """Replace cells that equal one of the marker words by null; return the same table if there are none.

    >>> without_markers(pa.table({"age": ["31", "?"]}), ["?"]).column("age").to_pylist()
    ['31', None]
    """
    if not words:
        return table
    for place, name in enumerate(table.column_names):
        column = table.column(place)
        marked = _marker_mask(column, words)
        if marked is not None:
            empty = pa.scalar(None, column.type)
            table = table.set_column(place, name, pc.if_else(marked, empty, column))
    return table


def _marker_mask(column: pa.ChunkedArray, words: Sequence[str]) -> pa.ChunkedArray | None:
    """Return which cells are markers, compared as text: -9 matches as text and as a number."""
    kind = column.type
    if pa.types.is_nested(kind) or pa.types.is_null(kind) or pa.types.is_temporal(kind):
        return None
    texts = column.cast(kind.value_type) if pa.types.is_dictionary(kind) else column
    texts = texts if pa.types.is_string(texts.type) else texts.cast(pa.string())
    marked = pc.is_in(texts, value_set=pa.array(words, pa.string()))
    return marked if pc.any(marked).as_py() else None


def encode_cells(column: pa.Array | pa.ChunkedArray) -> tuple[Int32s, pa.Array]:
    """Return the codes of a column's cells and its distinct values in order of appearance; null counts as a value.

    >>> codes, values = encode_cells(pa.array(["b", None, "b"]))
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


def with_decimal_points(table: pa.Table) -> pa.Table:
    """Replace the decimal comma by a point in text cells that are numbers; return the same table if there are none.

    >>> with_decimal_points(pa.table({"weight": ["75,3", "80", "75,3 kg", None]})).column("weight").to_pylist()
    ['75.3', '80', '75,3 kg', None]
    """
    for place, name in enumerate(table.column_names):
        column = table.column(place)
        if pa.types.is_string(column.type) and pc.any(pc.match_substring(column, ",")).as_py():
            table = table.set_column(place, name, pc.replace_substring_regex(column, _COMMA, r"\1.\2"))
    return table


# E11.9 and E119 are the same ICD-10 code; a number keeps its dot.
_ICD10_DOT = re.compile(r"(?<=^[a-z][0-9][0-9a-z])\.(?=[0-9a-z]{1,4}$)")
_LATIN = frozenset(string.ascii_letters)
_LOOKALIKES = str.maketrans(
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u0406\u0405\u0408\u0430\u0441\u0435\u043e\u0440\u0445\u0443\u0456\u0455\u0458\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf",
    "ABEKMHOPCTYXISJaceopxyisjABEZHIKMNOPTYXo",
)
"""Cyrillic and Greek letters that look like Latin ones."""
# Invisible fillers, joiners and variation selectors that Unicode categorizes as letters and marks.
_FILLERS = frozenset([0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0])
_SELECTORS = (range(0x180B, 0x1810), range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))


def canonical_form(value: str | None) -> str:
    """Return the form that all variants of a value share.

    >>> variants = "HIV" + chr(0xA0), "hiv" + chr(0x200B), " Hiv", chr(0xFF28) + "iv"
    >>> {canonical_form(variant) for variant in variants}
    {'hiv'}
    >>> canonical_form("E11.9") == canonical_form("e119"), canonical_form("25.0") == canonical_form("250")
    (True, False)
    """
    if value is not None and value.isascii() and value.isprintable():  # ASCII has no invisible or variant forms
        return _ICD10_DOT.sub("", " ".join(value.lower().split()))
    words = "".join(map(_visible_form, unicodedata.normalize("NFKC", value or ""))).split()
    text = " ".join(word.translate(_LOOKALIKES) if _LATIN & set(word) else word for word in words)
    return _ICD10_DOT.sub("", unicodedata.normalize("NFKC", text.casefold()))


def _visible_form(character: str) -> str:
    """Map every kind of space to a blank and every invisible character to nothing."""
    if character.isspace():
        return " "
    hidden = unicodedata.category(character) in ("Cf", "Cc") or ord(character) in _FILLERS
    return "" if hidden or any(ord(character) in block for block in _SELECTORS) else character
