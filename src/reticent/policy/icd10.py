"""The skeleton of ICD-10: chapters and blocks as ranges of three-character categories.

Codes of the international edition of the World Health Organization (2019), finest blocks, without titles. Two ranges
are as wide as in earlier editions, so that older records still fit: A90-A99 (2019: A92-A99) and chapter XXII as
U00-U99 (2019: U00-U85).

A range contains a code when ``first <= code[:3] <= last`` in string order. Blocks never overlap, and each block lies
inside one chapter. `icd10.txt` has a line per chapter: Roman numeral, range, blocks; a block of one category is
written once.
"""

from __future__ import annotations

from pathlib import Path

Chapter = tuple[str, str, str]
Block = tuple[str, str]

_LINES = [line.split(": ") for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()]


def _block(text: str) -> Block:
    first, _, last = text.partition("-")
    return first, last or first


CHAPTERS: tuple[Chapter, ...] = tuple((*_block(head.split()[1]), head.split()[0]) for head, _ in _LINES)
"""First category, last category and Roman numeral of each of the 22 chapters, sorted by code."""

BLOCKS: tuple[Block, ...] = tuple(_block(text) for _, blocks in _LINES for text in blocks.split())
"""First and last category of every block, sorted by code."""
