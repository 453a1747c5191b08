"""Guesses hierarchies from values: intervals that follow the distribution, date levels, and trees of adjacent bands."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

_BINS = 16
_MAX_BIN_SHARE = 0.3
"""Share of the records that one even interval may contain; above it, cut points follow the distribution."""
_NUMBER = r"-?\d+(?:\.\d+)?"
_RANGE = re.compile(rf"[\[(]?\s*({_NUMBER})\s*(?:-|\u2013|,|to)\s*({_NUMBER})\s*[\])]?")
_BELOW = re.compile(rf"(?:<=?|under|below|unter|bis)\s*({_NUMBER})")
_ABOVE = re.compile(
    rf"(?:>=?|over|above|ab|\u00fcber)\s*({_NUMBER})|({_NUMBER})\s*(?:\+|plus|(?:and|or) (?:over|older|above|more))"
)
_MAX_BANDS = 40
_BIRTH_YEARS = 25
"""Range of years from which dates are taken for birth dates, not for dates of a clinic's records."""
_MONTHS = 12


def number_levels(counts: Mapping[str, int]) -> dict[str, Any] | None:
    """Return even widths if they divide the records well, otherwise cut points with about equal numbers of records.

    >>> number_levels({str(age): 1 for age in range(20, 90)})
    {'intervals': [5, 10, 20, 40]}
    >>> number_levels({"1": 40, "2": 20, "3": 15, "4": 10, "5": 7, "7": 4, "9": 3, "400": 1})
    {'intervals': [[2, 3, 4], [3]]}
    """
    numbers, times = _sort_numbers(counts)
    span = float(numbers[-1]) - float(numbers[0]) if len(numbers) else 0.0
    if len(numbers) < 3 or not math.isfinite(span):  # 1e400 reads as infinity
        return None
    least = 2.0 if np.equal(np.mod(numbers, 1), 0).all() else 0.0  # a width of 1 joins no whole numbers
    width = max(nice_width(span / _BINS), least)
    bins = np.bincount(np.floor((numbers - numbers[0]) / width).astype(np.int64), weights=times)
    if len(numbers) > 10 and bins.max() <= _MAX_BIN_SHARE * times.sum() and (bins > 0).sum() >= _BINS / 3:
        return {
            "intervals": [_plain_number(width * twice) for twice in (1, 2, 4, 8) if twice == 1 or width * twice < span]
        }
    cuts = _cuts(numbers, times)
    steps = [cuts[2**level - 1 :: 2**level] for level in range(4)]
    nested = [step for at, step in enumerate(steps) if step and step not in steps[:at]]
    return {"intervals": nested} if nested else None


def _sort_numbers(counts: Mapping[str, int]) -> tuple[Any, Any]:
    totals: Counter[float] = Counter()
    for value, count in counts.items():
        totals[float(value)] += count
    numbers = np.array(sorted(totals))
    return numbers, np.array([totals[number] for number in numbers.tolist()], dtype=np.float64)


