"""Counts from a release of a series in groups: values are listed by group, some of them counterfeit.

Guarantee (to the recipient): bounds as of generalised tables. A group of s lines with c counterfeits holds at least its matching
lines less c, and at most all of them. The point estimate takes every line of a group for counterfeit with the same probability c / s.

Not covered: which lines are counterfeit is not told, so small counts in groups with many of them stay open.

Cost: linear in the lines.

Reference: X. Xiao and Y. Tao, m-invariance, SIGMOD 2007 (counterfeits).

Differences from the paper: bounds beside the point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reticent.read.estimate.veil import Counts

if TYPE_CHECKING:
    import numpy.typing as npt

    from reticent.read.arrays import Vector
    from reticent.read.question import Question

    Codes = npt.NDArray[np.integer]


def counts(values: Codes, groups: Codes, fakes: Codes, question: Question, *, missing: int = 0) -> Counts:
    """How many persons have a value of the target; `values` are codes, -1 where one is missing, `fakes` the counterfeits of each group."""
    size = np.maximum(np.bincount(groups, minlength=len(fakes)), 1)
    real = (1 - fakes / size)[groups]
    known, match = np.append(question.target, 0.0)[values], question.match
    estimate = question.sums(known * match.share * real)
    low = _at_least(question, groups, fakes, known * match.sure)
    high = question.sums(known * match.perhaps)
    number = question.sums(match.perhaps.astype(np.float64)).astype(np.int64) + missing
    return Counts(np.maximum(estimate, low), ((high - low) / 4) ** 2, low, high + missing, number)


def _at_least(question: Question, groups: Codes, fakes: Codes, lines: Vector) -> Vector:
    """Matching lines of each group, less its counterfeits."""
    width = len(fakes)
    pairs, at = np.unique(question.groups.astype(np.int64) * width + groups, return_inverse=True)
    matching = np.bincount(at, lines, minlength=len(pairs))
    return np.bincount(pairs // width, np.maximum(matching - fakes[pairs % width], 0), minlength=question.size).astype(
        float
    )
