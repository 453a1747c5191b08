"""Spellings: values that a reader takes for one must not be counted as several."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from unicodedata import category, normalize

from reticent.audit.verdict import Finding, none_of

if TYPE_CHECKING:
    from collections.abc import Iterable

_GAPS = re.compile(r"\s+")


def same(value: str | None) -> str:
    """One form for all spellings: compatible characters, case and spaces are no difference; nothing is empty."""
    if value is not None and value.isascii():  # its own compatible form, and without invisible signs
        return _GAPS.sub(" ", value.lower()).strip()
    plain = normalize("NFKC", normalize("NFKC", value or "").lower().casefold())
    return _GAPS.sub(" ", "".join(sign for sign in plain if category(sign) != "Cf")).strip()


def check_spellings(values: Iterable[str | None], where: str) -> Finding:
    """No two published values are spellings of one."""
    distinct = set(values)
    return none_of(
        "no two values are spellings of one", len(distinct) - len({same(value) for value in distinct}), where
    )
