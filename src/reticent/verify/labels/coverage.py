"""Which values a published label covers by the policy's hierarchy: itself, values below a node, in a range, in a set, or all.

A label's values are stored as segments of the sorted values: a range is one segment, however many values it contains.
Listing all pairs of values and ranges would take too much memory.
"""

from __future__ import annotations

import bisect
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reticent.arrays import Bools, Int64s, Integers
from reticent.errors import DataError
from reticent.policy import Policy
from reticent.policy.hierarchy import ROOT, build_levels
from reticent.verify.groups import arrow_codes, common_codes

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Texts = Sequence[str | None]
_NUMBER = r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
_OR_MISSING = " or missing"
_TEXTS = re.compile(r"\[(.+?), (.+)\]")
_LAST_CHARACTER = "\uffff"
"""Sorts after everything that may follow a day: hours, minutes, seconds."""
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_RANGE = re.compile(rf"\[({_NUMBER}), ?({_NUMBER})([\])])")
_WHOLE = r"\d{1,15}"
_FROM_TO = re.compile(rf"({_WHOLE})(?: ?[-\u2013] ?| to )({_WHOLE})")
_BEYOND = re.compile(rf"(<=?|>=?|\u2264|\u2265) ?({_NUMBER})|({_NUMBER}) ?\+")
_INFINITY = float("inf")


def stands_for(cells: pa.ChunkedArray, shown: pa.ChunkedArray, policy: Policy, column: str) -> Bools:
    """Return, row by row, whether the published label covers the cell. Equal texts need no hierarchy lookup."""
    (value, values), (label, labels) = arrow_codes(cells), arrow_codes(shown)
    own, alike, (root,) = common_codes(values, labels, pa.array([ROOT]))
    holds = np.asarray((own[value] == alike[label]) | (alike == root)[label])
    rest = np.flatnonzero(~holds)
    if len(rest):
        (used_values, value), (used_labels, label) = _used_codes(value[rest]), _used_codes(label[rest])
        texts = values.take(used_values).to_pylist(), labels.take(used_labels).to_pylist()
        fits = Segments.from_labels(*texts, policy, column)
        holds[rest] = fits.covers(value, label)
    return holds


def _used_codes(code: Int64s) -> tuple[Int64s, Int64s]:
    """Return the codes that occur, and each code's position among them."""
    used = np.zeros(int(code.max(initial=-1)) + 1, dtype=np.bool_)
    used[code] = True
    return np.flatnonzero(used), (np.cumsum(used) - 1)[code]


def coverage_matrix(values: Texts, labels: Texts, policy: Policy, column: str) -> csr_array:
    """Return a values x labels matrix of coverage; sparse, since a column of dates may have tens of thousands of both."""
    from scipy.sparse import csr_array  # of the extra `audit`

    pairs = Segments.from_labels(values, labels, policy, column).pairs()
    return csr_array((np.ones(len(pairs[0]), dtype=np.bool_), pairs), shape=(len(values), len(labels)))


