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

    from numpy.typing import NDArray

    from reticent.policy import Policy

_NUMBER = r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
_RANGE = re.compile(rf"\[({_NUMBER}), ?({_NUMBER})([\])])")


def cover(values: Sequence[str | None], labels: Sequence[str | None], policy: Policy, column: str) -> NDArray[np.bool_]:
    """Whether label j may stand for value i: the value itself, a node above it, a range around it, or `*`."""
    number = {label: place for place, label in enumerate(labels)}
    out = np.zeros((len(values), len(labels)), dtype=np.bool_)
    for row, value in enumerate(values):
        if value in number:
            out[row, number[value]] = True
    if ROOT in number:
        out[:, number[ROOT]] = True
    for row, node in _nodes(values, policy, column):
        if node in number:
            out[row, number[node]] = True
    return out | _ranges(values, labels)


def _nodes(values: Sequence[str | None], policy: Policy, column: str) -> list[tuple[int, str | None]]:
    spec = policy.columns[column].hierarchy
    if spec is None:
        return []
    found: list[tuple[int, str | None]] = []
    try:
        steps = ladder(spec, pa.array(values, pa.string()), column=column, base=policy.base)
    except DataError:  # one stranger spoils the lot: take the values one by one
        return [pair for row, value in enumerate(values) for pair in _alone(row, value, policy, column)]
    for table, labels in zip(steps.tables[1:], steps.labels[1:], strict=True):
        names = labels.to_pylist()
        found += [(row, names[node]) for row, node in enumerate(table)]
    return found


def _alone(row: int, value: str | None, policy: Policy, column: str) -> list[tuple[int, str | None]]:
    try:
        steps = ladder(
            policy.columns[column].hierarchy, pa.array([value], pa.string()), column=column, base=policy.base
        )
    except DataError:
        return []
    return [(row, labels.to_pylist()[0]) for labels in steps.labels[1:]]


def _ranges(values: Sequence[str | None], labels: Sequence[str | None]) -> NDArray[np.bool_]:
    numbers = np.array([_number(value) for value in values])
    out = np.zeros((len(values), len(labels)), dtype=np.bool_)
    for place, label in enumerate(labels):
        match = _RANGE.fullmatch(label or "")
        if match:
            low, high = float(match[1]), float(match[2])
            below = numbers <= high if match[3] == "]" else numbers < high
            out[:, place] = (numbers >= low) & below
    return out


def _number(value: str | None) -> float:
    try:
        return float(value) if value is not None else float("nan")
    except ValueError:
        return float("nan")
