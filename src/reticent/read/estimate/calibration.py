"""Calibration of estimated counts by the noisy counts in a release.

Guarantee (to the recipient): the estimate for a part of a stratum is N + w (T - N_s), where T is the published noisy
count of the stratum and N_s its estimate. T and N_s have the same mean for all true values, and w depends on neither, so
the estimate stays unbiased. Its variance has (1 - w)^2 for the records of the part, and w^2 for the other records of the
stratum and for the noise in T.

Not covered: counts by other fields; within a stratum, a part gains only in proportion to its size. Values that a stratum
omits.

Cost: one pass over all first events, in addition to the pass over the part.

Reference: J.-C. Deville and C.-E. Saerndal, Calibration estimators in survey sampling, JASA 1992.

Differences from the paper: the totals are noisy, so the weights are those of two measurements of the same number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reticent.arrays import Floats
from reticent.read.estimate.channel import normalize_rows
from reticent.read.estimate.interval import LinearVariance


@dataclass(frozen=True, repr=False)
class NoisyCounts:
    """Published counts (strata x values), and the variance of the noise in each."""

    counts: Floats
    variance: float


@dataclass(frozen=True, repr=False)
class Cells:
    """Sums over the records of each group and stratum (groups x strata).

    Attributes:
        number: number of records.
        value: the estimate, corrected for omitted true values.
        variance: estimated variance of the estimate.
        square: sum of the squared contributions to the variance.
        omitted_variance: variance from records whose true value is omitted.
        omitted_mean: mean contribution of such records.
    """

    number: Floats
    value: Floats
    variance: Floats
    square: Floats
    omitted_variance: Floats
    omitted_mean: Floats


@dataclass(frozen=True, repr=False)
class Calibration:
    """Calibrated estimates of the groups of a question.

    Attributes:
        parts: sums of the groups in the question.
        whole: sums of all first events, by stratum.
        total: published noisy count of the target in each stratum.
        noise: variance of the noise in `total`.
        inside: variance of one record of the target, by stratum.
        outside: variance of one other record, by stratum.
    """

    parts: Cells
    whole: Cells
    total: Floats
    noise: Floats
    inside: Floats
    outside: Floats

    @property
    def _share(self) -> Floats:
        """Share of the target in each stratum, from the noisy counts."""
        return np.asarray(np.clip(self.total / np.maximum(self.whole.number[0], 1), 0, 1))

    @property
    def _weight(self) -> Floats:
        number = np.maximum(self.whole.number[0], 1)
        known = number * np.maximum(self.outside + (self.inside - self.outside) * self._share, 0)
        return np.asarray(self.parts.number / number * known / np.maximum(known + self.noise, np.finfo(float).tiny))

    def _mix(self, part: Floats, whole: Floats, power: int) -> Floats:
        """Sum over strata the weighted contributions of the part's records and of the other records."""
        w = self._weight
        return np.asarray(((1 - w) ** power * part + w**power * (whole - part)).sum(axis=1))

    @property
    def estimate(self) -> Floats:
        """The calibrated estimate of each group."""
        return np.asarray((self.parts.value + self._weight * (self.total - self.whole.value)).sum(axis=1))

    @property
    def variance(self) -> tuple[Floats, Floats]:
        """The variance of the estimates, and its standard error."""
        noise = self._weight**2 @ self.noise
        error = self._mix(self.parts.square, self.whole.square, 4)
        return self._mix(self.parts.variance, self.whole.variance, 2) + noise, np.sqrt(error)

    def omission_variance(self, omission_rate_variance: Floats) -> Floats:
        """Return the variance from records whose true value is omitted, and from the noise in the omission rate."""
        moved = (self.parts.omitted_mean - self._weight * self.whole.omitted_mean) ** 2 @ omission_rate_variance
        return self._mix(self.parts.omitted_variance, self.whole.omitted_variance, 2) + moved

    def linear_variance(self, shares: Floats) -> LinearVariance:
        """Return the channel's variance as a function of the count; `shares` is the prior of the target by stratum."""
        w, more = self._weight, self.inside - self.outside
        others = self.whole.number - self.parts.number
        base = (1 - w) ** 2 * self.parts.number * self.outside + w**2 * (
            others * (self.outside + more * self._share) + self.noise
        )
        weight = normalize_rows(self.parts.number * shares)
        return LinearVariance(base.sum(axis=1), (weight * (1 - w) ** 2 * more).sum(axis=1))