@dataclass(frozen=True, repr=False)
class Segments:
    """The segments of sorted values that each label covers; segments of a label are disjoint.

    Attributes:
        rank: the rank of every value.
        first: where the segments of each label begin, and where the last ones end.
        low, high: the ranks of each segment, from low up to but not including high.
    """

    rank: Int64s
    first: Int64s
    low: Int64s
    high: Int64s

    @classmethod
    def from_labels(cls, values: Texts, labels: Texts, policy: Policy, column: str) -> Segments:
        """Build from values and labels: the value itself, nodes above it, sets, ranges; with or without "or missing"."""
        bare, or_missing = _split_missing_suffix(pa.array(labels, pa.string()))
        # Only one sort order is possible: ranges of the larger kind become segments, the others are listed as pairs.
        few, many = sorted(
            _ranges(_normalize_dates(values, policy, column), bare.to_pylist()),
            key=lambda ranges: int((ranges.high - ranges.low).sum()),
        )
        listed = [*_explicit_pairs(values, bare, or_missing, policy, column), few.pairs()]
        value, label = (np.concatenate(part) for part in zip(*listed, strict=True))
        rank = _ranks(many.value_order, len(values))
        ends = [rank[value], many.low], [rank[value] + 1, many.high]
        return cls._merge(rank, len(labels), np.append(label, many.label), *(np.concatenate(end) for end in ends))

    @classmethod
    def from_equal_texts(cls, values: Texts, labels: Texts) -> Segments:
        """Build for values that are published unchanged."""
        own, shown = common_codes(pa.array(values, pa.string()), pa.array(labels, pa.string()))
        known = np.flatnonzero(shown < len(own))  # values are distinct: their codes come first
        return cls.from_pairs(shown[known], known, own, len(shown))

    @classmethod
    def from_pairs(cls, value: Int64s, label: Int64s, rank: Int64s, labels: int) -> Segments:
        """Build from explicit pairs; a good rank order gives few segments."""
        return cls._merge(rank, labels, label, rank[value], rank[value] + 1)

    @classmethod
    def _merge(cls, rank: Int64s, labels: int, label: Int64s, low: Int64s, high: Int64s) -> Segments:
        """Merge segments of a label that touch or overlap."""
        nonempty = low < high
        label, low, high = label[nonempty], low[nonempty], high[nonempty]
        width = len(rank) + 1
        order = np.argsort(label * width + low, kind="stable")
        begin, end = (label * width + low)[order], np.maximum.accumulate((label * width + high)[order])
        opens = np.append(True, begin[1:] > end[:-1])[: len(begin)]
        closes = np.append(opens[1:], True)[: len(begin)]
        begin, end = begin[opens], end[closes]
        first = np.searchsorted(begin, np.arange(labels + 1) * width)
        return cls(rank, first, begin % width, end - begin // width * width)

    @property
    def _label(self) -> Int64s:
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))

    def pairs(self) -> tuple[Int64s, Int64s]:
        """Return all pairs of a value and a label that covers it."""
        segment, at = expand_counts(self.high - self.low)
        return np.argsort(self.rank)[self.low[segment] + at], self._label[segment]

    def covers(self, value: Int64s, label: Int64s) -> Bools:
        """Return, pair by pair, whether the label covers the value."""
        if not len(self.low):
            return np.zeros(len(value), dtype=np.bool_)
        width, whose = len(self.rank) + 1, self._label
        begin, end, key = whose * width + self.low, whose * width + self.high, label * width + self.rank[value]
        at = np.searchsorted(begin, key, side="right") - 1
        return np.asarray((at >= 0) & (key < end[at]))

    def fit_probability(self, values: Int64s, labels: Int64s) -> float:
        """Return the probability that a random label of these covers a random value of these."""
        below = np.append(0, np.cumsum(np.bincount(self.rank[values], minlength=int(self.high.max(initial=0)))))
        inside = np.append(0, np.cumsum(below[self.high] - below[self.low]))
        fits = inside[self.first[1:]] - inside[self.first[:-1]]
        return float(fits[labels].sum()) / max(1, len(values) * len(labels))


def expand_counts(counts: Int64s) -> tuple[Int64s, Int64s]:
    """Repeat each index by its count; return the indexes, and the position of each within its repeats.

    >>> [part.tolist() for part in expand_counts(np.array([2, 0, 1]))]
    [[0, 0, 2], [0, 1, 0]]
    """
    whose = np.repeat(np.arange(len(counts)), counts)
    return whose, np.arange(len(whose)) - (np.cumsum(counts) - counts)[whose]


def _ranks(value_order: Int64s, size: int) -> Int64s:
    """Return the rank of every value; values outside the order come last."""
    rest = np.ones(size, dtype=np.bool_)
    rest[value_order] = False
    rank = np.empty(size, dtype=np.int64)
    rank[np.append(value_order, np.flatnonzero(rest))] = np.arange(size)
    return rank


