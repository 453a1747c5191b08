"""Which published labels a raw value may hide behind, as the policy's hierarchy says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from reticent.errors import DataError
from reticent.policy.hierarchy import ROOT, ladder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scipy.sparse import csr_array

    from reticent.policy import Policy

_NUMBER = r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
_OR_MISSING = " or missing"
_TEXTS = re.compile(r"\[(.+?), (.+)\]")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_RANGE = re.compile(rf"\[({_NUMBER}), ?({_NUMBER})([\])])")


def cover(values: Sequence[str | None], labels: Sequence[str | None], policy: Policy, column: str) -> csr_array:
    """`covered` as a matrix.

    Sparse, since a column of dates may have tens of thousands of values and as many labels.
    """
    from scipy.sparse import csr_array  # of the extra `audit`

    rows, columns = np.array(sorted(covered(values, labels, policy, column)), dtype=np.int64).reshape(-1, 2).T
    return csr_array((np.ones(len(rows), dtype=np.bool_), (rows, columns)), shape=(len(values), len(labels)))


def covered(
    values: Sequence[str | None], labels: Sequence[str | None], policy: Policy, column: str
) -> set[tuple[int, int]]:
    """Which label j may stand for value i: the value itself, a node above it, a range or a set that holds it, or `*`.

    "... or missing" after any of these stands for an empty cell as well.
    """
    beside = [place for place, label in enumerate(labels) if label and label.endswith(_OR_MISSING)]
    if beside:
        return _or_missing(values, labels, policy, column, beside)
    number = {label: place for place, label in enumerate(labels)}
    pairs = {(row, number[value]) for row, value in enumerate(values) if value in number}
    pairs |= {(row, number[node]) for row, node in _nodes(values, policy, column) if node in number}
    if ROOT in number:
        pairs |= {(row, number[ROOT]) for row in range(len(values))}
    return pairs | _ranges(values, labels) | _sets(values, labels)


def _or_missing(
    values: Sequence[str | None], labels: Sequence[str | None], policy: Policy, column: str, beside: list[int]
) -> set[tuple[int, int]]:
    """The labels that end so, without their ending, apart from the others."""
    others = [place for place in range(len(labels)) if place not in set(beside)]
    pairs = {(row, place) for row, value in enumerate(values) if value is None for place in beside}
    for places in (beside, others):
        texts = [label and label.removesuffix(_OR_MISSING) for label in (labels[place] for place in places)]
        pairs |= {(row, places[at]) for row, at in covered(values, texts, policy, column)}
    return pairs


def _nodes(values: Sequence[str | None], policy: Policy, column: str) -> list[tuple[int, str | None]]:
    spec = policy.columns[column].hierarchy
    if spec is None:
        return []
    nodes: list[tuple[int, str | None]] = []
    try:
        steps = ladder(spec, pa.array(values, pa.string()), column=column, base=policy.base)
    except DataError:  # one stranger spoils the lot: take the values one by one
        return [pair for row, value in enumerate(values) for pair in _alone(row, value, policy, column)]
    for table, labels in zip(steps.tables[1:], steps.labels[1:], strict=True):
        names = labels.to_pylist()
        nodes += [(row, names[node]) for row, node in enumerate(table)]
    return nodes


def _alone(row: int, value: str | None, policy: Policy, column: str) -> list[tuple[int, str | None]]:
    try:
        steps = ladder(
            policy.columns[column].hierarchy, pa.array([value], pa.string()), column=column, base=policy.base
        )
    except DataError:
        return []
    return [(row, labels.to_pylist()[0]) for labels in steps.labels[1:]]


def _ranges(values: Sequence[str | None], labels: Sequence[str | None]) -> set[tuple[int, int]]:
    """Ranges of numbers by size, of anything else (dates, codes) by their text."""
    numbers = np.array([_number(value) for value in values])
    ranges: set[tuple[int, int]] = set()
    for place, label in enumerate(labels):
        if match := _RANGE.fullmatch(label or ""):
            low, high = float(match[1]), float(match[2])
            below = numbers <= high if match[3] == "]" else numbers < high
            ranges |= {(int(row), place) for row in np.flatnonzero((numbers >= low) & below)}
        elif match := _TEXTS.fullmatch(label or ""):
            inside = (row for row, value in enumerate(values) if value is not None and _between(value, match[1], match[2]))
            ranges |= {(row, place) for row in inside}
    return ranges


def _between(value: str, low: str, high: str) -> bool:
    """By their texts; a day as the upper end holds all of its hours."""
    return low <= value and (value <= high or (_DAY.fullmatch(high) is not None and value.startswith(high)))


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
