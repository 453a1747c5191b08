"""Which published labels a raw value may hide behind, as the policy's hierarchy says."""

from __future__ import annotations

import bisect
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from reticent.errors import DataError
from reticent.policy.hierarchy import ROOT, ladder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from reticent.policy import Policy

_NUMBER = r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
_OR_MISSING = " or missing"
_TEXTS = re.compile(r"\[(.+?), (.+)\]")
_AFTER = "\uffff"
"""Comes after everything that may follow a day: hours, minutes, seconds."""
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_RANGE = re.compile(rf"\[({_NUMBER}), ?({_NUMBER})([\])])")


def cover(values: Sequence[str | None], labels: Sequence[str | None], policy: Policy, column: str) -> csr_array:
    """`covered` as a matrix.

    Sparse, since a column of dates may have tens of thousands of values and as many labels.
    """
    from scipy.sparse import csr_array  # of the extra `audit`

    rows, columns = covered(values, labels, policy, column).T
    return csr_array((np.ones(len(rows), dtype=np.bool_), (rows, columns)), shape=(len(values), len(labels)))


def covered(
    values: Sequence[str | None], labels: Sequence[str | None], policy: Policy, column: str
) -> NDArray[np.int64]:
    """Pairs of a value i and a label j that may stand for it: the value itself, a node above it, a range or a set that holds it, or `*`.

    "... or missing" after any of these stands for an empty cell as well.
    """
    bare = [label and label.removesuffix(_OR_MISSING) for label in labels]
    width = max(1, len(labels))
    ranges = _ranges(values, bare) @ np.array([width, 1])
    keys = np.union1d(_listed(values, labels, policy, column), ranges)
    return np.stack([keys // width, keys % width], axis=1)


def stands_for(
    cells: tuple[Sequence[str | None], NDArray[np.int64]],
    shown: tuple[Sequence[str | None], NDArray[np.int64]],
    policy: Policy,
    column: str,
) -> NDArray[np.bool_]:
    """Row by row, whether what is shown may stand for the cell; both as texts and codes.

    Ranges are looked at where they stand: all values that thousands of them cover would be too many to list.
    """
    (values, value), (labels, label) = cells, shown
    bare = [text and text.removesuffix(_OR_MISSING) for text in labels]
    number: dict[str | None, int] = {}
    alike = np.array([number.setdefault(text, len(number)) for text in bare], dtype=np.int64)[label]

    def shown_as(texts: Sequence[str | None]) -> NDArray[np.int64]:
        return np.array([number.get(text, -1) for text in texts], dtype=np.int64)

    holds = (shown_as(values)[value] == alike) | (alike == number.get(ROOT, -1))
    for nodes, names in _above(values, policy, column):
        holds |= shown_as(names)[nodes][value] == alike
    empty, beside = (
        np.array(x, dtype=np.bool_)
        for x in ([v is None for v in values], [a != b for a, b in zip(labels, bare, strict=True)])
    )
    holds |= empty[value] & beside[label]
    if sets := _sets(values, bare):
        keys = np.array([row * len(labels) + place for row, place in sets], dtype=np.int64)
        holds |= np.isin(value * len(labels) + label, keys)
    ends = [_ends(text) for text in bare]
    ranged = np.array([end is not None for end in ends], dtype=np.bool_)[label]
    if not ranged.any():
        return np.asarray(holds)
    asked, back = np.unique(np.stack([value[ranged], label[ranged]]), axis=1, return_inverse=True)
    inside = [_inside(values[v], ends[at]) for v, at in asked.T.tolist()]
    holds[ranged] |= np.array(inside, dtype=np.bool_)[back.reshape(-1)]
    return np.asarray(holds)


def _listed(
    values: Sequence[str | None], labels: Sequence[str | None], policy: Policy, column: str
) -> NDArray[np.int64]:
    """All pairs but those of ranges, each as the value's place times the number of labels and the label's."""
    bare = [label and label.removesuffix(_OR_MISSING) for label in labels]
    beside = [place for place, label in enumerate(labels) if label != bare[place]]
    pairs = _single(values, bare, policy, column)
    pairs |= {(row, place) for row, value in enumerate(values) if value is None for place in beside}
    return np.array([row * max(1, len(labels)) + place for row, place in pairs], dtype=np.int64)


def _single(
    values: Sequence[str | None], labels: Sequence[str | None], policy: Policy, column: str
) -> set[tuple[int, int]]:
    """Labels that are values, nodes, sets or `*`; two labels may read alike once their endings are gone."""
    number: dict[str | None, list[int]] = {}
    for place, label in enumerate(labels):
        number.setdefault(label, []).append(place)
    pairs = {(row, place) for row, value in enumerate(values) for place in number.get(value, ())}
    pairs |= {(row, place) for row, node in _nodes(values, policy, column) for place in number.get(node, ())}
    pairs |= {(row, place) for place in number.get(ROOT, ()) for row in range(len(values))}
    return pairs | _sets(values, labels)


def _nodes(values: Sequence[str | None], policy: Policy, column: str) -> list[tuple[int, str | None]]:
    above = _above(values, policy, column)
    return [(row, names[node]) for nodes, names in above for row, node in enumerate(nodes)]


def _above(
    values: Sequence[str | None], policy: Policy, column: str
) -> list[tuple[NDArray[Any], Sequence[str | None]]]:
    """Level by level, the node above every value, by its place among the names of the level."""
    spec = policy.columns[column].hierarchy
    if spec is None:
        return []
    try:
        steps = ladder(spec, pa.array(values, pa.string()), column=column, base=policy.base)
    except DataError:  # one stranger spoils the lot: take the values one by one, himself for what has nothing above it
        paths = [_alone(value, policy, column) for value in values]
        height = max(map(len, paths), default=0)
        padded = [path + [value] * (height - len(path)) for path, value in zip(paths, values, strict=True)]
        return [(np.arange(len(values)), level) for level in zip(*padded, strict=True)]
    return [(table, labels.to_pylist()) for table, labels in zip(steps.tables[1:], steps.labels[1:], strict=True)]


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
    match = _TEXTS.fullmatch(label or "")
    return (match[1], match[2], True) if match else None


def _inside(value: str | None, ends: tuple[float, float, bool] | tuple[str, str, bool] | None) -> bool:
    if value is None or ends is None:
        return False
    if isinstance(ends[0], str):
        return ends[0] <= value <= _last(str(ends[1]))
    number = _number(value)
    return float(ends[0]) <= number and (number <= float(ends[1]) if ends[2] else number < float(ends[1]))


def _last(end: str) -> str:
    """The last text that an upper end admits: a day holds all of its hours."""
    return end + _AFTER if _DAY.fullmatch(end) else end


def _ranges(values: Sequence[str | None], labels: Sequence[str | None]) -> NDArray[np.int64]:
    """Ranges of numbers by size, of anything else (dates, codes) by their text: a stretch of the sorted values each."""
    numbers = np.array([_number(value) for value in values], dtype=np.float64)
    by_size = np.argsort(numbers, kind="stable")[: int(np.isfinite(numbers).sum())]
    by_text = np.array(
        sorted((r for r, v in enumerate(values) if v is not None), key=lambda r: str(values[r])), dtype=int
    )
    sizes, texts = numbers[by_size], [str(values[row]) for row in by_text.tolist()]
    parts = [np.empty((0, 2), dtype=np.int64)]
    for place, label in enumerate(labels):
        ends = _ends(label)
        if ends is None:
            continue
        if isinstance(ends[0], str):
            order, low = by_text, bisect.bisect_left(texts, ends[0])
            high = bisect.bisect_right(texts, _last(str(ends[1])))
        else:
            order, low = by_size, int(np.searchsorted(sizes, ends[0]))
            high = int(np.searchsorted(sizes, ends[1], side="right" if ends[2] else "left"))
        rows = order[low:high]
        parts.append(np.stack([rows, np.full(len(rows), place)], axis=1))
    return np.concatenate(parts)


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