def _split_missing_suffix(labels: pa.Array) -> tuple[pa.Array, Bools]:
    """Return labels without "or missing", and which labels had it."""
    or_missing = pc.ends_with(labels, _OR_MISSING).fill_null(fill_value=False).to_numpy(zero_copy_only=False)
    if not or_missing.any():
        return labels, or_missing
    return pa.array([text and text.removesuffix(_OR_MISSING) for text in labels.to_pylist()], pa.string()), or_missing


def _explicit_pairs(
    values: Texts, labels: pa.Array, or_missing: Bools, policy: Policy, column: str
) -> list[tuple[Int64s, Int64s]]:
    """List pairs of a value and its label, node, set or `*`, and of a missing value and a label "or missing"."""
    texts = pa.array(values, pa.string())
    above = levels(texts, policy, column)
    shown, (root,), *names = common_codes(labels, pa.array([ROOT]), *(names for _, names in above))
    known = [np.full(len(texts), root), *(name[nodes] for (nodes, _), name in zip(above, names, strict=True))]
    empty, open_ = np.flatnonzero(texts.is_null().to_numpy(zero_copy_only=False)), np.flatnonzero(or_missing)
    sets = np.array(sorted(_set_pairs(values, labels.to_pylist())), dtype=np.int64).reshape(-1, 2)
    return [
        *(_equal_pairs(here, shown) for here in known),
        (np.repeat(empty, len(open_)), np.tile(open_, len(empty))),
        (sets[:, 0], sets[:, 1]),
    ]


def _equal_pairs(values: Int64s, labels: Int64s) -> tuple[Int64s, Int64s]:
    """Return the pairs of a value and a label with the same code."""
    order = np.argsort(labels, kind="stable")
    first, last = (np.searchsorted(labels[order], values, side=side) for side in ("left", "right"))
    row, at = expand_counts(last - first)
    return row, order[first[row] + at]


def _set_pairs(values: Texts, labels: Texts) -> set[tuple[int, int]]:
    """Return pairs of a value and a Mondrian set that contains it, {a, b}; a value may contain a comma."""
    sets = [
        (place, f", {label[1:-1]}, ") for place, label in enumerate(labels) if label and label[0] + label[-1] == "{}"
    ]
    # Splitting finds most members at once; values with a comma are searched one by one.
    number = {value: row for row, value in enumerate(values) if value is not None}
    odd = [(row, f", {value}, ") for value, row in number.items() if ", " in value]
    pairs = {(number[part], place) for place, text in sets for part in text[2:-2].split(", ") if part in number}
    return pairs | {(row, place) for place, text in sets for row, part in odd if part in text}


def _normalize_dates(values: Texts, policy: Policy, column: str) -> Texts:
    """Return dates in the policy's format with the year first, as ranges write them; other values unchanged."""
    spec = policy.columns[column].hierarchy if column in policy.columns else None
    if spec is None or spec.dates is None:
        return values
    digits = (
        {"D": r"\d\d?", "M": r"\d\d?", "Y": r"\d{4}"} if spec.format else {"D": r"\d\d", "M": r"\d\d", "Y": r"\d{4}"}
    )
    parts = (f"(?P<{part[0]}>{digits[part[0]]})" for part in re.findall("D+|M+|Y+", spec.format or "YYYYMMDD"))
    shape = re.compile((r"\D" if spec.format else "").join(parts) + r"(?!\d)")
    matches = (shape.match((value or "").strip()) for value in values)
    return [f"{m['Y']}-{m['M']:0>2}-{m['D']:0>2}" if m else value for m, value in zip(matches, values, strict=True)]


class _Ranges(NamedTuple):
    """Labels that are ranges: each covers the sorted values from low up to but not including high."""

    value_order: Int64s
    label: Int64s
    low: Int64s
    high: Int64s

    def pairs(self) -> tuple[Int64s, Int64s]:
        """Return all pairs of a value and a range that contains it."""
        whose, at = expand_counts(self.high - self.low)
        return self.value_order[self.low[whose] + at], self.label[whose]


