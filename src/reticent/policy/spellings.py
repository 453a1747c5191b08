"""Spellings of one value: what they share, whoever has to tell values apart."""

from __future__ import annotations

import re
import string
import unicodedata

# E11.9 and E119 are one code of ICD-10; a number keeps its dot.
_DOT = re.compile(r"(?<=^[a-z][0-9][0-9a-z])\.(?=[0-9a-z]{1,4}$)")
_LATIN = frozenset(string.ascii_letters)
_LOOKALIKES = str.maketrans(
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u0406\u0405\u0408\u0430\u0441\u0435\u043e\u0440\u0445\u0443\u0456\u0455\u0458\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf",
    "ABEKMHOPCTYXISJaceopxyisjABEZHIKMNOPTYXo",
)
"""Cyrillic and Greek letters inside a Latin word."""
# Fillers, joiners and variation selectors, which are letters and marks by their kind.
_FILLERS = frozenset([0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0])
_SELECTORS = (range(0x180B, 0x1810), range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))


def folded(value: str | None) -> str:
    """What all spellings of a value share.

    >>> folded("HIV" + chr(0xA0)) == folded("hiv" + chr(0x200B)) == folded(" Hiv") == folded(chr(0xFF28) + "iv")
    True
    >>> folded("E11.9") == folded("e119"), folded("25.0") == folded("250")
    (True, False)
    """
    if value is not None and value.isascii() and value.isprintable():  # nothing to normalise, nothing invisible
        return _DOT.sub("", " ".join(value.lower().split()))
    words = "".join(map(_seen, unicodedata.normalize("NFKC", value or ""))).split()
    text = " ".join(word.translate(_LOOKALIKES) if _LATIN & set(word) else word for word in words)
    return _DOT.sub("", unicodedata.normalize("NFKC", text.casefold()))


def _seen(sign: str) -> str:
    """A sign as a reader sees it: spaces are alike, and what is invisible is nothing."""
    if sign.isspace():
        return " "
    hidden = unicodedata.category(sign) in ("Cf", "Cc") or ord(sign) in _FILLERS
    return "" if hidden or any(ord(sign) in some for some in _SELECTORS) else sign
