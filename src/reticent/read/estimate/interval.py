"""Intervals of a count whose variance grows with the count itself."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from reticent.arrays import Floats, Integers


@dataclass(frozen=True)
class LinearVariance:
    """Variance of an estimate as a function of the true count N: `base` + `slope` N."""

    base: Floats
    slope: Floats

    def variance(self, count: Floats) -> Floats:
        """Return the variance at a count."""
        return np.asarray(self.base + self.slope * count)

    def at_least(self, variance: Floats, count: Floats) -> LinearVariance:
        """Scale the function up so that it reaches an observed variance at a count."""
        own = self.variance(count)
        factor = np.maximum(np.divide(variance, own, out=np.ones_like(own), where=own > 0), 1)
        return LinearVariance(self.base * factor, self.slope * factor)


def quantile(level: float) -> float:
    """Return the z of a two-sided interval."""
    return NormalDist().inv_cdf((1 + level) / 2)


def normal_interval(estimate: Floats, variance: Floats, most: Integers, z: float) -> tuple[Floats, Floats]:
    """Return the estimate +- z standard errors, clipped to possible counts."""
    half = z * np.sqrt(np.maximum(variance, 0))
    return np.clip(estimate - half, 0, most), np.clip(estimate + half, 0, most)


def score_interval(estimate: Floats, variance: LinearVariance, most: Integers, z: float) -> tuple[Floats, Floats]:
    """Return all N for which the estimate is at most z standard errors away, with the standard error at N.

    Unlike the normal interval, it does not collapse when the count is near 0.
    """
    # Without this limit, an estimate far below 0 would give an upper end of 0.
    room = 1.5 * np.sqrt(np.maximum(variance.base, 0))
    low, high = _end(estimate, variance, z, -1), _end(np.maximum(estimate, -room), variance, z, 1)
    return np.clip(np.minimum(low, estimate), 0, most), np.clip(np.maximum(high, estimate), 0, most)


def _end(estimate: Floats, spread: LinearVariance, z: float, side: int) -> Floats:
    # Continuity correction: one set more or less moves the estimate by about one.
    moved = estimate + side / 2
    middle = moved + z * z * spread.slope / 2
    half = np.sqrt(np.maximum(middle**2 - moved**2 + z * z * spread.base, 0))
    return np.asarray(middle + side * half)
