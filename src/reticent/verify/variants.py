"""Variants: several written forms of one value must not count as several values."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from unicodedata import category, normalize

import pyarrow as pa
import pyarrow.compute as pc

from reticent.verify.groups import as_text, codes, encode_column
from reticent.verify.result import Finding, none_of

if TYPE_CHECKING:
    from collections.abc import Iterable

_GAPS = re.compile(r"\s+")
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Invisible characters that Unicode classifies as letters and marks."""
_ICD10 = re.compile(r"([a-z]\d[0-9a-z])\.([0-9a-z]{1,4})")
_WHOLE = re.compile(r"([-+]?[0-9]+)[.]0+")
_NOT_PLAIN = r"[^!-\-/-~]|^$"
"""Matches names that may have several written forms, and empty names."""
_FOREIGN = re.compile(r"\S*[A-Za-z]\S*")
_LOOKALIKES = str.maketrans(
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u0406\u0405\u0408\u0430\u0441\u0435\u043e\u0440\u0445\u0443\u0456\u0455\u0458\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf",
    "ABEKMHOPCTYXISJaceopxyisjABEZHIKMNOPTYXo",
)
"""Cyrillic and Greek letters that look like Latin ones."""


def canonical_text(value: str | None) -> str:
    """Return one form for all variants of a value; a missing value is the empty text.

    Ignores compatibility characters, case, spaces, the dot of an ICD-10 code, invisible characters, and look-alike
    letters of other scripts inside a Latin word.
    """
    if value is not None and value.isascii() and value.isprintable():  # needs no Unicode normalization
        text = " ".join(value.lower().split())
    else:
        latin = _FOREIGN.sub(lambda word: word[0].translate(_LOOKALIKES), normalize("NFKC", value or ""))
        small = normalize("NFKC", _INVISIBLE.sub("", latin).lower().casefold())
        plain = "".join(sign for sign in small if sign.isspace() or category(sign) not in ("Cf", "Cc"))
        text = _GAPS.sub(" ", plain).strip()
    code = _ICD10.fullmatch(text) if "." in text else None
    return text if code is None else code[1] + code[2]


def canonical_name(name: str | None) -> str | None:
    """Return one form for all variants of a person's identifier; None if nothing visible remains.

    Ignores compatibility and invisible characters, spaces, and zero decimals of a whole number. Case distinguishes.
    """
    if not name:
        return None
    text = name
    if not (name.isascii() and name.isprintable()):
        visible = _INVISIBLE.sub("", normalize("NFKC", name))
        text = normalize("NFKC", "".join(s for s in visible if s.isspace() or category(s) not in ("Cf", "Cc")))
    text = _GAPS.sub(" ", text).strip()
    number = _WHOLE.fullmatch(text)
    return number[1] if number else text or None


def merge_person_names(table: pa.Table, person: str | None) -> pa.Table:
    """Return the input with one identifier per person; the verifier merges variants itself."""
    if person is None or person not in table.column_names or pa.types.is_integer(table[person].type):
        return table
    names = as_text(table[person])
    if not pc.any(pc.match_substring_regex(names, _NOT_PLAIN)).as_py():
        return table
    code, known = codes(encode_column(names))
    forms = pa.array([canonical_name(name) for name in known], pa.string())
    return table.set_column(table.column_names.index(person), person, forms.take(pa.array(code)))


def check_variants(values: Iterable[str | None], where: str) -> Finding:
    """Check that no two published values are variants of one value."""
    distinct = set(values)
    return none_of(
        "no two values are variants of one value",
        len(distinct) - len({canonical_text(value) for value in distinct}),
        where,
    )
