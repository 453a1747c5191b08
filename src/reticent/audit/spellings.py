"""Spellings: values that a reader takes for one must not be counted as several."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from unicodedata import category, normalize

from reticent.audit.verdict import Finding, none_of

if TYPE_CHECKING:
    from collections.abc import Iterable

_GAPS = re.compile(r"\s+")
_ICD10 = re.compile(r"([a-z]\d[0-9a-z])\.([0-9a-z]{1,4})")


def same(value: str | None) -> str:
    """One form for all spellings: compatible characters, case, spaces and the dot of an ICD-10 code are no difference; nothing is empty."""
    if value is not None and value.isascii():  # its own compatible form, and without invisible signs
        plain = value.lower()
    else:
        folded = normalize("NFKC", normalize("NFKC", value or "").lower().casefold())
        plain = "".join(sign for sign in folded if category(sign) != "Cf")
    text = _GAPS.sub(" ", plain).strip()
    code = _ICD10.fullmatch(text)
    return text if code is None else code[1] + code[2]


def check_spellings(values: Iterable[str | None], where: str) -> Finding:
    """No two published values are spellings of one."""
    distinct = set(values)
    return none_of(
        "no two values are spellings of one", len(distinct) - len({same(value) for value in distinct}), where
    )
