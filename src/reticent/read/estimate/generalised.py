"""Counts from generalised tables: values are exact, the fields are coarse.

Guarantee (to the recipient): the count among the published records lies between the bounds, always: at least the records whose
cells lie wholly in the condition, at most those whose cells touch it. Records that were suppressed may all fulfil it, so the upper
bound has them besides. Nothing is assumed. The point estimate assumes that what a cell stands for is spread evenly over it.

Not covered: the bounds say nothing of how likely a count between them is; they are no confidence interval.

Cost: linear in the records.

Reference: K. LeFevre, D. DeWitt and R. Ramakrishnan, Workload-aware anonymization, KDD 2006 (the even spread).

Differences from the paper: bounds beside the point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reticent.read.estimate.veil import Counts

if TYPE_CHECKING:
    import numpy.typing as npt

    from reticent.read.question import Question

    Codes = npt.NDArray[np.integer]


def counts(values: Codes, question: Question, *, missing: int = 0) -> Counts:
    """How many records have a value of the target; `values` are codes, -1 where one is missing."""
    known, match = np.append(question.target, 0.0)[values], question.match
    at = np.flatnonzero(known)  # of many values each has few records, and the others add nothing
    low, high, estimate = (question.sums(known[at] * part[at], at) for part in (match.sure, match.perhaps, match.share))
    whole = bool(question.target.all() and match.sure.all()) and question.size == 1
    extra = 0 if whole else missing
    number = question.sums(match.perhaps.astype(np.float64)).astype(np.int64) + missing
    return Counts(estimate, ((high - low) / 4) ** 2, low, high + extra, number)
