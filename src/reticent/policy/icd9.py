"""The skeleton of ICD-9-CM: chapters and blocks as ranges of categories, and the category of a code.

Codes of the last edition (2013), without titles. A category outside all blocks uses its chapter as its block.
Codes are read with or without the dot, and also where a program has dropped leading zeros (8 for 008).
`icd9.txt` has a line per chapter: its range and its blocks.
"""

from __future__ import annotations

import bisect
import re
from pathlib import Path

_LINES = [line.split(": ") for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()]
CHAPTERS = [chapter for chapter, _ in _LINES]
"""The first and last category of each chapter, sorted by code."""
BLOCKS = [block for _, blocks in _LINES for block in blocks.split()]
"""The first and last category of each block, sorted by code."""

CODE = re.compile(r"(V\d{1,2}|E\d{3}|\d{1,3})(\.\d{1,2})?|V\d{3,4}|E\d{4}|\d{4,5}")


def category(code: str) -> str | None:
    """Return the category of a code (three characters, four for E codes), or None for text that is not a code.

    >>> category("250.83"), category("8"), category("V5789"), category("flu")
    ('250', '008', 'V57', None)
    """
    text = code.strip().upper()
    if not CODE.fullmatch(text):
        return None
    head, dot, _ = text.partition(".")
    letter = head[0] if head[0] in "EV" else ""
    size = 2 if letter == "V" else 3
    digits = head[len(letter) :]
    return letter + (digits.zfill(size) if dot or len(digits) <= size else digits[:size])


def range_of(code: str, ranges: list[str]) -> str | None:
    """Return the range that contains a category, or None."""
    at = bisect.bisect_right(ranges, code, key=lambda pair: pair.partition("-")[0]) - 1
    return ranges[at] if at >= 0 and code <= ranges[at].partition("-")[2] else None
