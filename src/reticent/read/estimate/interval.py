"""Intervals of a count whose variance grows with the count itself."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from reticent.arrays import Floats, Integers


@dataclass(frozen=True)
class LinearVariance:
    """Variance of an estimate if the count is N: `base` + `slope` N."""

    base: Floats
    slope: Floats

    def variance(self, count: Floats) -> Floats:
        """The variance if the count is this."""
        return np.asarray(self.base + self.slope * count)

    def at_least(self, variance: Floats, count: Floats) -> LinearVariance:
        """Widened to a variance that was seen at a count: records may differ from those that this one was made for."""
        mine = self.variance(count)
        factor = np.maximum(np.divide(variance, mine, out=np.ones_like(mine), where=mine > 0), 1)
        return LinearVariance(self.base * factor, self.slope * factor)


def quantile(level: float) -> float:
    """The z of a two-sided interval."""
    return NormalDist().inv_cdf((1 + level) / 2)


def normal_interval(estimate: Floats, variance: Floats, most: Integers, z: float) -> tuple[Floats, Floats]:
    """Estimate +- z standard errors, cut to what a count can be."""
    half = z * np.sqrt(np.maximum(variance, 0))
    return np.clip(estimate - half, 0, most), np.clip(estimate + half, 0, most)


def score_interval(estimate: Floats, variance: LinearVariance, most: Integers, z: float) -> tuple[Floats, Floats]:
    """Every N from which the estimate is at most z standard errors away, where those are taken at N.

    Unlike the plain interval it does not collapse when few or none were drawn.
    """
    # An estimate far below nothing is an unlucky draw: taken as it is, it would leave no room at all above nothing.
    room = 1.5 * np.sqrt(np.maximum(variance.base, 0))
    low, high = _end(estimate, variance, z, -1), _end(np.maximum(estimate, -room), variance, z, 1)
    return np.clip(np.minimum(low, estimate), 0, most), np.clip(np.maximum(high, estimate), 0, most)


def _end(estimate: Floats, spread: LinearVariance, z: float, side: int) -> Floats:
    # Half a record of room: one set more or less moves the estimate by about one, which a normal curve does not know.
    moved = estimate + side / 2
    middle = moved + z * z * spread.slope / 2
    half = np.sqrt(np.maximum(middle**2 - moved**2 + z * z * spread.base, 0))
    return np.asarray(middle + side * half)
