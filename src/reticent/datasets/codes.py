"""The three-character ICD-10 categories that a hospital may use as main diagnosis, and who can have them.

External causes (chapter XX) and special purposes (XXII) are never a main diagnosis and are omitted.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from reticent.policy.icd10 import BLOCKS, CHAPTERS

# Codes that the classification has not assigned.
_UNASSIGNED = """
A45 A47 A61 A62 A72 A73 A76 B28 B29 B31 B32 B61 B62 B63 C35 C36 C87 C89 D08 D85 D87 D88 E33 E57 E62 E81 E82 F26 F27
F35 F36 F37 F46 F47 F56 F57 F58 F67 F74 F75 F76 F77 F85 F86 F87 F96 F97 G42 H41 H56 I14 I75 I76 J83 J97 K24 K84 L06
L07 L61 L69 L96 M52 M74 M78 M97 M98 N38 O27 O37 O38 O39 P06 P73 P82 Q08 Q09 Q88 Q94 R08 R37 R38 R66 R67 R97 T72 T76
T77 Z05 Z06 Z07
"""

FEMALE = ("C51-C58", "D06-D06", "D25-D28", "N70-N77", "N80-N98", "O00-O99", "Z31-Z37", "Z39-Z39")
"""Ranges that occur only in women."""

MALE = ("C60-C63", "D29-D29", "N40-N51")
"""Ranges that occur only in men."""

AGES: tuple[tuple[str, int, int], ...] = (
    ("O00-O99", 15, 50),
    ("Z31-Z37", 15, 50),
    ("Z39-Z39", 15, 50),
    ("Z38-Z38", 0, 0),
    ("P00-P96", 0, 0),
    ("C51-C63", 25, 120),
    ("N40-N40", 45, 120),
    ("F00-F03", 60, 120),
    ("G30-G31", 55, 120),
    ("G20-G20", 45, 120),
    ("F10-F69", 10, 120),
    ("F80-F98", 3, 30),
    ("H25-H25", 45, 120),
    ("I20-I25", 30, 120),
    ("J21-J21", 0, 4),
    ("M15-M19", 35, 120),
    ("M80-M82", 45, 120),
    ("R54-R54", 75, 120),
    ("R95-R95", 0, 0),
)
"""Ranges that occur only between two ages, both included."""

FAVORED: tuple[tuple[str, int, int, float], ...] = (
    ("F00-F05", 65, 120, 10.0),
    ("G30-G31", 65, 120, 4.0),
    ("H25-H26", 65, 120, 3.0),
    ("J12-J12", 0, 4, 3.0),
    ("J20-J21", 0, 4, 4.0),
    ("J35-J35", 1, 14, 4.0),
    ("K35-K35", 5, 34, 4.0),
    ("S52-S52", 5, 14, 3.0),
    ("S72-S72", 75, 120, 4.0),
    ("Z38-Z38", 0, 0, 8.0),
)
"""Ranges with a factor between two ages, both included."""

CHRONIC = (
    *("B18-B24", "C00-C97", "D55-D58", "E03-E07", "E10-E14", "E66-E66", "E84-E84", "F00-F03", "F10-F45", "F60-F84"),
    *("G10-G12", "G20-G40", "G43-G47", "G70-G82", "H25-H26", "H35-H36", "H40-H42", "I05-I15", "I20-I20", "I25-I25"),
    *("I34-I36", "I42-I42", "I48-I50", "I69-I70", "J40-J47", "J84-J84", "K50-K51", "K70-K70", "K73-K76", "K86-K86"),
    *("L20-L20", "L40-L40", "L89-L89", "M05-M19", "M30-M35", "M45-M51", "M80-M82", "N18-N18", "Q00-Q99", "T84-T84"),
)
"""Ranges of chronic illnesses, which return with the same person."""

BIRTH = ("Z38-Z38",)
"""Ranges that only a person's first admission can have."""

DEATH = ("R95-R96", "R98-R99")
"""Ranges that only a person's last admission can have."""

ONCE = (*BIRTH, *DEATH, "K35-K37", "O80-O84", "Z37-Z37")
"""Ranges that a person has at most once within a year."""

SEASONS: tuple[tuple[str, str], ...] = (
    ("A00-A09", "warm"),
    ("E86-E86", "warm"),
    ("J00-J06", "cold"),
    ("J09-J11", "flu"),
    ("J12-J22", "cold"),
    ("J40-J47", "cold"),
    ("T67-T67", "warm"),
)
"""Ranges with a season, and the name of its curve."""

_LEADING = """
A41 A09 A04 A46 A08 B34 B02 B99 C34 C50 C18 C61 C20 C25 C67 C44 D12 C79 C78 D50 D64 D70 E11 E10 E86 E87 E05 E66
F10 F32 F33 F20 F43 F05 F25 F00 G40 G45 G47 G35 G20 G56 G30 H25 H35 H40 H33 H02 H81 H66 H91 I50 I48 I21 I63 I70 I25 I20
I10 I35 I26 J18 J44 J35 J34 J20 J21 J12 J69 K80 K40 K57 K29 K56 K35 K85 K21 L02 L03 L40 L89 M17 M16 M54 M51 M48 M75 M23
N39 N20 N13 N17 N18 N40 N83 O80 O70 O42 O36 O34 O60 P07 P22 P59 P05 P08 Q21 Q53 Q66 R07 R55 R10 R42 R29 R00 S06 S72 S52
S82 S42 S22 S32 T84 T81 Z38 Z51 Z50 Z47 Z03
"""
LEADING: tuple[str, ...] = tuple(_LEADING.split())
"""The frequent categories; within each chapter, the most frequent first."""


def _codes() -> Iterator[tuple[str, int]]:
    unassigned = set(_UNASSIGNED.split())
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
