"""Which published labels a raw value may hide behind, as the policy's hierarchy says."""

from __future__ import annotations

import bisect
import math
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reticent.audit.groups import numbers, shared
from reticent.errors import DataError
from reticent.policy.hierarchy import ROOT, ladder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from reticent.audit.arrays import Codes, Flags
    from reticent.policy import Policy

_NUMBER = r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
_OR_MISSING = " or missing"
_TEXTS = re.compile(r"\[(.+?), (.+)\]")
_AFTER = "\uffff"
"""Comes after everything that may follow a day: hours, minutes, seconds."""
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_RANGE = re.compile(rf"\[({_NUMBER}), ?({_NUMBER})([\])])")
_WHOLE = r"\d{1,15}"
_FROM_TO = re.compile(rf"({_WHOLE})(?: ?[-\u2013] ?| to )({_WHOLE})")
_BEYOND = re.compile(rf"(<=?|>=?|\u2264|\u2265) ?({_NUMBER})|({_NUMBER}) ?\+")
_INFINITY = float("inf")


def cover(values: Sequence[str | None], labels: Sequence[str | None], policy: Policy, column: str) -> csr_array:
    """`covered` as a matrix.

    Sparse, since a column of dates may have tens of thousands of values and as many labels.
    """
    from scipy.sparse import csr_array  # of the extra `audit`

    rows, columns = np.divmod(_keys(values, labels, policy, column), max(1, len(labels)))
    fits = csr_array((np.ones(len(rows), dtype=np.bool_), (rows, columns)), shape=(len(values), len(labels)))
    fits.sum_duplicates()  # counting, which takes a fraction of the time that sorting millions of pairs does
    return fits


def covered(values: Sequence[str | None], labels: Sequence[str | None], policy: Policy, column: str) -> Codes:
    """Pairs of a value i and a label j that may stand for it: the value itself, a node above it, a range or a set that holds it, or `*`.

    "... or missing" after any of these stands for an empty cell as well.
    """
    return np.stack(np.divmod(np.unique(_keys(values, labels, policy, column)), max(1, len(labels))), axis=1)


def _keys(values: Sequence[str | None], labels: Sequence[str | None], policy: Policy, column: str) -> Codes:
    """Each pair as the value's place times the number of labels and the label's; some may be told twice."""
    ranges = spans(values, labels).keys(max(1, len(labels)))
    return np.concatenate([listed(values, labels, policy, column), ranges])


def stands_for(cells: pa.ChunkedArray, shown: pa.ChunkedArray, policy: Policy, column: str) -> Flags:
    """Row by row, whether what is shown may stand for the cell.

    Most cells stand for themselves; only the others are led up the hierarchy. Ranges are looked at where they stand: all values
    that thousands of them cover would be too many to list.
    """
    (value, values), (label, labels) = numbers(cells), numbers(shown)
    bare, beside = _endings(labels)
    own, alike, (root,) = shared(values, bare, pa.array([ROOT]))
    holds = np.asarray((own[value] == alike[label]) | (alike == root)[label])
    rows = _Rows(values, value, bare, label, beside)
    for way in (partial(_by_nodes, policy=policy, column=column), _by_lists, _in_ranges):
        rest = np.flatnonzero(~holds)
        if not len(rest):
            break
        holds[rest] = way(rows.only(rest))
    return holds


@dataclass(frozen=True, repr=False)
class _Rows:
    """Different values and labels, and which of them stand in each row; which labels are for empty cells as well."""

    values: pa.Array
    value: Codes
    labels: pa.Array
    label: Codes
    beside: Flags

    def only(self, rows: Codes) -> _Rows:
        """Some of the rows, with what occurs in them."""
        (values, value), (labels, label) = _narrowed(self.value[rows]), _narrowed(self.label[rows])
        return _Rows(
            self.values.take(pa.array(values)), value, self.labels.take(pa.array(labels)), label, self.beside[labels]
        )


def _narrowed(code: Codes) -> tuple[Codes, Codes]:
    """The numbers that occur, and their places in it."""
    there = np.zeros(int(code.max(initial=-1)) + 1, dtype=np.bool_)
    there[code] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1)[code]


def _endings(labels: pa.Array) -> tuple[pa.Array, Flags]:
    """Labels without "or missing", and which had it."""
    labels = labels.cast(pa.string())
    beside = pc.ends_with(labels, _OR_MISSING).fill_null(fill_value=False).to_numpy(zero_copy_only=False)
    if not beside.any():
        return labels, beside
    return pa.array([text and text.removesuffix(_OR_MISSING) for text in labels.to_pylist()], pa.string()), beside


