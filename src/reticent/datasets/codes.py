"""The three-character ICD-10 categories that a hospital may use as main diagnosis, and who can have them.

External causes (chapter XX) and special purposes (XXII) are never a main diagnosis and are omitted.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reticent.policy.icd10 import BLOCKS, CHAPTERS

_TEXT = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
_LISTS = {name: tuple(words.split()) for name, words in (line.split(": ") for line in _TEXT.splitlines())}
_PARTS = {name: [word.split("/") for word in words] for name, words in _LISTS.items()}

FEMALE = _LISTS["female"]
"""Ranges that occur only in women."""

MALE = _LISTS["male"]
"""Ranges that occur only in men."""

AGES = tuple((span, int(low), int(high)) for span, low, high in _PARTS["ages"])
"""Ranges that occur only between two ages, both included."""

FAVORED = tuple((span, int(low), int(high), float(factor)) for span, low, high, factor in _PARTS["favored"])
"""Ranges with a factor between two ages, both included."""

CHRONIC = _LISTS["chronic"]
"""Ranges of chronic illnesses, which return with the same person."""

BIRTH = ("Z38-Z38",)
"""Ranges that only a person's first admission can have."""

DEATH = ("R95-R96", "R98-R99")
"""Ranges that only a person's last admission can have."""

ONCE = (*BIRTH, *DEATH, "K35-K37", "O80-O84", "Z37-Z37")
"""Ranges that a person has at most once within a year."""

SEASONS = tuple((span, curve) for span, curve in _PARTS["seasons"])
"""Ranges with a season, and the name of its curve."""

LEADING = _LISTS["leading"]
"""The frequent categories; within each chapter, the most frequent first."""


def _codes() -> Iterator[tuple[str, int]]:
    unassigned = set(_LISTS["unassigned"])  # by the classification
    for first, last in BLOCKS:
        chapter = next(i for i, (low, high, _) in enumerate(CHAPTERS) if low <= first <= high)
        if CHAPTERS[chapter][2] in ("XX", "XXII"):
            continue
        letters = (first[0], last[0])
        for letter in dict.fromkeys(letters):
            low = int(first[1:]) if letter == first[0] else 0
            high = int(last[1:]) if letter == last[0] else 99
            names = (f"{letter}{number:02d}" for number in range(low, high + 1))
            yield from ((name, chapter) for name in names if name not in unassigned)


_PAIRS = tuple(_codes())

CODES: tuple[str, ...] = tuple(code for code, _ in _PAIRS)
"""All categories, in order."""

CHAPTER_OF: tuple[int, ...] = tuple(chapter for _, chapter in _PAIRS)
"""The position of each category's chapter in ``reticent.policy.icd10.CHAPTERS``."""


def is_within(code: str, span: str) -> bool:
    """Whether a category is in a range such as ``C51-C58``.

    >>> is_within("C53", "C51-C58"), is_within("C60", "C51-C58")
    (True, False)
    """
    first, last = span.split("-")
    return first <= code <= last


def codes_in(spans: tuple[str, ...]) -> NDArray[np.bool_]:
    """Return which of ``CODES`` are in one of the ranges."""
    return np.array([any(is_within(code, span) for span in spans) for code in CODES])
