"""Finds the words that stand for a missing cell: `?`, `NA`, `-9` and their kin."""

from __future__ import annotations

import re
from collections.abc import Mapping

_WORDS = ("?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "missing", "Missing", "-", "--", ".")
_NUMBERS = ("-9", "-99", "-999", "-9999", "-9.0", "-99.0", "-999.0")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_LETTERS = re.compile(r"[A-Z]{2}")
_MANY = 10


def missing_markers(columns: Mapping[str, Mapping[str, int]]) -> tuple[str, ...]:
    """The markers among the values of the columns, each given with its counts.

    A word counts where no column seems to mean something else by it: NA among codes of two letters is Namibia, and -9 among other
    negative numbers is a number.

    >>> missing_markers({"race": {"Asian": 3, "?": 2}, "score": {"-9": 2, "11": 7}, "cold": {"-9": 1, "-12": 4}})
    ('?',)
    """
    tried = (word for word in _WORDS + _NUMBERS if any(word in counts for counts in columns.values()))
    return tuple(word for word in tried if all(_stands_out(word, counts) for counts in columns.values()))


def _stands_out(word: str, counts: Mapping[str, int]) -> bool:
    """Whether a word is no value of a column: it is not there, or unlike all that is."""
    if word not in counts:
        return True
    others = [value for value in counts if value not in _WORDS + _NUMBERS]
    if not others:
        return len(counts) == 1 or word in _WORDS
    if word in _NUMBERS:
        return all(_NUMBER.fullmatch(value) and not value.startswith("-") for value in others)
    if word == "NA":
        return not (len(others) >= _MANY and all(_LETTERS.fullmatch(value) for value in others))
    return True
