"""Noise on counts: the two-sided geometric mechanism.

Guarantee (to each person of the past, against whoever sees the counts): with one record per person, changing one record
moves two counts by one, so noise of scale 2 / epsilon makes the whole table epsilon-differentially private.

Not covered: a person with several records; which values and strata the table has, unless they were fixed before.

Cost: two draws per count.

Reference: A. Ghosh, T. Roughgarden and M. Sundararajan, Universally utility-maximizing privacy mechanisms, STOC 2009.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

# A count that is less than this many scales is as likely noise as a record.
SCALES = 4


def scale(epsilon: float | None) -> float:
    """The scale of the noise: 2 / epsilon; 0 where the past is public."""
    return 0.0 if epsilon is None else 2 / epsilon


def noised(counts: npt.NDArray[np.int64], epsilon: float | None, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """The counts with noise; none if epsilon is None (the past is public).

    Example:
        >>> noised(np.array([5, 0]), None, np.random.default_rng(1)).tolist()
        [5, 0]
    """
    if epsilon is None:
        return counts.copy()
    stop = -np.expm1(-1 / scale(epsilon))
    # A difference of two geometric numbers falls off by exp(-1 / scale) per step on both sides.
    return np.asarray(counts + rng.geometric(stop, counts.shape) - rng.geometric(stop, counts.shape))


def floor(epsilon: float | None) -> float:
    """Below this a noised count says nothing."""
    return SCALES * scale(epsilon)
