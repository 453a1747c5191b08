"""Counts drawn toward the noisy totals that a release carries: the same truth, seen once more.

Guarantee (to the recipient): a part of a row is N + w (T - N_row), with T the published total of the row and N_row the estimate of it. Both
have the same mean whatever is true, and w depends on neither, so nothing becomes biased. The variance is that of the sum as it is
made: (1 - w)^2 for the records of the part, w^2 for the others of its row and for the noise in T.

Not covered: directions that are not tabulated: within a row, a part gains by the totals only in the proportion in which it
is the row. Values that a row does not offer.

Cost: one pass over all first sights beside the one over the part.

Reference: J.-C. Deville and C.-E. Saerndal, Calibration estimators in survey sampling, JASA 1992.

Differences from the paper: the totals are noisy, so the weights are those of two measurements of one number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reticent.arrays import Floats
from reticent.read.estimate.channel import normalize_rows
from reticent.read.estimate.interval import LinearVariance


@dataclass(frozen=True, repr=False)
class NoisyCounts:
    """Published counts, rows x values, and the variance of the noise in each."""

    counts: Floats
    variance: float


@dataclass(frozen=True, repr=False)
class Cells:
    """Sums over the records of each group and row (groups x rows).

    Attributes:
        number: of records.
        value: the estimate, what is not offered taken off.
        variance: its estimated variance.
        square: squares of what each record adds to that.
        own: variance that records add whose truth is not offered.
        moved: what such records add on average.
    """

    number: Floats
    value: Floats
    variance: Floats
    square: Floats
    omitted_variance: Floats
    omitted_mean: Floats


@dataclass(frozen=True, repr=False)
class Calibration:
    """How far each part is drawn.

    Attributes:
        parts: the groups that are asked for.
        whole: all first sights, by row.
        total: published total of the target in each row.
        noise: its variance.
        inside: variance of one record of the target, by row.
        outside: of one other record.
    """

    parts: Cells
    whole: Cells
    total: Floats
    noise: Floats
    inside: Floats
    outside: Floats

    @property
    def _share(self) -> Floats:
        """Of the target in each row, as the totals say."""
        return np.asarray(np.clip(self.total / np.maximum(self.whole.number[0], 1), 0, 1))

    @property
    def _weight(self) -> Floats:
        number = np.maximum(self.whole.number[0], 1)
        known = number * np.maximum(self.outside + (self.inside - self.outside) * self._share, 0)
        return np.asarray(self.parts.number / number * known / np.maximum(known + self.noise, np.finfo(float).tiny))

    def _mix(self, part: Floats, whole: Floats, power: int) -> Floats:
        """Over the rows: what the part's records add and what the others of their rows do."""
        pull = self._weight
        return np.asarray(((1 - pull) ** power * part + pull**power * (whole - part)).sum(axis=1))

    @property
    def estimate(self) -> Floats:
        """One number per group."""
        return np.asarray((self.parts.value + self._weight * (self.total - self.whole.value)).sum(axis=1))

    @property
    def variance(self) -> tuple[Floats, Floats]:
        """Of the estimates, and one standard error of it."""
        noise = self._weight**2 @ self.noise
        error = self._mix(self.parts.square, self.whole.square, 4)
        return self._mix(self.parts.variance, self.whole.variance, 2) + noise, np.sqrt(error)

    def omission_variance(self, omission_rate_variance: Floats) -> Floats:
        """What records add whose truth is not offered, and the noise in their share."""
        moved = (self.parts.omitted_mean - self._weight * self.whole.omitted_mean) ** 2 @ omission_rate_variance
        return self._mix(self.parts.omitted_variance, self.whole.omitted_variance, 2) + moved

    def linear_variance(self, shares: Floats) -> LinearVariance:
        """Variance as a function of the count, as the channel knows it; `shares` is the prior's, of the target in each row."""
        pull, more = self._weight, self.inside - self.outside
        others = self.whole.number - self.parts.number
        base = (1 - pull) ** 2 * self.parts.number * self.outside + pull**2 * (
            others * (self.outside + more * self._share) + self.noise
        )
        weight = normalize_rows(self.parts.number * shares)
        return LinearVariance(base.sum(axis=1), (weight * (1 - pull) ** 2 * more).sum(axis=1))
