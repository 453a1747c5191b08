"""Conditions on published columns: `age>=60`, `sex=F`, `age in 40..59`, `ward in surgery, birth`.

Conditions are parsed by a small grammar and never run as code. For an exact cell a condition is true or false; for a
generalized cell it is true for a share of the cell's values, with a lower and an upper bound on the matching records.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reticent.arrays import Bools, Floats, Int64s, distinct
from reticent.errors import PolicyError
from reticent.read.cell_distribution import CellDistribution, fit_distribution
from reticent.read.cells import (
    ANY,
    OR_MISSING,
    Extent,
    code_range,
    date_extent,
    digit_range,
    known_part,
    members,
    number_extent,
    overlap,
    prefix,
)

_OPERATOR = re.compile(r"\s*(>=|<=|!=|==|=|>|<)\s*|\s+(not\s+in|in)\s+", re.IGNORECASE)
_AND = re.compile(r"\s(and|or|&&?|\|\|?)\s+", re.IGNORECASE)
_HINT = 'Write a column, then one of = != < <= > >= or in: "age>=60", "sex=F", "age in 40..59", "ward in a, b".'
_LAST = chr(0x10FFFF)
"""Sorts after every letter."""
Nodes = Mapping[str, tuple[Sequence[str], int]]
"""Hierarchy node -> the published values below it, and the number of all values below it."""


@dataclass(frozen=True)
class Condition:
    """One condition: `column` `operator` `values`; the operator is one of = != < <= > >= .. (from the first to the second)."""

    column: str
    operator: str
    values: tuple[str, ...]


@dataclass(frozen=True, repr=False)
class Match:
    """Per record: the share of its cell that matches the conditions, and whether it matches surely or possibly."""

    share: Floats
    sure: Bools
    perhaps: Bools

    @property
    def exact(self) -> bool:
        """Whether every record either matches surely or does not match."""
        return bool((self.sure == self.perhaps).all())

    def __and__(self, other: Match) -> Match:
        return Match(self.share * other.share, self.sure & other.sure, self.perhaps & other.perhaps)


def match_all(size: int) -> Match:
    """Return a match of all records."""
    flags = np.ones(size, dtype=bool)
    return Match(np.ones(size), flags, flags)


def parse_condition(text: str, columns: Sequence[str]) -> Condition:
    """Parse a condition over these columns.

    Example:
        >>> parse_condition("age in 40..59", ["age", "sex"])
        Condition(column='age', operator='..', values=('40', '59'))
        >>> parse_condition("sex = F", ["age", "sex"])
        Condition(column='sex', operator='=', values=('F',))
    """
    column, rest = _column(text, columns)
    operator = _OPERATOR.match(rest)
    if operator is None:
        raise PolicyError("A condition has no operator.", hint=_HINT)
    sign = " ".join((operator[1] or operator[2]).lower().split())
    literal = rest[operator.end() :].strip()
    if not literal:
        raise PolicyError(f"The condition on '{column}' has no value.", hint=_HINT)
    if any(_leading_column(literal[word.end() :], columns) for word in _AND.finditer(literal)):
        raise PolicyError(
            f"The condition on '{column}' contains another condition.",
            hint='Write each condition separately: --where "age>=60" --where "sex=F", or where=["age>=60", "sex=F"].',
        )
    return _condition(column, "=" if sign == "==" else sign, literal)


def _column(text: str, columns: Sequence[str]) -> tuple[str, str]:
    """Split off the leading column: the longest name followed by an operator, because names may contain blanks."""
    text = text.strip()
    name = _leading_column(text, columns)
    if name is not None:
        return name, text[len(name) :]
    operator = _OPERATOR.search(text)
    if operator is None or not operator.start():
        raise PolicyError("A condition cannot be parsed.", hint=_HINT)
    raise unknown_name_error("column", text[: operator.start()].strip(), columns)


def _leading_column(text: str, columns: Sequence[str]) -> str | None:
    fitting = (name for name in columns if text.startswith(name) and _OPERATOR.match(text[len(name) :]))
    return max(fitting, key=len, default=None)


def closest_name(name: str, known: Sequence[str]) -> str | None:
    """Return the most similar known name, or None."""
    same = [other for other in known if other.casefold() == name.casefold()]
    return next(iter(same or difflib.get_close_matches(name, known, n=1, cutoff=0.5)), None)


def unknown_name_error(what: str, name: str, known: Sequence[str]) -> PolicyError:
    """Return an error that a name is not in the release, with the most similar known name."""
    near = closest_name(name, known)
    few = ", ".join(known[:12]) + (f" and {len(known) - 12:,} more" if len(known) > 12 else "")
    hint = f"Did you mean '{near}'?" if near else f"Use one of: {few}."
    return PolicyError(f"The release has no {what} '{name}'.", hint=hint)


def _condition(column: str, sign: str, literal: str) -> Condition:
    if sign in ("in", "not in"):
        ends = [end.strip() for end in literal.split("..")]
        if len(ends) == 2 and all(ends) and sign == "in":
            return Condition(column, "..", (ends[0], ends[1]))
        inner = members(literal) or [part.strip() for part in literal.split(",")]
        values = tuple(_unquote(part) for part in inner if part)
        if not values:
            raise PolicyError(f"The condition on '{column}' has no value.", hint=_HINT)
        return Condition(column, "=" if sign == "in" else "!=", values)
    return Condition(column, sign, (_unquote(literal),))


def _unquote(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def match(
    condition: Condition, cells: pa.ChunkedArray | pa.Array, nodes: Nodes | None = None, classes: Int64s | None = None
) -> Match:
    """Apply a condition to all cells of a column; each distinct cell is tested once.

    Give `classes` if intervals are the tightest of their class: the distribution inside cells is then estimated.
    """
    if pa.types.is_boolean(cells.type):  # true, True and TRUE are the same
        condition = replace(condition, values=tuple(value.lower() for value in condition.values))
    if pa.types.is_boolean(cells.type) or pa.types.is_null(cells.type):
        cells = cells.cast(pa.string())
    column = pc.dictionary_encode(cells)
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    labels = column.dictionary.to_pylist()
    codes = column.indices.fill_null(len(labels)).to_numpy(zero_copy_only=False)
    counts = np.bincount(codes, minlength=len(labels) + 1)[:-1]
    test = _CellTest(condition, nodes or {}, labels)
    if classes is not None:
        pairs = distinct(classes * (len(labels) + 1) + codes)
        test.learn(labels, counts, np.bincount(pairs % (len(labels) + 1), minlength=len(labels) + 1)[:-1])
    table = [test(label) for label in labels]
    usual = _mean_share(table, counts)
    share = np.array([*(usual if part is None else part for part, _, _ in table), 0.0], dtype=np.float64)
    sure = np.array([*(flag for _, flag, _ in table), False], dtype=bool)
    perhaps = np.array([*(flag for _, _, flag in table), False], dtype=bool)
    return Match(share[codes], sure[codes], perhaps[codes])


def _mean_share(table: list[tuple[float | None, bool, bool]], counts: Int64s) -> float:
    """Return the mean share of the cells with a known share; it is used for the others."""
    known = [(share, count) for (share, _, _), count in zip(table, counts.tolist(), strict=True) if share is not None]
    total = sum(count for _, count in known)
    return sum(share * count for share, count in known) / total if total else 0.5


class _CellTest:
    """A condition as a function of one cell: the matching share (None: unknown), sure match, possible match."""

    def __init__(self, condition: Condition, nodes: Nodes, labels: list[Any]) -> None:
        self._condition, self._nodes = condition, nodes
        self._known = {str(label) for label in labels} | {value for below, _ in nodes.values() for value in below}
        self._extent_of = _scale(condition, labels, nodes)
        self._ranges = None if self._extent_of is None else [self._range(self._extent_of)]
        if condition.operator in ("=", "!=") and self._extent_of is not None:
            self._ranges = [extent for value in condition.values if (extent := self._extent_of(value)) is not None]
        # A day contains its times; [20, 25) in a column with fractions contains 24.5.
        self._days = self._extent_of is date_extent and not any(":" in value for value in condition.values)
        self._real = self._extent_of is number_extent and any(map(_fraction, labels))

        self._distribution: CellDistribution | None = None

    def learn(self, labels: list[Any], counts: Int64s, classes: Int64s) -> None:
        """Estimate the distribution of values from all cells, with the records and classes of each."""
        if self._extent_of is None:
            return
        extents = [(at, self._extent(label)) for at, label in enumerate(labels) if str(label) != ANY]
        cells = {at: extent for at, extent in extents if extent is not None and math.isfinite(extent.low + extent.high)}
        tight = [known_part(labels[at]).startswith("[") and cell.closed for at, cell in cells.items()]
        if any(tight):
            whole = not self._real and all(cell.whole for cell in cells.values())
            at = list(cells)
            self._distribution = fit_distribution(
                list(cells.values()), counts[at], classes[at], tight=tight, whole=whole
            )

    def _extent(self, cell: Any) -> Extent | None:
        extent = _extent_on(self._extent_of, cell)
        return extent.days() if extent is not None and self._days else extent

    def _part(self, extent: Extent, asked: Extent) -> tuple[float, bool, bool]:
        share, sure, perhaps = overlap(extent, asked, real=self._real)
        likely = None if self._distribution is None or sure or not perhaps else self._distribution.share(extent, asked)
        return share if likely is None else likely, sure, perhaps

    def __call__(self, cell: Any) -> tuple[float | None, bool, bool]:
        if str(cell) == ANY:
            return None, False, True
        share, sure, perhaps = self._labels(known_part(cell)) if self._extent_of is None else self._numbers(cell)
        if self._condition.operator == "!=":
            share, sure, perhaps = None if share is None else 1 - share, not perhaps, not sure
        if str(cell).endswith(OR_MISSING):
            sure = False  # an empty cell matches no condition, not even !=
        return share, sure, perhaps

    def _numbers(self, cell: Any) -> tuple[float | None, bool, bool]:
        assert self._extent_of is not None  # noqa: S101 - checked by the caller
        extent = self._extent(cell)
        if extent is None:
            below, size = _below(known_part(cell), self._nodes)
            # A value that is not a number matches nothing; do not recurse into its nodes, which a codebook may forge.
            nothing = 0.0, False, False
            numbers = [
                nothing if _extent_on(self._extent_of, value) is None else self._numbers(value) for value in below
            ]
            return self._any_of(numbers, size) if size else nothing
        parts = [self._part(extent, asked) for asked in self._ranges or ()]
        share = min(1.0, sum(part for part, _, _ in parts))
        whole = sum(overlap(extent, asked, real=self._real)[0] for asked in self._ranges or ()) >= 1
        return share, any(sure for _, sure, _ in parts) or whole, any(perhaps for _, _, perhaps in parts)

    def _any_of(self, parts: list[tuple[float | None, bool, bool]], size: int) -> tuple[float | None, bool, bool]:
        """Combine the results of a cell with several possible numbers; unpublished ones may or may not match."""
        hidden = size - len(parts)
        share = sum(part or 0.0 for part, _, _ in parts) / len(parts) if parts else None
        return share, not hidden and all(sure for _, sure, _ in parts), hidden > 0 or any(p for _, _, p in parts)

    def _labels(self, cell: str) -> tuple[float | None, bool, bool]:
        asked = self._condition.values
        if cell in asked:
            return 1.0, True, True
        below, size = _below(cell, self._nodes)
        if size:
            return self._match_members(below, size)
        beginning = prefix(cell)
        if beginning is not None:
            return _match_prefix(beginning, cell, asked)
        ends = code_range(cell)
        if ends is not None:
            return _match_code_range(*ends, asked)
        sure = self._is_match(cell)
        return float(sure), sure, sure

    def _match_members(self, below: Sequence[str], size: int) -> tuple[float | None, bool, bool]:
        """Match a cell with several possible values, of which `below` are published."""
        hits = sum(self._is_match(value) for value in below)
        unknown = [value for value in self._condition.values if value not in self._known]
        hidden = min(len(unknown), size - len(below))
        return (hits + hidden) / max(size, 1), hits == size, hits + hidden > 0

    def _is_match(self, value: str) -> bool:
        asked = self._condition.values
        return any(
            value == one or _has_prefix(value, one) or value in self._nodes.get(one, ((), 0))[0] for one in asked
        )

    def _range(self, extent_of: Any) -> Extent:
        operator, values = self._condition.operator, self._condition.values
        first, last = extent_of(values[0]), extent_of(values[-1])
        return {
            ">=": Extent(first.low, math.inf),
            ">": Extent(first.high, math.inf, open_low=True),
            "<=": Extent(-math.inf, first.high),
            "<": Extent(-math.inf, first.low, closed=False),
        }.get(operator, Extent(first.low, last.high))


def _below(cell: str, nodes: Nodes) -> tuple[Sequence[str], int]:
    """Return the published values of a set or node, and the number of all its values; 0 for other cells."""
    inside = members(cell)
    return (inside, len(inside)) if inside else nodes.get(cell, ((), 0))


def _has_prefix(cell: str, pattern: str) -> bool:
    """Whether an exact cell has the prefix of a pattern such as `12*`."""
    beginning = prefix(pattern)
    return beginning is not None and cell.startswith(beginning)


def _match_prefix(beginning: str, cell: str, asked: tuple[str, ...]) -> tuple[float | None, bool, bool]:
    """Match a truncated code such as `12***`; each unknown digit is assumed to be one of ten."""
    share = 0.0
    for value in asked:
        known = prefix(value)
        wanted = value if known is None else known
        if known is not None and beginning.startswith(wanted):
            return 1.0, True, True
        if wanted.startswith(beginning) and (known is not None or len(value) == len(cell)):
            share += 10.0 ** -(len(wanted) - len(beginning))
    return min(share, 1.0), False, share > 0


def _match_code_range(first: str, last: str, asked: tuple[str, ...]) -> tuple[float | None, bool, bool]:
    """Match an interval of codes of equal length; the share is exact for digits and 0.5 for other codes."""
    share, sure, perhaps = 0.0, False, False
    for value in asked:
        beginning = prefix(value)
        low, high = (value, value) if beginning is None else (beginning, beginning + _LAST)
        if low <= last and first <= high:
            cell, wanted = number_extent(f"[{first}, {last}]"), digit_range((beginning or value).ljust(len(first), ANY))
            wanted = wanted if beginning is not None else number_extent(value)
            share += overlap(cell, wanted)[0] if cell is not None and wanted is not None else 0.5
            perhaps = True
        sure |= beginning is not None and first.startswith(beginning) and last.startswith(beginning)
    return 1.0 if sure else min(share, 1.0), sure, perhaps


def _scale(condition: Condition, labels: list[Any], nodes: Nodes) -> Any:
    """Return the function that places cells on a line, as numbers or days; None if they are text."""
    cells = [part for label in labels if str(label) != ANY for part in _below(known_part(label), nodes)[0] or [label]]
    for scale in (date_extent, number_extent) if _has_dates(cells) else (number_extent, date_extent):
        if all(scale(value) is not None for value in condition.values) and _fits_most(scale, cells):
            return scale
    if condition.operator in ("=", "!="):
        return None
    raise PolicyError(
        f"Column '{condition.column}' and the value in the condition must both be numbers, or both dates.",
        hint="Write numbers as 60, dates as 2025-03-31, 2025-03, 2025-Q1 or 2025; use only = and in for text.",
    )


def _has_dates(cells: list[Any]) -> bool:
    return any(not isinstance(cell, int | float) and "-" in str(cell)[1:] and date_extent(cell) for cell in cells[:50])


def _fits_most(scale: Any, cells: list[Any]) -> bool:
    """Whether at least half of the cells are on the scale; markers for missing values may be among them."""
    return 2 * sum(_extent_on(scale, cell) is not None for cell in cells) >= len(cells)


def _extent_on(scale: Any, cell: Any) -> Extent | None:
    """Return a cell as a segment; truncated codes of digits count as numbers, too."""
    extent: Extent | None = scale(cell)
    return digit_range(cell) if extent is None and scale is number_extent else extent


def _fraction(cell: Any) -> bool:
    extent = number_extent(cell)
    return extent is not None and not all(end.is_integer() for end in (extent.low, extent.high) if math.isfinite(end))