def _by_nodes(rows: _Rows, *, policy: Policy, column: str) -> Flags:
    """Nodes above the values; an empty cell behind "or missing"."""
    empty = rows.values.is_null().to_numpy(zero_copy_only=False)
    holds = empty[rows.value] & rows.beside[rows.label]
    for nodes, names in _above(rows.values, policy, column):
        if holds.all():
            break
        name, label = shared(names, rows.labels)
        holds |= name[nodes][rows.value] == label[rows.label]
    return np.asarray(holds)


def _by_lists(rows: _Rows) -> Flags:
    width, sets = len(rows.labels), _sets(rows.values.to_pylist(), rows.labels.to_pylist())
    keys = np.array([row * width + place for row, place in sets], dtype=np.int64)
    return np.isin(rows.value * width + rows.label, keys)


def _in_ranges(rows: _Rows) -> Flags:
    values, ends = rows.values.to_pylist(), [_ends(label) for label in rows.labels.to_pylist()]
    nothing = (float("nan"), float("nan"), False)
    sizes = np.array([nothing if end is None or isinstance(end[0], str) else end for end in ends], dtype=np.float64)
    low, high, closed = sizes[rows.label].T
    number = np.array([_number(value) for value in values], dtype=np.float64)[rows.value]
    holds = (low <= number) & np.where(closed == 1, number <= high, number < high)
    spans = [(str(end[0]), _last(str(end[1]))) if end is not None and isinstance(end[0], str) else None for end in ends]
    if any(spans):
        texts = {value for value in values if value is not None}.union(*(span for span in spans if span))
        rank: dict[str | None, int] = {text: at for at, text in enumerate(sorted(texts))}
        at = np.array([rank.get(value, -1) for value in values], dtype=np.int64)[rows.value]
        far = (len(rank), len(rank))
        first, last = np.array([(rank[s[0]], rank[s[1]]) if s else far for s in spans], dtype=np.int64)[rows.label].T
        holds |= (first <= at) & (at <= last)
    return np.asarray(holds)


def listed(values: Sequence[str | None], labels: Sequence[str | None], policy: Policy, column: str) -> Codes:
    """All pairs but those of ranges, each as the value's place times the number of labels and the label's; some may be told twice.

    Labels that are values, nodes, sets or `*`; two labels may read alike once their endings are gone.
    """
    texts, width = pa.array(values, pa.string()), max(1, len(labels))
    bare, beside = _endings(pa.array(labels, pa.string()))
    above = _above(texts, policy, column)
    own, shown, (root,), *names = shared(texts, bare, pa.array([ROOT]), *(names for _, names in above))
    known = [own, np.full(len(own), root), *(name[nodes] for (nodes, _), name in zip(above, names, strict=True))]
    empty = np.flatnonzero(texts.is_null().to_numpy(zero_copy_only=False))
    sets = [row * width + place for row, place in _sets(values, bare.to_pylist())]
    return np.concatenate(
        [
            *(_equal(here, shown, width) for here in known),
            (empty[:, None] * width + np.flatnonzero(beside)).ravel(),
            np.array(sets, dtype=np.int64),
        ]
    )


def _equal(values: Codes, labels: Codes, width: int) -> Codes:
    """The pairs that have the same number."""
    order = np.argsort(labels, kind="stable")
    first, last = (np.searchsorted(labels[order], values, side=side) for side in ("left", "right"))
    row, at = stretched(last - first)
    return np.asarray(row * width + order[first[row] + at])


def stretched(counts: Codes) -> tuple[Codes, Codes]:
    """So many of each: whose each is, and the how manieth of those.

    >>> [part.tolist() for part in stretched(np.array([2, 0, 1]))]
    [[0, 0, 2], [0, 1, 0]]
    """
    whose = np.repeat(np.arange(len(counts)), counts)
    return whose, np.arange(len(whose)) - (np.cumsum(counts) - counts)[whose]


def _above(values: pa.Array, policy: Policy, column: str) -> list[tuple[NDArray[Any], pa.Array]]:
    """Level by level, the node above every value, by its place among the names of the level."""
    spec = policy.columns[column].hierarchy
    if spec is None:
        return []
    try:
        steps = ladder(spec, values, column=column, base=policy.base)
    except DataError:  # one stranger spoils the lot: take the values one by one, himself for what has nothing above it
        texts = values.to_pylist()
        paths = [_alone(value, policy, column) for value in texts]
        height = max(map(len, paths), default=0)
        padded = [path + [value] * (height - len(path)) for path, value in zip(paths, texts, strict=True)]
        return [(np.arange(len(texts)), pa.array(level, pa.string())) for level in zip(*padded, strict=True)]
    return list(zip(steps.tables[1:], steps.labels[1:], strict=True))


