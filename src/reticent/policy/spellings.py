"""Spellings of one value: what they share, whoever has to tell values apart."""

from __future__ import annotations

import re
import unicodedata

# E11.9 and E119 are one code of ICD-10; a number keeps its dot.
_DOT = re.compile(r"(?<=^[a-z][0-9][0-9a-z])\.(?=[0-9a-z]{1,4}$)")


def folded(value: str | None) -> str:
    """What all spellings of a value share.

    >>> folded("HIV" + chr(0xA0)) == folded("hiv" + chr(0x200B)) == folded(" Hiv") == folded(chr(0xFF28) + "iv")
    True
    >>> folded("E11.9") == folded("e119"), folded("25.0") == folded("250")
    (True, False)
    """
    if value is not None and value.isascii():  # nothing to normalise, nothing invisible
        return _DOT.sub("", " ".join(value.lower().split()))
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", value or "").casefold())
    seen = "".join(" " if c.isspace() else c for c in text if c.isspace() or unicodedata.category(c) != "Cf")
    return _DOT.sub("", " ".join(seen.split()))
