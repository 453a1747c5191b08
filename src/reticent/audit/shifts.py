"""Shifted dates: whether all dates of a person moved by one number of days, as far as the published labels tell.

A label stands for the days from its first to its last; together with the true day it says by how many days that date may have
moved. The dates of a person moved together if one number of days fits all of them.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING

import numpy as np

from reticent.audit.groups import codes

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

_DAY = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_MONTH = re.compile(r"(\d{4})-(\d{2})")
_QUARTER = re.compile(r"(\d{4})-Q([1-4])")
_YEAR = re.compile(r"(\d{4})")
_DECADE = re.compile(r"(\d{3}0)s")
_ANY = "*"


class Moves:
    """Collects, person by person, between which numbers of days all dates may have moved."""

    def __init__(self, most: int, persons: int) -> None:
        self._low = np.full(persons, -most, dtype=np.int64)
        self._high = np.full(persons, most, dtype=np.int64)
        self._wrong = 0

    def add(self, person: Numbers, truth: pa.ChunkedArray, label: pa.ChunkedArray) -> None:
        """Takes in one column: whose each row is, the true day and the published label."""
        (day, days), (name, names) = codes(truth), codes(label)
        known = np.array([_ordinal(text) for text in days], dtype=np.int64)[day]
        spans = np.array([_span(text) for text in names], dtype=np.int64).reshape(-1, 2)[name]
        masked = np.array([text == _ANY for text in names], dtype=np.bool_)[name]
        there = (known >= 0) & (spans[:, 0] >= 0)
        # A missing day may be masked or missing; nothing else may stand for it, nor may it stand for a day.
        self._wrong += int((~there & ~masked & ((known >= 0) | (spans[:, 0] >= 0))).sum())
        np.maximum.at(self._low, person[there], spans[there, 0] - known[there])
        np.minimum.at(self._high, person[there], spans[there, 1] - known[there])

    @property
    def broken(self) -> int:
        """How many persons' dates did not move together, and cells that stand for no day of their person."""
        return self._wrong + int((self._low > self._high).sum())


def _ordinal(text: str | None) -> int:
    try:
        return dt.datetime.fromisoformat(text).toordinal() if text else -1
    except ValueError:
        return -1


def _span(text: str | None) -> tuple[int, int]:
    """The first and the last day of a label; -1 where it is none."""
    if text is None or text == _ANY:
        return -1, -1
    try:
        if match := _DAY.fullmatch(text):
            day = dt.date(int(match[1]), int(match[2]), int(match[3])).toordinal()
            return day, day
        if match := _MONTH.fullmatch(text):
            return _months(int(match[1]), int(match[2]), 1)
        if match := _QUARTER.fullmatch(text):
            return _months(int(match[1]), 3 * int(match[2]) - 2, 3)
        if match := _YEAR.fullmatch(text):
            return _months(int(match[1]), 1, 12)
        if match := _DECADE.fullmatch(text):
            return _months(int(match[1]), 1, 120)
    except ValueError:
        pass
    return -1, -1


def _months(year: int, month: int, count: int) -> tuple[int, int]:
    after = year * 12 + month - 1 + count
    return dt.date(year, month, 1).toordinal(), dt.date(after // 12, after % 12 + 1, 1).toordinal() - 1
