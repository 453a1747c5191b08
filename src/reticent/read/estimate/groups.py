"""Counts from releases in groups: the group's composition is the channel, and it is inverted as the veil's is.

A group publishes how often each value occurs in it, not whose it is. Let M be the composition of a record's group. Over
all records E[M | v] is known exactly, because each value's records stand in the groups that list it: with
Pi = sum over groups of M M' / n, pi = N / n and Pi c = pi o f, the sum h of c over the composition has mean f(v) over the
records of every value v. Shares of the group itself mix in the other members and pull every answer toward the whole.

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
from typing import TYPE_CHECKING

import numpy as np

from reticent.errors import PolicyError
from reticent.read.estimate.interval import Spread, plain, quantile, score
from reticent.read.estimate.veil import EXACT, Counts

if TYPE_CHECKING:
    import numpy.typing as npt

    Vector = npt.NDArray[np.float64]
    Codes = npt.NDArray[np.integer]

# Directions this much weaker than the strongest one are invisible.
_WEAK = 1e-9


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
    groups: Codes
    values: Codes
    counts: Codes
    records: Codes | None = None

    def __repr__(self) -> str:
        return f"Groups({len(np.unique(self.groups))} groups, {self.size} values)"

    @cached_property
    def _full(self) -> Vector:
        """Per group the share of the listed values that have a record."""
        listed = np.bincount(self.groups, self.counts).astype(np.float64)
        return np.ones(len(listed)) if self.records is None else self.records / np.maximum(listed, 1)

    @cached_property
    def totals(self) -> Vector:
        """Records of each value; expected ones where groups are not full."""
        weight = self.counts * self._full[self.groups]
        return np.bincount(self.values, weight, minlength=self.size).astype(np.float64)

    @cached_property
    def _inverse(self) -> tuple[Vector, Vector]:
        """Pseudo-inverse of the scaled moments, and a basis of what they do not show."""
        scaled = self._moments / self._scale[:, None] / self._scale
        values, vectors = np.linalg.eigh(scaled)
        visible = values > _WEAK * max(values[-1], 1)
        basis = vectors[:, visible]
        return (basis / values[visible]) @ basis.T, vectors[:, ~visible]

    @property
    def _scale(self) -> Vector:
        return np.sqrt(np.maximum(self.totals, 1))

    @property
    def _moments(self) -> Vector:
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

    def scores(self, target: Vector) -> Vector:
        """Per group, what each of its records adds to the estimate of a target.

        Raises:
            PolicyError: where the groups do not tell the target.
        """
        inverse, invisible = self._inverse
        wanted = np.where(self.totals > 0, self.totals * target, 0) / self._scale
        if np.abs(wanted @ invisible).max(initial=0) > np.sqrt(_WEAK) * np.linalg.norm(wanted):
            raise PolicyError(
                "This count cannot be told from the groups: they all list the same values, or always these together.",
                hint="Ask about all values that stand together, or about everybody.",
            )
        coefficients = inverse @ wanted / self._scale
        return np.bincount(self.groups, self.counts * coefficients[self.values]).astype(np.float64)

    def count(self, region: Codes, target: Vector, *, level: float = 0.95) -> Counts:
        """How many records of a region have a value of the target.

        Args:
            region: the group of each record in the region.
            target: 1 for the values to count.
            level: of the interval.
        """
        return self.counts_by(region, np.zeros(len(region), dtype=np.int64), target, size=1, level=level)

    def counts_by(self, region: Codes, by: Codes, target: Vector, *, size: int, level: float = 0.95) -> Counts:
        """The same for several regions: `by` says which one each record belongs to."""
        each = self.scores(target)
        width, number = len(each), np.bincount(by, minlength=size)
        pairs, records = np.unique(by.astype(np.int64) * width + region, return_counts=True)
        at, sums = pairs // width, records * each[pairs % width]
        estimate = np.bincount(at, sums, minlength=size).astype(np.float64)
        # Nothing is left to chance when the region is everybody.
        rest = np.maximum(1 - number / max(float(self.totals.sum()), 1.0), 0.0)
        square = sums * (sums - 1)  # m^2 >= m for the m records of a group that count
        variance = np.asarray(np.bincount(at, square, minlength=size) * rest, dtype=np.float64)
        error = np.sqrt(np.bincount(at, square**2, minlength=size)) * rest
        low, high = plain(estimate, variance, number, quantile(level))
        few = error > EXACT * variance
        if few.any():
            spread = self._spread(each, target, number, rest).at_least(variance, np.clip(estimate, 0, number))
            ends = score(estimate, spread, number, quantile(level))
            low, high = np.where(few, ends[0], low), np.where(few, ends[1], high)
            variance = np.where(few, spread.variance(np.clip(estimate, 0, number)), variance)
        return Counts(estimate, variance, low, high, number)

    def _spread(self, each: Vector, target: Vector, number: Codes, rest: Vector) -> Spread:
        """Variance as a function of the count, if all records were as likely to be in the region."""
        weight = self.counts * self._full[self.groups]
        error = weight * (each[self.groups] - target[self.values]) ** 2
        mine, whole = float(target @ self.totals), float(self.totals.sum())
        inside = error @ target[self.values] / max(mine, 1.0)
        outside = error @ (1 - target[self.values]) / max(whole - mine, 1.0)
        return Spread(rest * number * outside, rest * (inside - outside))
