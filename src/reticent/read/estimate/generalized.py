"""Counts from generalised tables and from series in groups: values are exact, the fields are coarse.

Guarantee (to the recipient): the count among the published records lies between the bounds, always: at least the records whose
cells lie wholly in the condition, at most those whose cells touch it. Records that were suppressed may all fulfil it, so the upper
bound has them besides. Nothing is assumed. The point estimate assumes that what a cell stands for is
spread evenly over it, or, where cells are as tight as their classes, as all cells of the column suggest (`reticent.read.cell_distribution`).

In a series values are listed by group, some of them counterfeit: a group of s lines with c counterfeits holds at least its matching
lines less c, and at most all of them. The point estimate takes every line of a group for counterfeit with the same probability c / s.

Not covered: which lines are counterfeit is not told, so small counts in groups with many of them stay open. The bounds say nothing of how likely a count between them is; they are no confidence interval.

Cost: linear in the records.

Reference: K. LeFevre, D. DeWitt and R. Ramakrishnan, Workload-aware anonymization, KDD 2006 (the even spread); X. Xiao
and Y. Tao, m-invariance, SIGMOD 2007 (counterfeits).

Differences from the paper: bounds beside the point.
"""

from __future__ import annotations

import numpy as np

from reticent.arrays import Floats, Integers
from reticent.read.estimate.veil import Counts
from reticent.read.question import Question


def counts(
    values: Integers, question: Question, *, missing: int = 0, counterfeits: tuple[Integers, Integers] | None = None
) -> Counts:
    """How many records have a value of the target; `values` are codes, -1 where one is missing.

    `fakes` are the group of each record, and how many lines of each group are counterfeit.
    """
    known, match = np.append(question.target, 0.0)[values], question.match
    at = np.flatnonzero(known)  # of many values each has few records, and the others add nothing
    low, high, estimate = (question.sums(known[at] * part[at], at) for part in (match.sure, match.perhaps, match.share))
    if counterfeits is not None:
        groups, number = counterfeits
        real = 1 - number / np.maximum(np.bincount(groups, minlength=len(number)), 1)
        low = _at_least(question, groups, number, known * match.sure)
        estimate = np.maximum(question.sums(known * match.share * real[groups]), low)
    whole = counterfeits is None and bool(question.target.all() and match.sure.all()) and question.size == 1
    records = question.sums(match.perhaps.astype(np.float64)).astype(np.int64) + missing
    return Counts(estimate, ((high - low) / 4) ** 2, low, high + (0 if whole else missing), records)


def _at_least(question: Question, groups: Integers, counterfeits: Integers, lines: Floats) -> Floats:
    """Matching lines of each group, less its counterfeits."""
    width = len(counterfeits)
    pairs, at = np.unique(question.groups.astype(np.int64) * width + groups, return_inverse=True)
    matching = np.bincount(at, lines, minlength=len(pairs))
    return np.bincount(
        pairs // width, np.maximum(matching - counterfeits[pairs % width], 0), minlength=question.size
    ).astype(float)
