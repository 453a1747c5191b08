"""What a published cell may stand for: a number, a date, an interval, a set, a prefix, a node, anything.

A cell is text or a number as it was released. `extent` reads it as a stretch of the number line where it is one; dates count
days, so that months, quarters and years are stretches, too.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from dataclasses import dataclass
from typing import Any

ANY = "*"
OR_MISSING = " or missing"
"""At the end of a cell: it stands for what comes before, or was empty."""
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_RANGE = re.compile(rf"([\[(])\s*({_NUMBER})\s*,\s*({_NUMBER})\s*([\])])")
_BELOW, _ABOVE = re.compile(rf"<\s*({_NUMBER})"), re.compile(rf"({_NUMBER})\+")
_PLAIN_NUMBER = re.compile(_NUMBER)
_CODES = re.compile(r"\[([^,\[\]]+), ([^,\[\]]+)\]")
_YEAR, _QUARTER, _MONTH = re.compile(r"(\d{4})"), re.compile(r"(\d{4})-Q([1-4])"), re.compile(r"(\d{4})-(\d{2})")


@dataclass(frozen=True)
class Extent:
    """A stretch of the number line; `closed` says whether its upper end belongs to it."""

    low: float
    high: float
    closed: bool = True
    open_low: bool = False

    @property
    def whole(self) -> bool:
        """Both ends are whole numbers, so that it can be counted."""
        return self.low.is_integer() and self.high.is_integer()

    def ends(self) -> tuple[float, float]:
        """First and last whole number in it."""
        return self.low + self.open_low, self.high if self.closed else self.high - 1

    def days(self) -> Extent:
        """The whole days that moments of time lie in."""
        return Extent(float(math.floor(self.low)), float(math.floor(self.high)), self.closed, self.open_low)


def known_part(cell: Any) -> str:
    """A cell without what it says of missing values."""
    return str(cell).strip().removesuffix(OR_MISSING)


def number_extent(cell: Any) -> Extent | None:
    """A cell as a stretch of numbers; None if it is none."""
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
    """A cell as a stretch of days: a day, a month, a quarter, a year, or an interval of days; None if it is none."""
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
    """Share of a cell's stretch that lies in the asked one; whether all of it does; whether any of it does.

    A column that holds fractions is `real`: its stretches are not counted in whole numbers.
    """
    if not real and cell.whole and has_whole_ends(asked) and math.isfinite(cell.low + cell.high):
        low, high = cell.ends()
        first, last = asked.ends()
        inside = max(0.0, min(high, last) - max(low, first) + 1)
        share = inside / max(high - low + 1, 1)
        return share, share >= 1, share > 0
    return _continuous(cell, asked)


def has_whole_ends(asked: Extent) -> bool:
    """Every finite end is a whole number."""
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
    """Whether two stretches that touch in one point both hold it."""
    return all((at < side.high or side.closed) and (at > side.low or not side.open_low) for side in (cell, asked))


def _finite(cell: Extent) -> tuple[float, float]:
    """Ends to divide by: "<7" is taken to begin at 0, "90+" to be as long as it is high; for the point estimate only."""
    low, high = cell.low, cell.high
    if not math.isfinite(low):
        low = min(0.0, 2 * high - 1) if math.isfinite(high) else 0.0
    if not math.isfinite(high):
        high = low + max(abs(low), 1.0)
    return low, high


def members(cell: str) -> list[str] | None:
    """The values of a set such as `{a, b}`; None if the cell is none."""
    cell = known_part(cell)
    if cell.startswith("{") and cell.endswith("}"):
        return [part.strip() for part in cell[1:-1].split(",")]
    return None


def prefix(cell: str) -> str | None:
    """The known beginning of a code such as `12***`; None if the cell is none."""
    return cell.rstrip(ANY) if cell.endswith(ANY) and cell != ANY else None


def digit_range(cell: Any) -> Extent | None:
    """A cut code of digits such as `12***` as the numbers that it may stand for; None if the cell is none."""
    text = known_part(cell)
    beginning = prefix(text)
    if not beginning or not beginning.isdecimal():
        return None
    room = 10 ** (len(text) - len(beginning))
    return Extent(float(int(beginning) * room), float((int(beginning) + 1) * room - 1))


def code_range(cell: str) -> tuple[str, str] | None:
    """First and last of an interval of codes such as `[00137, 01096]`; None if the cell is none."""
    match = _CODES.fullmatch(cell)
    return None if match is None else (match[1], match[2])
