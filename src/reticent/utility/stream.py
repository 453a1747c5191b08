"""Utility of a delay-free stream: information loss of the sensitive attribute, and uncertainty from counterfeits.

Cost: O(groups).
Reference: S. Kim, M. Sung, Y. Chung, "A framework to preserve the privacy of electronic health data streams", Journal
    of Biomedical Informatics 50, 2014, equations (6) to (8).
Differences from the paper: the limit is our own. A release in which every candidate has at most a share of 1/l in its
    group needs at least l * p_max slots per tuple if the most frequent value has share p_max, so
    SAU >= 1 - 1/(l * p_max).
"""

from __future__ import annotations

import numpy as np

from reticent.arrays import Int64s


def stream_information_loss(candidates: Int64s, tuples: Int64s, quasi: int) -> float:
    """Equations (6) and (7), averaged over the tuples.

    Args:
        candidates: distinct candidate values per group.
        tuples: tuples per group.
        quasi: number of quasi-identifiers, which are published unchanged.

    >>> round(stream_information_loss(np.array([2]), np.array([1]), quasi=2), 6)
    0.166667
    """
    total = int(tuples.sum())
    if total == 0:
        return 0.0
    sensitive = float((((candidates - 1) / np.maximum(candidates, 1)) * tuples).sum() / total)
    return sensitive / (quasi + 1)


def sau(slots: int, tuples: int) -> float:
    """Equation (8): the share of published candidate counts that no tuple fills; 0 before the first publication.

    >>> sau(slots=10, tuples=8)
    0.2
    """
    return (slots - tuples) / slots if slots else 0.0


def sau_limit(l: float, p_max: float) -> float:
    """Return the lower limit of SAU for any method: 1 - 1/(l * p_max), with p_max the share of the most frequent value.

    >>> round(sau_limit(15, 0.1002), 3)
    0.335
    """
    return max(0.0, 1.0 - 1.0 / (l * p_max)) if l * p_max > 0 else 0.0
