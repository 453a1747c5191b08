"""Hierarchies that are computed from a value, as labels per level: intervals, code prefixes, dates, ICD-9, ICD-10."""

from __future__ import annotations

import bisect
import contextlib
import datetime as dt
import math
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from reticent.arrays import Bools, Floats, Int32s
from reticent.errors import PolicyError

if TYPE_CHECKING:
    from reticent.policy.spec import HierarchySpec

_ICD10 = re.compile(r"^[A-Z][0-9][0-9A-Z](\.?[0-9A-Z]{1,4})?$")


def prefix_labels(domain: Sequence[Any], spec: HierarchySpec) -> list[list[str | None]]:
    """Keep fewer leading characters on each level and replace the others by `*`; longer codes do not fit."""
    longest = spec.prefix if isinstance(spec.prefix, int) else None
    lengths = tuple(range(spec.prefix - 1, 0, -1)) if isinstance(spec.prefix, int) else spec.prefix or ()
    fits = [
        None if value is None or (longest is not None and len(str(value)) > longest) else str(value) for value in domain
    ]
    if not lengths:  # codes of one character have no level between the value and the root
        return []
    return [[None if text is None else text[:n] + "*" * max(0, len(text) - n) for text in fits] for n in lengths]


_DATE_LABELS: dict[str, Callable[[dt.date], str]] = {
    "day": lambda d: d.isoformat(),
    "month": lambda d: f"{d.year}-{d.month:02}",
    "quarter": lambda d: f"{d.year}-Q{(d.month + 2) // 3}",
    "year": lambda d: str(d.year),
    "decade": lambda d: f"{d.year // 10}0s",
}
_YEAR_FIRST = re.compile(r"(\d{4}-\d\d-\d\d|\d{8})(?!\d)")
_FIRST_DAY, _LAST_DAY = ((day - dt.date(1970, 1, 1)).days for day in (dt.date.min, dt.date.max))


def date_labels(domain: Sequence[Any], spec: HierarchySpec) -> list[list[str | None]]:
    """Return labels for those levels of day, month, quarter, year and decade that the policy names, in this order."""
    local = strptime_format(spec.format) if spec.format else None
    days = [_day(value, local) for value in domain]
    return [[None if day is None else _DATE_LABELS[level](day) for day in days] for level in _levels(spec)]


def date_nodes(values: pa.Array, spec: HierarchySpec) -> list[tuple[Int32s, list[str | None]]] | None:
    """Return `date_labels` of all values at once, as nodes numbered in order of appearance and their labels.

    Return None if a value is not a date in the form YYYY-MM-DD; then use `date_labels`, which parses value by value.
    """
    if spec.format or not (pa.types.is_string(values.type) or pa.types.is_date32(values.type)):
        return None
    try:
        numbers = values.cast(pa.date32()).cast(pa.int32())
    except pa.ArrowInvalid:
        return None
    days = numbers.fill_null(0).to_numpy()
    if int(days.min(initial=0)) < _FIRST_DAY or int(days.max(initial=0)) > _LAST_DAY:
        return None
    missing = numbers.is_null().to_numpy(zero_copy_only=False)
    return [_nodes_of(level, days.astype("datetime64[D]"), missing) for level in _levels(spec)]


def days_of(values: Sequence[Any], spec: HierarchySpec) -> list[str | None]:
    """Return the ISO day of every date; None for a missing value or a format that the policy does not name."""
    local = strptime_format(spec.format) if spec.format else None
    plain = (local is not None or _YEAR_FIRST.match(str(value)) for value in values)
    days = (_day(value, local) if known else None for value, known in zip(values, plain, strict=True))
    return [None if day is None else day.isoformat() for day in days]


def _levels(spec: HierarchySpec) -> list[str]:
    return sorted(spec.dates or (), key=list(_DATE_LABELS).index)