def _ranges(values: Texts, labels: Texts) -> tuple[_Ranges, _Ranges]:
    """Return the ranges of numbers over numeric values, and the ranges of texts (dates, codes) over all values."""
    ends = [(place, end) for place, label in enumerate(labels) if (end := _ends(label or "")) is not None]
    number = np.array([_number(value) for value in values], dtype=np.float64)
    finite = np.flatnonzero(np.isfinite(number))
    by_size = finite[np.argsort(number[finite], kind="stable")]
    place, low, high, closed = np.array([(p, *e) for p, e in ends if isinstance(e[0], float)]).reshape(-1, 4).T
    begin = np.searchsorted(number[by_size], low)
    until, past = (np.searchsorted(number[by_size], high, side) for side in ("left", "right"))
    by_text = sorted((row for row, value in enumerate(values) if value is not None), key=lambda row: str(values[row]))
    texts = [str(values[row]) for row in by_text]
    spans = [
        (p, at := bisect.bisect_left(texts, e[0]), max(at, bisect.bisect_right(texts, _last_text(e[1]))))
        for p, e in ends
        if isinstance(e[0], str) and isinstance(e[1], str)
    ]
    return (
        _Ranges(by_size, place.astype(np.int64), begin, np.maximum(begin, np.where(closed == 1, past, until))),
        _Ranges(np.array(by_text, dtype=np.int64), *np.array(spans, dtype=np.int64).reshape(-1, 3).T),
    )


def _ends(label: str) -> tuple[float, float, bool] | tuple[str, str, bool] | None:
    """Return the ends of a range, as numbers or texts, and whether it includes the upper end; None for other labels.

    Accepts common notations of other tools, too: 20-29 (up to but not including 30), <30, 30+.
    """
    if match := _RANGE.fullmatch(label):
        return float(match[1]), float(match[2]), match[3] == "]"
    if match := _TEXTS.fullmatch(label):
        return match[1], match[2], True
    if match := _FROM_TO.fullmatch(label):
        return float(match[1]), float(match[2]) + 1, False
    match = _BEYOND.fullmatch(label)
    if match is None:
        return None
    if match[1] is None or match[1][0] in ">\u2265":
        low = float(match[2] or match[3])
        return math.nextafter(low, _INFINITY) if match[1] == ">" else low, _INFINITY, False
    return -_INFINITY, float(match[2]), match[1] != "<"


def _last_text(end: str) -> str:
    """Return the last text that an upper end includes: a day includes all of its hours."""
    return end + _LAST_CHARACTER if _DAY.fullmatch(end) else end


def _number(value: str | None) -> float:
    try:
        return float(value) if value is not None else float("nan")
    except ValueError:
        return float("nan")


Levels = list[tuple[Integers, pa.Array]]


def levels(values: pa.Array, policy: Policy, column: str) -> Levels:
    """Return for each level, from the values to the root, the node of every value and the names of the nodes.

    A value that is not in the hierarchy is its own node on every level.
    """
    try:
        steps = build_levels(policy.columns[column].hierarchy, values, column=column, base=policy.base)
    except DataError:  # at least one value is not in the hierarchy: take them one by one
        if len(values) == 1:
            return [(np.zeros(1, dtype=np.int64), values)]
        single = [levels(values.slice(at, 1), policy, column) for at in range(len(values))]
        paths = [[names[nodes[0]].as_py() for nodes, names in one] for one in single]
        height = max(map(len, paths), default=0)
        padded = [path + [path[0]] * (height - len(path)) for path in paths]
        return [arrow_codes(pa.chunked_array([pa.array(level, pa.string())])) for level in zip(*padded, strict=True)]
    return list(zip(steps.node_ids, (names.cast(pa.string()) for names in steps.labels), strict=True))
