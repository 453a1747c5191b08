"""Counts from releases in groups: the group's composition is the channel, and it is inverted as the veil's is.

A group publishes how often each value occurs in it, not whose it is. Let M be the composition of a record's group. Over
all records E[M | v] is known exactly, because each value's records stand in the groups that list it: with
Pi = sum over groups of M M' and Pi c = N o f, the sum h of c over the composition has mean f(v) over the records of every
value v. Values with few records are held to that less closely (a ridge): exactly over all records of the target and over all others,
nearly for each value by itself, and the interval is widened by what is left. Shares of the group itself mix in the other
members and pull every answer toward the whole.

Guarantee (to the recipient): sums of h over all records are exact; over a region they are unbiased if, given the values,
records were put together without regard to the region (as Anatomy does it).

Not covered: groups made of neighbours. In groups with counterfeit values (delay-free) a listed value may have no record; each
value of a group is taken to have one with the same probability, records / values listed: nearly so for the pool `matched`.

Cost: groups x (values per group)^2, one inversion of K x K.

Reference: X. Xiao and Y. Tao, Anatomy: simple and effective privacy preservation, VLDB 2006.

Differences from the paper: it answers by the groups' shares, which are biased wherever the region and the value depend on
each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from reticent.arrays import Floats, Integers
from reticent.errors import PolicyError
from reticent.read.estimate.interval import LinearVariance, quantile, score_interval
from reticent.read.estimate.veil import Counts

# How closely the means of single values are held to their targets: half for a value of l records, nine tenths for one of 10 l. Held
# closer, rare values would be followed to the last record, and their noise with them.
_RIDGE = 1.0
# Means of the target and of the others that differ by less cannot be told apart.
_MIN_DIFFERENCE = 1e-6
# A value with fewer records is off by chance; the interval has it.
_MIN_RECORDS = 20
# Share of the target that may be off before the answer is refused.
_MAX_BIAS = 0.1
# How much likelier, or less likely, a value's records are in a region than others (one standard deviation).
_REGION_EFFECT = 0.5
# Which values of a group that is not full have a record is not quite chance: so much more variance covers it (bench/read.py).
_OPEN_FACTOR = 1.2


@dataclass(frozen=True, repr=False)
class Groups:
    """The published table of groups, as parallel arrays: so many of a value in a group.

    Attributes:
        size: number of values.
        groups: group of each line, as numbers from 0.
        values: its value's code.
        counts: how often it stands there.
        records: records of each group, where they are fewer than the values listed.
    """

    size: int
    groups: Integers
    values: Integers
    counts: Integers
    records: Integers | None = None

    @cached_property
    def _full(self) -> Floats:
        """Per group the share of the listed values that have a record."""
        listed = np.bincount(self.groups, self.counts).astype(np.float64)
        return np.ones(len(listed)) if self.records is None else self.records / np.maximum(listed, 1)

    @cached_property
    def totals(self) -> Floats:
        """Records of each value; expected ones where groups are not full."""
        weight = self.counts * self._full[self.groups]
        return np.bincount(self.values, weight, minlength=self.size).astype(np.float64)

    @cached_property
    def _moments(self) -> Floats:
        """Sum over groups of M M': every line of a group beside every line of it."""
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
        """(l + lambda Pi)^-1: the more records a value has, the closer its mean is held to its target."""
        listed = np.bincount(self.groups, self.counts).astype(np.float64)
        records = listed * self._full
        size = float(records @ listed) / max(float(records.sum()), 1.0)
        return np.asarray(np.linalg.inv(size * np.eye(self.size) + _RIDGE * self._moments), dtype=np.float64)

    @property
    def _weights(self) -> Floats:
        """Records behind each line."""
        return np.asarray(self.counts * self._full[self.groups])

    def scores(self, target: Floats) -> Floats:
        """Per group, what each of its records adds to the estimate of a target.

        Raises:
            PolicyError: where the groups do not tell the target.
        """
        mine, whole = float(target @ self.totals), float(self.totals.sum())
        if mine <= 0 or mine >= whole:
            return np.full(int(self.groups.max(initial=-1)) + 1, float(mine > 0))
        coefficients = self._solver @ (target + _RIDGE * self.totals * target)
        each = np.bincount(self.groups, self.counts * coefficients[self.values]).astype(np.float64)
        # Over all records of the target the mean is 1, over all others 0: what is asked of everybody is answered exactly.
        line = self._weights * each[self.groups]
        inside, outside = line @ target[self.values] / mine, line @ (1 - target[self.values]) / (whole - mine)
        if inside - outside > _MIN_DIFFERENCE:
            each = np.asarray((each - outside) / (inside - outside))
            if self._excess_bias(each, target) <= _MAX_BIAS * mine:
                return each
        raise PolicyError(
            "This count cannot be told from the groups: they all list the same values, or always these together.",
            hint="Ask about all values that stand together, or about everybody.",
        )

    def _means(self, each: Floats) -> Floats:
        """Mean of the scores over the records of each value."""
        total = np.bincount(self.values, self._weights * each[self.groups], minlength=self.size)
        return np.asarray(total / np.maximum(self.totals, 1e-12))

    def _excess_bias(self, each: Floats, target: Floats) -> float:
        """How far the means of frequent values are off their target, beyond what chance explains (three standard errors)."""
        means = self._means(each)
        noise = self._weights @ (each[self.groups] - means[self.values]) ** 2 / max(float(self.totals.sum()), 1.0)
        return float(np.maximum(self.totals * (means - target) ** 2 - 9 * noise, 0)[self.totals >= _MIN_RECORDS].sum())

    def counts_by(self, region: Integers, by: Integers, target: Floats, *, size: int, level: float = 0.95) -> Counts:
        """How many records of some regions have a value of the target: the group and the region (`by`) of each record in one."""
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
        """Variance as a function of the count.

        Given the groups, records of the target lie in the region with one probability, all others with another; nothing is left to
        chance where everybody does.
        """
        weight = self.counts * self._full[self.groups]
        error = weight * (each[self.groups] - target[self.values]) ** 2
        mine, whole = float(target @ self.totals), float(self.totals.sum())
        inside, outside = (
            float(error @ part[self.values]) / max(total, 1.0) * np.maximum(1 - records / max(total, 1.0), 0.0)
            for part, total, records in ((target, mine, count), (1 - target, whole - mine, number - count))
        )
        # A region that favours some values adds what the means of these are off, as far as they go together.
        means = self._means(each)
        off = ((self.totals * (means - target))[self.totals > 0] ** 2).sum()
        part = number / max(whole, 1.0)
        base = number * outside + off * (_REGION_EFFECT * part) ** 2 * np.maximum(1 - part, 0)
        return LinearVariance(base, inside - outside)

    def _design_effect(self, region: Integers, by: Integers, number: Integers) -> Floats:
        """How much more the records of a region stand together in groups than by chance: persons of several records, kept in one group.

        The variance grows by as much; 1 within what chance explains.
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
        """Variance of how many of the target's listed values have a record, over all groups that are not full.

        Chance; and which values are left without one may go by their frequency, so that those at stake may be off together.
        """
        if self.records is None:
            return 0.0
        listed = np.bincount(self.groups, self.counts).astype(np.float64)
        share = np.bincount(self.groups, self.counts * target[self.values]) / np.maximum(listed, 1)
        empty = np.maximum(listed - self.records, 0) / np.maximum(listed - 1, 1)
        stake = float(self._full @ (share * (listed - self.records)))
        return float(self.records @ (share * (1 - share) * empty)) + stake**2
