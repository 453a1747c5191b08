"""Shifted dates: check that all dates of a person were shifted by the same number of days.

A label covers the days from its first to its last. With the true day, this bounds the shift of the date. The dates of a
person were shifted together if one number of days fits all of them.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from reticent.arrays import Int64s
from reticent.verify.groups import codes

_ANY = "*"


class DateShifts:
    """Narrow the possible date shift of each person, column by column."""

    def __init__(self, max_days: int, persons: int) -> None:
        self._low = np.full(persons, -max_days, dtype=np.int64)
        self._high = np.full(persons, max_days, dtype=np.int64)
        self._wrong = 0

    def add(self, person: Int64s, true_days: pa.ChunkedArray, label: pa.ChunkedArray) -> None:
        """Add one column: the person, the true day and the published label of each row."""
        (day, days), (name, names) = codes(true_days), codes(label)
        known = np.array([_ordinal(text) for text in days], dtype=np.int64)[day]
        spans = np.array([_span(text) for text in names], dtype=np.int64).reshape(-1, 2)[name]
        masked = np.array([text == _ANY for text in names], dtype=np.bool_)[name]
        dated = (known >= 0) & (spans[:, 0] >= 0)
        # A missing day may be published as missing or masked, never as a day; a day never as missing.
        self._wrong += int((~dated & ~masked & ((known >= 0) | (spans[:, 0] >= 0))).sum())
        np.maximum.at(self._low, person[dated], spans[dated, 0] - known[dated])
        np.minimum.at(self._high, person[dated], spans[dated, 1] - known[dated])

    @property
    def broken(self) -> int:
        """Number of persons whose dates have no common shift, plus cells that do not fit their true day."""
        return self._wrong + int((self._low > self._high).sum())


def _ordinal(text: str | None) -> int:
    try:
        return dt.datetime.fromisoformat(text).toordinal() if text else -1
    except ValueError:
        return -1


def _span(text: str | None) -> tuple[int, int]:
    """Return the first and the last day of a label; -1 if it is no label of days."""
    for pattern, parts in _PARTS:
        if match := pattern.fullmatch(text or ""):
            try:
                return parts(*map(int, match.groups()))
            except ValueError:
                break
    return -1, -1


def _day(year: int, month: int, day: int) -> tuple[int, int]:
    ordinal = dt.date(year, month, day).toordinal()
    return ordinal, ordinal


def _months(year: int, month: int, count: int) -> tuple[int, int]:
    after = year * 12 + month - 1 + count
    return dt.date(year, month, 1).toordinal(), dt.date(after // 12, after % 12 + 1, 1).toordinal() - 1


_PARTS: tuple[tuple[re.Pattern[str], Callable[..., tuple[int, int]]], ...] = (
    (re.compile(r"(\d{4})-(\d{2})-(\d{2})"), _day),
    (re.compile(r"(\d{4})-(\d{2})"), lambda year, month: _months(year, month, 1)),
    (re.compile(r"(\d{4})-Q([1-4])"), lambda year, quarter: _months(year, 3 * quarter - 2, 3)),
    (re.compile(r"(\d{4})"), lambda year: _months(year, 1, 12)),
    (re.compile(r"(\d{3}0)s"), lambda decade: _months(decade, 1, 120)),
)
