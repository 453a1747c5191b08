"""Spellings: values that a reader takes for one must not be counted as several."""

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
"""Signs that nobody sees, though they are letters and marks by their kind."""
_ICD10 = re.compile(r"([a-z]\d[0-9a-z])\.([0-9a-z]{1,4})")
_WHOLE = re.compile(r"([-+]?[0-9]+)[.]0+")
_NOT_PLAIN = r"[^!-\-/-~]|^$"
"""What a name must have to be written in several ways, or to be none."""
_FOREIGN = re.compile(r"\S*[A-Za-z]\S*")
_LOOKALIKES = str.maketrans(
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u0406\u0405\u0408\u0430\u0441\u0435\u043e\u0440\u0445\u0443\u0456\u0455\u0458\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf",
    "ABEKMHOPCTYXISJaceopxyisjABEZHIKMNOPTYXo",
)
"""Cyrillic and Greek letters that look like Latin ones."""


def canonical_text(value: str | None) -> str:
    """One form for all spellings: compatible characters, case, spaces and the dot of an ICD-10 code are no difference; nothing is empty.

    Nor are signs that nobody sees, and letters of other scripts inside a Latin word that look like Latin ones.
    """
    if (
        value is not None and value.isascii() and value.isprintable()
    ):  # its own compatible form, with no gaps but spaces
        text = " ".join(value.lower().split())
    else:
        latin = _FOREIGN.sub(lambda word: word[0].translate(_LOOKALIKES), normalize("NFKC", value or ""))
        small = normalize("NFKC", _INVISIBLE.sub("", latin).lower().casefold())
        plain = "".join(sign for sign in small if sign.isspace() or category(sign) not in ("Cf", "Cc"))
        text = _GAPS.sub(" ", plain).strip()
    code = _ICD10.fullmatch(text) if "." in text else None
    return text if code is None else code[1] + code[2]


def canonical_name(name: str | None) -> str | None:
    """One form for all spellings of a person's name: signs, spaces and the zeros behind a whole number are no other person; case is.

    A name of which nothing is seen is missing.
    """
    if not name:
        return None
    text = name
    if not (name.isascii() and name.isprintable()):
        shown = _INVISIBLE.sub("", normalize("NFKC", name))
        text = normalize("NFKC", "".join(s for s in shown if s.isspace() or category(s) not in ("Cf", "Cc")))
    text = _GAPS.sub(" ", text).strip()
    number = _WHOLE.fullmatch(text)
    return number[1] if number else text or None


def merge_person_names(table: pa.Table, person: str | None) -> pa.Table:
    """The input with every person under one name; the judge takes nobody's word for who is who."""
    if person is None or person not in table.column_names or pa.types.is_integer(table[person].type):
        return table
    names = as_text(table[person])
    if not pc.any(pc.match_substring_regex(names, _NOT_PLAIN)).as_py():
        return table
    code, known = codes(encode_column(names))
    forms = pa.array([canonical_name(name) for name in known], pa.string())
    return table.set_column(table.column_names.index(person), person, forms.take(pa.array(code)))


def check_variants(values: Iterable[str | None], where: str) -> Finding:
    """No two published values are spellings of one."""
    distinct = set(values)
    return none_of(
        "no two values are spellings of one", len(distinct) - len({canonical_text(value) for value in distinct}), where
    )