def _alone(value: str | None, policy: Policy, column: str) -> list[str | None]:
    try:
        steps = ladder(
            policy.columns[column].hierarchy, pa.array([value], pa.string()), column=column, base=policy.base
        )
    except DataError:
        return []
    return [labels.to_pylist()[0] for labels in steps.labels[1:]]


def _ends(label: str | None) -> tuple[float, float, bool] | tuple[str, str, bool] | None:
    """The ends of a range, as numbers or as texts, and whether the upper one belongs to it; None for other labels."""
    if match := _RANGE.fullmatch(label or ""):
        return float(match[1]), float(match[2]), match[3] == "]"
    if match := _TEXTS.fullmatch(label or ""):
        return match[1], match[2], True
    return _of_others(label or "")


def _of_others(label: str) -> tuple[float, float, bool] | None:
    """Ranges as others write them: 20-29, which holds whatever is below 30, <30, 30+."""
    if match := _FROM_TO.fullmatch(label):
        return float(match[1]), float(match[2]) + 1, False
    match = _BEYOND.fullmatch(label)
    if match is None:
        return None
    if match[1] is None or match[1][0] in ">\u2265":
        low = float(match[2] or match[3])
        return math.nextafter(low, _INFINITY) if match[1] == ">" else low, _INFINITY, False
    return -_INFINITY, float(match[2]), match[1] != "<"


def _last(end: str) -> str:
    """The last text that an upper end admits: a day holds all of its hours."""
    return end + _AFTER if _DAY.fullmatch(end) else end


@dataclass(frozen=True, repr=False)
class Spans:
    """The labels that are ranges: each a stretch of the values by size (numbers), or by their text (dates, codes).

    Attributes:
        orders: the values by size, those that are numbers; the values by text, those that are not missing.
        order, low, high: per range, which of the orders it is a stretch of, where it begins and where it ends.
        label: the label of each.
    """

    orders: tuple[Codes, Codes]
    label: Codes
    order: Codes
    low: Codes
    high: Codes

    def keys(self, width: int) -> Codes:
        """All values in them, each as the value's place times the number of labels and the label's."""
        whose, at = stretched(self.high - self.low)
        parts = []
        for order, values in enumerate(self.orders):
            mine = self.order[whose] == order
            parts.append(values[(self.low[whose] + at)[mine]] * width + self.label[whose[mine]])
        return np.concatenate(parts)

    def of(self, order: int) -> Spans:
        """Those of one order."""
        mine = self.order == order
        return Spans(self.orders, self.label[mine], self.order[mine], self.low[mine], self.high[mine])


def spans(values: Sequence[str | None], labels: Sequence[str | None]) -> Spans:
    """The ranges among the labels."""
    numbers = np.array([_number(value) for value in values], dtype=np.float64)
    finite = np.flatnonzero(np.isfinite(numbers))
    by_size = finite[np.argsort(numbers[finite], kind="stable")]
    by_text = np.array(
        sorted((r for r, v in enumerate(values) if v is not None), key=lambda r: str(values[r])), dtype=np.int64
    )
    sizes, texts = numbers[by_size], [str(values[row]) for row in by_text.tolist()]
    rows = [np.empty((0, 4), dtype=np.int64)]
    for place, label in enumerate(labels):
        ends = _ends(label and label.removesuffix(_OR_MISSING))
        if ends is None:
            continue
        if isinstance(ends[0], str):
            low, high = bisect.bisect_left(texts, ends[0]), bisect.bisect_right(texts, _last(str(ends[1])))
        else:
            low = int(np.searchsorted(sizes, ends[0]))
            high = int(np.searchsorted(sizes, ends[1], side="right" if ends[2] else "left"))
        rows.append(np.array([[place, isinstance(ends[0], str), low, max(low, high)]]))
    return Spans((by_size, by_text), *np.concatenate(rows).T)


def _sets(values: Sequence[str | None], labels: Sequence[str | None]) -> set[tuple[int, int]]:
    """Sets as Mondrian publishes them: {a, b}; a value may hold a comma itself."""
    sets = [
        (place, f", {label[1:-1]}, ") for place, label in enumerate(labels) if label and label[0] + label[-1] == "{}"
    ]
    # Splitting finds most members at once; only values with a comma must be looked for one by one.
    number = {value: row for row, value in enumerate(values) if value is not None}
    odd = [(row, f", {value}, ") for value, row in number.items() if ", " in value]
    pairs = {(number[part], place) for place, text in sets for part in text[2:-2].split(", ") if part in number}
    return pairs | {(row, place) for place, text in sets for row, part in odd if part in text}


def _number(value: str | None) -> float:
    try:
        return float(value) if value is not None else float("nan")
    except ValueError:
        return float("nan")