def _nodes_of(level: str, days: npt.NDArray[np.datetime64], missing: Bools) -> tuple[Int32s, list[str | None]]:
    """Return the node of each day at a level, and the label of each node, taken from one of its days."""
    months = days.astype("datetime64[M]").astype(np.int64)
    parts = {"day": days.astype(np.int64), "month": months, "quarter": months // 3, "year": months // 12}
    numbers = parts[level] if level in parts else (months // 12 + 1970) // 10
    nodes = pc.dictionary_encode(pa.array(numbers, mask=missing), null_encoding="encode").indices.to_numpy()
    first = np.zeros(int(nodes.max(initial=-1)) + 1, dtype=np.int64)
    first[nodes[::-1]] = np.arange(len(nodes))[::-1]
    examples = zip(days[first].tolist(), missing[first].tolist(), strict=True)
    return nodes, [None if nothing else _DATE_LABELS[level](day) for day, nothing in examples]


def strptime_format(pattern: str) -> str | None:
    """Return the `strptime` format of a date pattern such as DD.MM.YYYY; None if policies do not allow the pattern.

    >>> strptime_format("DD.MM.YYYY"), strptime_format("YY.MM.DD")
    ('%d.%m.%Y', None)
    """
    if not re.fullmatch(r"(DD([./-])MM\2|MM([./-])DD\3)YYYY", pattern):
        return None
    return pattern.replace("DD", "%d").replace("MM", "%m").replace("YYYY", "%Y")


def _day(value: Any, local: str | None) -> dt.date | None:
    if isinstance(value, dt.datetime):
        return value.date()
    if isinstance(value, dt.date):
        return value
    if local is not None and value is not None:
        with contextlib.suppress(ValueError):  # hierarchy labels start with the year
            return dt.datetime.strptime(str(value).strip().split(" ")[0], local).date()  # noqa: DTZ007 - a day has no zone
    try:
        return dt.datetime.fromisoformat(str(value)).date() if value is not None else None
    except ValueError:
        return None


def icd10_labels(domain: Sequence[Any], spec: HierarchySpec) -> list[list[str | None]]:  # noqa: ARG001
    """Return the three-character category, block and chapter of each code."""
    codes = [str(value).strip().upper() if value is not None else "" for value in domain]
    heads = [code[:3] if _ICD10.match(code) else None for code in codes]
    blocks = [None if head is None else icd10_block(head) for head in heads]
    chapters = [None if head is None else icd10_chapter(head) for head in heads]
    unknown = [b is None or c is None for b, c in zip(blocks, chapters, strict=True)]
    return [[None if bad else x for x, bad in zip(level, unknown, strict=True)] for level in (heads, blocks, chapters)]


def icd9_labels(domain: Sequence[Any], spec: HierarchySpec) -> list[list[str | None]]:  # noqa: ARG001
    """Return the category, block and chapter of each code; a category outside all blocks uses its chapter as block."""
    from reticent.policy import icd9

    heads = [None if value is None else icd9.category(str(value)) for value in domain]
    chapters = [None if head is None else icd9.range_of(head, icd9.CHAPTERS) for head in heads]
    heads = [None if chapter is None else head for head, chapter in zip(heads, chapters, strict=True)]
    blocks = [
        None if head is None else icd9.range_of(head, icd9.BLOCKS) or chapter
        for head, chapter in zip(heads, chapters, strict=True)
    ]
    return [heads, blocks, chapters]


def icd10_block(category: str) -> str | None:
    """Return the block of a three-character category, such as `A00-A09`."""
    from reticent.policy.icd10 import BLOCKS

    at = bisect.bisect_right(BLOCKS, category, key=lambda pair: pair[0]) - 1
    return "-".join(BLOCKS[at]) if at >= 0 and category <= BLOCKS[at][1] else None


def icd10_chapter(category: str) -> str | None:
    """Return the chapter of a three-character category, `I` to `XXII`."""
    from reticent.policy.icd10 import CHAPTERS

    return next((name for first, last, name in CHAPTERS if first <= category <= last), None)


def to_numbers(domain: Sequence[Any]) -> Floats:
    """Return the values as numbers; a value that is not a number becomes NaN."""
    return np.array([_number(value) for value in domain], dtype=np.float64)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")


def interval_labels(domain: Sequence[Any], spec: HierarchySpec) -> list[list[str | None]]:
    """Return labels for even widths, or for cut points with open-ended intervals; refuse levels that are not nested."""
    numbers = to_numbers(domain)
    levels = [_interval_level(numbers, step, spec) for step in spec.intervals or ()]
    for i, (fine, coarse) in enumerate(pairwise(levels)):
        pairs = {(low, up) for low, up in zip(fine, coarse, strict=True) if low is not None}
        if len(pairs) > len({low for low, _ in pairs}):
            raise PolicyError(
                f"intervals: level {i + 2} splits intervals of level {i + 1}.",
                hint="Make each width a multiple of the previous one, and put cut points on its interval bounds.",
            )
    return levels


def _interval_level(numbers: Floats, step: float | tuple[float, ...], spec: HierarchySpec) -> list[str | None]:
    if isinstance(step, tuple):
        return [_uneven_interval(x, step) for x in numbers.tolist()]
    return [_even_interval(x, step, spec.bottom, spec.top) for x in numbers.tolist()]


def _uneven_interval(x: float, cuts: tuple[float, ...]) -> str | None:
    if not math.isfinite(x):
        return None
    at = bisect.bisect_right(cuts, x)
    if at == 0:
        return f"<{_format_number(cuts[0])}"
    if at == len(cuts):
        return f"{_format_number(cuts[-1])}+"
    return f"[{_format_number(cuts[at - 1])}, {_format_number(cuts[at])})"


def _even_interval(x: float, width: float, bottom: float | None, top: float | None) -> str | None:
    if not math.isfinite(x):
        return None
    if bottom is not None and x < bottom:
        return f"<{_format_number(bottom)}"
    if top is not None and x >= top:
        return f"{_format_number(top)}+"
    low = math.floor(x / width) * width
    high = low + width
    low = low if bottom is None else max(low, bottom)
    high = high if top is None else min(high, top)
    return f"[{_format_number(low)}, {_format_number(high)})"


def _format_number(x: float) -> str:
    return str(int(x)) if float(x).is_integer() else f"{x:g}"
