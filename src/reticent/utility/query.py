"""Count queries on a release: estimated as a careful reader would, and compared with the truth.

A record published as a box of values is taken to lie anywhere in the box with equal probability.

Cost: O(records * attributes) per query.
Reference: K. LeFevre, D. DeWitt, R. Ramakrishnan, "Workload-aware anonymization", KDD 2006; X. Xiao, Y. Tao, "Anatomy",
    VLDB 2006, section 6 (relative error of random range-count queries).
Differences from the paper: the divisor of the relative error is at least `floor`, so that empty queries do not weigh
    more than all others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def overlap_count(
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    query: tuple[NDArray[np.int64], NDArray[np.int64]],
    weight: NDArray[np.float64] | None = None,
) -> float:
    """Estimate how many records fall into a box of codes, borders included.

    Args:
        low: lowest code of every record's published box, shape (records, attributes).
        high: highest code of the same box; equal to low where the value is exact.
        query: lowest and highest code asked for, per attribute.
        weight: probability that a record has the sensitive value asked for; 1 by default.

    >>> overlap_count(np.array([[0], [5]]), np.array([[3], [5]]), (np.array([2]), np.array([5])))
    1.5
    """
    inside = np.minimum(high, query[1]) - np.maximum(low, query[0]) + 1
    shares = np.prod(np.maximum(inside, 0) / (high - low + 1), axis=1)
    return float(shares.sum() if weight is None else (shares * weight).sum())


def relative_error(
    truth: NDArray[np.float64], estimate: NDArray[np.float64], floor: float = 1.0
) -> NDArray[np.float64]:
    """|estimate - truth| / truth per query, the divisor being at least ``floor``."""
    actual = np.asarray(truth, dtype=np.float64)
    return np.abs(np.asarray(estimate, dtype=np.float64) - actual) / np.maximum(actual, floor)