def _cuts(numbers: Any, times: Any) -> list[float]:
    """Return the starts of intervals with about equal numbers of records and, if possible, at least two values."""
    bins = max(2, min(_BINS, len(numbers) // 2))
    below = np.cumsum(times) - times
    ranks = np.searchsorted(below, np.arange(1, bins) / bins * times.sum(), side="left")
    places = sorted({int(rank) for rank in ranks if 0 < rank < len(numbers)})
    return [_short_number_between(float(numbers[at - 1]), float(numbers[at])) for at in places]


def _short_number_between(low: float, high: float) -> float:
    """Return the number with the fewest digits that is above `low` and at most `high`."""
    for digits in range(12):
        short = math.floor(high * 10**digits) / 10**digits
        if low < short <= high:
            return _plain_number(short)
    return _plain_number(high)


def nice_width(x: float) -> float:
    """Return the smallest of 1, 2 or 5 times a power of ten that is at least x."""
    if x <= 0:
        return 1
    power = 10.0 ** math.floor(math.log10(x))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= x * 0.999)


def _plain_number(number: float) -> float:
    return int(number) if float(number).is_integer() else round(number, 12)


def date_levels(counts: Mapping[str, int]) -> dict[str, Any]:
    """Return day for values with times, then month, quarter and year; also decade for dates over many years.

    >>> date_levels({"1950-01-31": 1, "1999-12-01": 1})
    {'dates': ['month', 'quarter', 'year', 'decade']}
    """
    years = [int(value.strip()[:4]) for value in counts]
    day = ["day"] if any(len(value.strip()) > len("1950-01-31") for value in counts) else []
    decade = ["decade"] if max(years) - min(years) >= _BIRTH_YEARS else []
    return {"dates": [*day, "month", "quarter", "year", *decade]}


def local_date_levels(counts: Mapping[str, int]) -> dict[str, Any] | None:
    """Return date levels for dates that begin with day or month; None if the data does not show which.

    >>> local_date_levels({"31.12.1950": 1, "1.2.1999": 1})
    {'dates': ['month', 'quarter', 'year', 'decade'], 'format': 'DD.MM.YYYY'}
    """
    days = [(*re.split(r"[./-]", day), time) for day, _, time in (value.strip().partition(" ") for value in counts)]
    day_first, month_first = (any(int(day[at]) > _MONTHS for day in days) for at in (0, 1))
    separators = {separator for value in counts for separator in re.findall(r"[./-]", value)}
    if day_first == month_first or len(separators) != 1:
        return None
    years = {f"{year}-01-01 {time}".strip(): 1 for _, _, year, time in days}
    return {
        **date_levels(years),
        "format": separators.pop().join([*(("DD", "MM") if day_first else ("MM", "DD")), "YYYY"]),
    }


def band_tree(counts: Mapping[str, int]) -> dict[str, Any] | None:
    """Return a tree that joins adjacent bands in pairs; None if the values are not consecutive bands.

    >>> band_tree({"[0-10)": 1, "[10-20)": 5, "[20-30)": 9})
    {'[0-20)': ['[0-10)', '[10-20)'], '[20-30)': ['[20-30)']}
    """
    bands = sorted((*span, value) for value in counts if (span := _span(value)) is not None)
    closed = sum(math.isfinite(low) and math.isfinite(high) for low, high, _ in bands)
    follow = all(up >= high for (_, high, _), (up, _, _) in pairwise(bands))
    if len(bands) < len(counts) or closed < 2 or len(bands) > _MAX_BANDS or not follow:
        return None
    nodes: list[tuple[float, float, Any]] = [(low, high, value) for low, high, value in bands]
    while len(nodes) > 2:
        nodes = [_join_bands(nodes[at : at + 2], bands) for at in range(0, len(nodes), 2)]
    return dict(_entry(node, bands) for node in nodes) if isinstance(nodes[0][2], list) else None


def _span(value: str) -> tuple[float, float] | None:
    text = re.sub(r"\s*(years?|yrs?|jahre?)( old)?$", "", value.strip().lower())
    if match := _RANGE.fullmatch(text):
        low, high = float(match[1]), float(match[2])
        return (low, high) if low < high else None
    if match := _BELOW.fullmatch(text):
        return -math.inf, float(match[1])
    match = _ABOVE.fullmatch(text)
    return (float(match[1] or match[2]), math.inf) if match else None


def _join_bands(
    pair: list[tuple[float, float, Any]], bands: list[tuple[float, float, str]]
) -> tuple[float, float, Any]:
    """Join two adjacent nodes into one; a last single node gets its own parent, so that all paths have equal length."""
    parts = [node[2] if isinstance(node[2], str) else _entry(node, bands) for node in pair]
    return pair[0][0], pair[-1][1], parts


def _entry(node: tuple[float, float, Any], bands: list[tuple[float, float, str]]) -> tuple[str, Any]:
    low, high, parts = node
    below = parts if isinstance(parts[0], str) else dict(parts)
    return _label(low, high, bands), below


def _label(low: float, high: float, bands: list[tuple[float, float, str]]) -> str:
    """Return the label of a joined band, in the notation of the given bands."""
    same = next((value for a, b, value in bands if (a, b) == (low, high)), None)
    if same is not None:
        return same
    if math.isinf(low):
        return f"<{_plain_number(high):g}"
    if math.isinf(high):
        return f"{_plain_number(low):g}+"
    sample = next(value for a, b, value in bands if math.isfinite(a) and math.isfinite(b))
    match = re.fullmatch(rf"(\W*){_NUMBER}(\s*(?:-|\u2013|,|to)\s*){_NUMBER}(\W*)", sample.strip())
    start, middle, end = match.groups() if match else ("", "-", "")
    return f"{start}{_plain_number(low):g}{middle}{_plain_number(high):g}{end}"
