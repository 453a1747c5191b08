"""Counts from generalized tables and from series in groups: values are exact, fields are coarse.

Guarantee (to the recipient): the count always lies between the bounds, without assumptions. The lower bound counts the
records whose cells lie completely in the condition, the upper bound those whose cells overlap it and all suppressed
records. The point estimate assumes that values are spread evenly over a cell or, if intervals are the tightest of their
class, by the other cells of the column (`reticent.read.cell_distribution`).

In a series, values are listed by group, and some are counterfeit. A group with c counterfeits contains at least its
matching rows minus c, and at most all of them. The point estimate takes each of s rows for counterfeit with probability c / s.

Not covered: which rows are counterfeit, so small counts in groups with many counterfeits stay uncertain. The bounds are
not a confidence interval: they do not say how likely a count between them is.

Cost: linear in the records.

Reference: K. LeFevre, D. DeWitt and R. Ramakrishnan, Workload-aware anonymization, KDD 2006 (the even spread); X. Xiao
and Y. Tao, m-invariance, SIGMOD 2007 (counterfeits).

Differences from the paper: bounds in addition to the point estimate.
"""

from __future__ import annotations

import numpy as np

from reticent.arrays import Floats, Integers
from reticent.read.estimate.veil import Counts
from reticent.read.question import Question


def counts(
    values: Integers, question: Question, *, missing: int = 0, counterfeits: tuple[Integers, Integers] | None = None
) -> Counts:
    """Count the records with a target value; `values` are codes, -1 for a missing value.

    `counterfeits` are the group of each record, and the number of counterfeit rows of each group.
    """
    known, match = np.append(question.target, 0.0)[values], question.match
    at = np.flatnonzero(known)  # skip records without a target value, usually most of them
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
    """Sum over groups the matching rows minus the counterfeits, at least 0."""
    width = len(counterfeits)
    pairs, at = np.unique(question.groups.astype(np.int64) * width + groups, return_inverse=True)
    matching = np.bincount(at, lines, minlength=len(pairs))
    return np.bincount(
        pairs // width, np.maximum(matching - counterfeits[pairs % width], 0), minlength=question.size
    ).astype(float)
