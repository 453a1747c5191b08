"""Counts from releases in groups: the composition of the group is the channel, inverted as in the veil.

A group publishes how often each value occurs in it, but not for which record. Let M be the composition of a record's
group. Over all records E[M | v] is known exactly, because each value's records are in the groups that list the value:
with Pi = sum over groups of M M' and Pi c = N o f, the sum h of c over the composition has mean f(v) over the records of
every value v. A ridge relaxes this for values with few records: it holds exactly over all records of the target and over
all others, and nearly for each single value; the interval is widened by the difference. Estimates by the group's shares
would be biased toward the whole, because they mix in the other members.

Guarantee (to the recipient): sums of h over all records are exact; over a region they are unbiased if, given the values,
records were grouped independently of the region (as in Anatomy).

Not covered: groups of similar records. In groups with counterfeit values (delay-free) a listed value may have no record;
each listed value is assumed to have one with the same probability, records / listed values. This is nearly true for the
pool `matched`.

Cost: groups x (values per group)^2, one inversion of K x K.

Reference: X. Xiao and Y. Tao, Anatomy: simple and effective privacy preservation, VLDB 2006.

Differences from the paper: the paper estimates by the groups' shares, which is biased if region and value are dependent.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from reticent.arrays import Floats, Integers
from reticent.errors import PolicyError
from reticent.read.estimate.interval import LinearVariance, quantile, score_interval
from reticent.read.estimate.veil import Counts

# How closely the means of single values match their targets: half for a value of l records, nine tenths for 10 l. A
# closer match would fit the noise of rare values.
_RIDGE = 1.0
# A smaller difference between the means of the target and of the others counts as none.
_MIN_DIFFERENCE = 1e-6
# The bias of a value with fewer records is chance, which the interval covers.
_MIN_RECORDS = 20
# Largest biased share of the target before the question is refused.
_MAX_BIAS = 0.1
# How much the records of a value may prefer or avoid a region (one standard deviation).
_REGION_EFFECT = 0.5
# In groups with counterfeits, the values with a record are not quite random; this factor covers it (bench/read.py).
_OPEN_FACTOR = 1.2


@dataclass(frozen=True, repr=False)
class Groups:
    """The published table of groups as parallel arrays: the count of each value in each group.

    Attributes:
        size: number of values.
        groups: group of each row, as numbers from 0.
        values: code of the value of each row.
        counts: count of the value in the group.
        records: number of records of each group, if there are fewer than listed values.
    """

    size: int
    groups: Integers
    values: Integers
    counts: Integers
    records: Integers | None = None

    @cached_property
    def _full(self) -> Floats:
        """Share of the listed values that have a record, by group."""
        listed = np.bincount(self.groups, self.counts).astype(np.float64)
        return np.ones(len(listed)) if self.records is None else self.records / np.maximum(listed, 1)

    @cached_property
    def totals(self) -> Floats:
        """Number of records of each value; the expected number in groups with counterfeits."""
        weight = self.counts * self._full[self.groups]
        return np.bincount(self.values, weight, minlength=self.size).astype(np.float64)

    @cached_property
    def _moments(self) -> Floats:
        """Sum over groups of M M', from all pairs of rows of a group."""
        order = np.argsort(self.groups, kind="stable")
        _, start, size = np.unique(self.groups[order], return_index=True, return_counts=True)
        times = np.repeat(size, size)
        left = np.repeat(np.arange(len(order)), times)
        right = np.repeat(start, size * size) + np.arange(len(left)) - np.repeat(times.cumsum() - times, times)
        left, right = order[left], order[right]
        flat = self.values[left].astype(np.int64) * self.size + self.values[right]
        weight = self.counts[left] * self.counts[right] * self._full[self.groups[left]]
        total = np.bincount(flat, weight, minlength=self.size**2)
        return total.reshape(self.size, self.size).astype(np.float64)

    @cached_property
    def _solver(self) -> Floats:
        """(l + lambda Pi)^-1: the more records a value has, the closer its mean is to its target."""
        listed = np.bincount(self.groups, self.counts).astype(np.float64)
        records = listed * self._full
        size = float(records @ listed) / max(float(records.sum()), 1.0)
        return np.asarray(np.linalg.inv(size * np.eye(self.size) + _RIDGE * self._moments), dtype=np.float64)

    @property
    def _weights(self) -> Floats:
        """Number of records of each row."""
        return np.asarray(self.counts * self._full[self.groups])

    def scores(self, target: Floats) -> Floats:
        """Return the contribution of each record to the estimate of a target, by group.

        Raises:
            PolicyError: the target cannot be estimated from the groups.
        """
        mine, whole = float(target @ self.totals), float(self.totals.sum())
        if mine <= 0 or mine >= whole:
            return np.full(int(self.groups.max(initial=-1)) + 1, float(mine > 0))
        coefficients = self._solver @ (target + _RIDGE * self.totals * target)
        each = np.bincount(self.groups, self.counts * coefficients[self.values]).astype(np.float64)
        # Scale to a mean of 1 over all records of the target and 0 over all others: counts of everybody become exact.
        line = self._weights * each[self.groups]
        inside, outside = line @ target[self.values] / mine, line @ (1 - target[self.values]) / (whole - mine)
        if inside - outside > _MIN_DIFFERENCE:
            each = np.asarray((each - outside) / (inside - outside))
            if self._excess_bias(each, target) <= _MAX_BIAS * mine:
                return each
        raise PolicyError(
            "This count cannot be estimated: all groups list the same values, or always list these values together.",
            hint="Ask for all values that occur together, or for all records.",
        )

    def _means(self, each: Floats) -> Floats:
        """Return the mean score over the records of each value."""
        total = np.bincount(self.values, self._weights * each[self.groups], minlength=self.size)
        return np.asarray(total / np.maximum(self.totals, 1e-12))

    def _excess_bias(self, each: Floats, target: Floats) -> float:
        """Return the squared bias of frequent values beyond what chance explains (three standard errors)."""
        means = self._means(each)
        noise = self._weights @ (each[self.groups] - means[self.values]) ** 2 / max(float(self.totals.sum()), 1.0)
        return float(np.maximum(self.totals * (means - target) ** 2 - 9 * noise, 0)[self.totals >= _MIN_RECORDS].sum())

    def counts_by(self, region: Integers, by: Integers, target: Floats, *, size: int, level: float = 0.95) -> Counts:
        """Count the records with a target value by region (`by`); `region` is the group of each record in a region."""
        each = self.scores(target)
        number = np.bincount(by, minlength=size)
        estimate = np.bincount(by, each[region], minlength=size).astype(np.float64)
        spread = self._linear_variance(each, target, np.clip(estimate, 0, number), number)
        more = self._design_effect(region, by, number) * (1.0 if self.records is None else _OPEN_FACTOR)
        doubt = (
            self._fill_variance(target) * (np.clip(estimate, 0, number) / max(float(target @ self.totals), 1.0)) ** 2
        )
        spread = LinearVariance(more * spread.base + doubt, more * spread.slope)
        low, high = score_interval(estimate, spread, number, quantile(level))
        return Counts(estimate, spread.variance(np.clip(estimate, 0, number)), low, high, number)

    def _linear_variance(self, each: Floats, target: Floats, count: Floats, number: Integers) -> LinearVariance:
        """Return the variance as a function of the count.

        Given the groups, records of the target are in the region with one probability and all others with another. A region
        that contains all records has no variance.
        """
        weight = self.counts * self._full[self.groups]
        error = weight * (each[self.groups] - target[self.values]) ** 2
        mine, whole = float(target @ self.totals), float(self.totals.sum())
        inside, outside = (
            float(error @ part[self.values]) / max(total, 1.0) * np.maximum(1 - records / max(total, 1.0), 0.0)
            for part, total, records in ((target, mine, count), (1 - target, whole - mine, number - count))
        )
        # A region that favors some values adds the bias of their means.
        means = self._means(each)
        off = ((self.totals * (means - target))[self.totals > 0] ** 2).sum()
        part = number / max(whole, 1.0)
        base = number * outside + off * (_REGION_EFFECT * part) ** 2 * np.maximum(1 - part, 0)
        return LinearVariance(base, inside - outside)

    def _design_effect(self, region: Integers, by: Integers, number: Integers) -> Floats:
        """Return the factor by which records of a region share groups more than by chance; 1 within chance.

        The reason is persons with several records in one group. The variance grows by the same factor.
        """
        size = np.bincount(self.groups, self.counts * self._full[self.groups])
        groups = np.flatnonzero(size)
        share = np.clip(number / max(float(size.sum()), 1.0), 1e-9, 1 - 1e-9)
        pairs, inside = np.unique(by.astype(np.int64) * len(size) + region, return_counts=True)
        at, mine = pairs // len(size), size[pairs % len(size)]
        square = np.bincount(at, inside**2 / mine, minlength=len(number)) - number * share
        ratio = square / (share * (1 - share)) / max(len(groups), 1)
        chance = np.sqrt((2 + 1 / (share * size[groups].mean())) / max(len(groups), 1)) if len(groups) else share
        return np.where((ratio > 1 + 3 * chance) & (number > 0), ratio, 1.0)

    def _fill_variance(self, target: Floats) -> float:
        """Return the variance of the number of listed target values that have a record, over groups with counterfeits.

        It has a random part, and a part for values that are counterfeit together because of their frequency.
        """
        if self.records is None:
            return 0.0
        listed = np.bincount(self.groups, self.counts).astype(np.float64)
        share = np.bincount(self.groups, self.counts * target[self.values]) / np.maximum(listed, 1)
        empty = np.maximum(listed - self.records, 0) / np.maximum(listed - 1, 1)
        stake = float(self._full @ (share * (listed - self.records)))
        return float(self.records @ (share * (1 - share) * empty)) + stake**2
