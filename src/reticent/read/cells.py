"""Parses published cells: numbers, dates, intervals, sets, prefixes, nodes and `*`.

A cell is text or a number. `number_extent` and `date_extent` read it as a segment of the number line; dates count days,
so months, quarters and years are segments, too.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from dataclasses import dataclass
from typing import Any

ANY = "*"
OR_MISSING = " or missing"
"""Suffix of a cell that has the value before the suffix or was empty."""
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_RANGE = re.compile(rf"([\[(])\s*({_NUMBER})\s*,\s*({_NUMBER})\s*([\])])")
_BELOW, _ABOVE = re.compile(rf"<\s*({_NUMBER})"), re.compile(rf"({_NUMBER})\+")
_PLAIN_NUMBER = re.compile(_NUMBER)
_CODES = re.compile(r"\[([^,\[\]]+), ([^,\[\]]+)\]")
_YEAR, _QUARTER, _MONTH = re.compile(r"(\d{4})"), re.compile(r"(\d{4})-Q([1-4])"), re.compile(r"(\d{4})-(\d{2})")


@dataclass(frozen=True)
class Extent:
    """A segment of the number line; `closed` says whether the upper end is included."""

    low: float
    high: float
    closed: bool = True
    open_low: bool = False

    @property
    def whole(self) -> bool:
        """Whether both ends are whole numbers, so that the whole numbers inside can be counted."""
        return self.low.is_integer() and self.high.is_integer()

    def ends(self) -> tuple[float, float]:
        """Return the first and last whole number of the segment."""
        return self.low + self.open_low, self.high if self.closed else self.high - 1

    def days(self) -> Extent:
        """Return the segment with its times rounded down to whole days."""
        return Extent(float(math.floor(self.low)), float(math.floor(self.high)), self.closed, self.open_low)


def known_part(cell: Any) -> str:
    """Return a cell without the suffix for missing values."""
    return str(cell).strip().removesuffix(OR_MISSING)


def number_extent(cell: Any) -> Extent | None:
    """Return a cell as a segment of numbers; None for other cells."""
    if isinstance(cell, int | float):
        return Extent(float(cell), float(cell)) if math.isfinite(cell) else None
    text = known_part(cell)
    if _PLAIN_NUMBER.fullmatch(text):
        return Extent(float(text), float(text))
    if match := _RANGE.fullmatch(text):
        first, low, high, last = match.groups()
        return Extent(float(low), float(high), last == "]", first == "(")
    if match := _BELOW.fullmatch(text):
        return Extent(-math.inf, float(match[1]), closed=False)
    if match := _ABOVE.fullmatch(text):
        return Extent(float(match[1]), math.inf)
    return None


def date_extent(cell: Any) -> Extent | None:
    """Return a day, month, quarter, year or interval of days as a segment of days; None for other cells."""
    if isinstance(cell, dt.date) and not isinstance(cell, dt.datetime):
        day = float(cell.toordinal())
        return Extent(day, day)
    text = known_part(cell)
    if text[:1] in "[(" and text[-1:] in "])" and text.count(",") == 1:
        first, last = (date_extent(part) for part in text[1:-1].split(","))
        return None if first is None or last is None else Extent(first.low, last.high, text.endswith("]"))
    try:
        return _date(text)
    except ValueError:
        return None


def _date(text: str) -> Extent | None:
    if match := _YEAR.fullmatch(text):
        return _months(int(match[1]), 1, 12)
    if match := _QUARTER.fullmatch(text):
        return _months(int(match[1]), 3 * int(match[2]) - 2, 3)
    if match := _MONTH.fullmatch(text):
        return _months(int(match[1]), int(match[2]), 1)
    if len(text) < 8:
        return None
    moment = dt.datetime.fromisoformat(text)
    day = moment.date().toordinal() + (moment.hour * 60 + moment.minute) / 1440 + moment.second / 86400
    return Extent(day, day)


def _months(year: int, month: int, count: int) -> Extent:
    first = dt.date(year, month, 1)
    year, month = year + (month + count - 1) // 12, (month + count - 1) % 12 + 1
    return Extent(float(first.toordinal()), float(dt.date(year, month, 1).toordinal() - 1))


def overlap(cell: Extent, asked: Extent, *, real: bool = False) -> tuple[float, bool, bool]:
    """Return the share of a cell's segment inside another segment, and whether all or any of it is inside.

    Set `real` for a column with fractions: its segments are not counted in whole numbers.
    """
    if not real and cell.whole and has_whole_ends(asked) and math.isfinite(cell.low + cell.high):
        low, high = cell.ends()
        first, last = asked.ends()
        inside = max(0.0, min(high, last) - max(low, first) + 1)
        share = inside / max(high - low + 1, 1)
        return share, share >= 1, share > 0
    return _continuous(cell, asked)


def has_whole_ends(asked: Extent) -> bool:
    """Whether every finite end is a whole number."""
    return all(end.is_integer() for end in (asked.low, asked.high) if math.isfinite(end))


def _continuous(cell: Extent, asked: Extent) -> tuple[float, bool, bool]:
    above = asked.low < cell.low or (asked.low == cell.low and (not asked.open_low or cell.open_low))
    below = cell.high < asked.high or (cell.high == asked.high and (asked.closed or not cell.closed))
    if above and below:
        return 1.0, True, True
    low, high = max(cell.low, asked.low), min(cell.high, asked.high)
    if low > high or (low == high and not _share_point(cell, asked, low)):
        return 0.0, False, False
    start, end = _finite(cell)
    return min(1.0, max(0.0, (min(high, end) - max(low, start)) / max(end - start, 1e-300))), False, True


def _share_point(cell: Extent, asked: Extent, at: float) -> bool:
    """Whether two segments that touch in one point both contain it."""
    return all((at < side.high or side.closed) and (at > side.low or not side.open_low) for side in (cell, asked))


def _finite(cell: Extent) -> tuple[float, float]:
    """Return finite ends for the point estimate: "<7" starts at 0, and "90+" is as long as its lower end."""
    low, high = cell.low, cell.high
    if not math.isfinite(low):
        low = min(0.0, 2 * high - 1) if math.isfinite(high) else 0.0
    if not math.isfinite(high):
        high = low + max(abs(low), 1.0)
    return low, high


def members(cell: str) -> list[str] | None:
    """Return the values of a set such as `{a, b}`; None for other cells."""
    cell = known_part(cell)
    if cell.startswith("{") and cell.endswith("}"):
        return [part.strip() for part in cell[1:-1].split(",")]
    return None


def prefix(cell: str) -> str | None:
    """Return the prefix of a code such as `12***`; None for other cells."""
    return cell.rstrip(ANY) if cell.endswith(ANY) and cell != ANY else None


def digit_range(cell: Any) -> Extent | None:
    """Return the numbers that a truncated code of digits such as `12***` may be; None for other cells."""
    text = known_part(cell)
    beginning = prefix(text)
    if not beginning or not beginning.isdecimal():
        return None
    room = 10 ** (len(text) - len(beginning))
    return Extent(float(int(beginning) * room), float((int(beginning) + 1) * room - 1))


def code_range(cell: str) -> tuple[str, str] | None:
    """Return the first and last code of an interval such as `[00137, 01096]`; None for other cells."""
    match = _CODES.fullmatch(cell)
    return None if match is None else (match[1], match[2])
