"""A question as the estimators take it: which values, which records, by what, how sure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa

from reticent.arrays import Bools, Floats, Int64s
from reticent.read.estimate.veil import Counts
from reticent.read.where import Match


@dataclass(frozen=True, repr=False)
class Question:
    """How many records, by group, have a value of the target and fulfil the conditions.

    Attributes:
        target: 1 for the values to count, in the order of the domain.
        match: how far each record fulfils the conditions.
        groups: group of each record, as numbers from 0.
        size: number of groups.
        level: of the interval.
    """

    target: Floats
    match: Match
    groups: Int64s
    size: int
    level: float

    def sums(self, values: Floats, at: Int64s | None = None) -> Floats:
        """Sums of a number per record, by group; `at` says which records the numbers are of, all if left out."""
        groups = self.groups if at is None else self.groups[at]
        return np.bincount(groups, values, minlength=self.size).astype(np.float64)


class Shape(Protocol):
    """A release of one shape: its records, the values it speaks of, and how to count and to draw them."""

    @property
    def domain(self) -> tuple[str, ...]:
        """Labels of the values."""

    @property
    def table(self) -> pa.Table:
        """One line per record."""

    @property
    def bounded(self) -> bool:
        """Whether low and high are bounds that always hold, not an interval."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of every answer must know."""

    @property
    def counted(self) -> Bools:
        """The records that answers are about."""

    def counts(self, question: Question) -> Counts:
        """Estimates with intervals."""

    def scores(self, target: Floats) -> Floats:
        """Per record a number whose mean is that of the target."""

    def shares(self, target: Floats) -> Floats:
        """Per record the share of the target among its candidates, or in its group: what a reader believes who knows nothing more."""

    def values(self, strata: Int64s, draws: int, rng: np.random.Generator) -> list[Int64s]:
        """Completed values of every record, so many times."""


def shrink(counts: Counts, shares: Floats) -> Counts:
    """The estimate drawn toward the sum of shares, as far as the two agree; the interval stays that of the unbiased estimate.

    The nearer they lie, beside the standard error, the more of their difference is noise (James and Stein, 1961). Smaller errors where
    what readers believe beforehand is right; wrong by up to a standard error or so where it is not: never the interval.
    """
    gap = counts.estimate - shares
    weight = np.maximum(1 - 2 * counts.variance / np.maximum(gap**2, 1e-12), 0)
    return replace(counts, estimate=shares + weight * gap)


def combine_bounds(point: Floats, sure: Counts, perhaps: Counts) -> Counts:
    """Where cells leave open which records count: from the low end of those that surely do to the high end of all that may."""
    low, high = np.minimum(sure.low, perhaps.low), np.maximum(sure.high, perhaps.high)
    return replace(perhaps, estimate=np.clip(point, low, high), low=low, high=high)


def shares_of(counts: Counts, match: Match, groups: Int64s, counted: Bools) -> Counts:
    """Counts over the counted records that fulfil the conditions; where those are open, in the worst case."""
    size = len(counts.estimate)
    point, least, most = (
        np.maximum(np.bincount(groups, part * counted, minlength=size), 1e-12)
        for part in (match.share, match.sure.astype(float), match.perhaps.astype(float))
    )
    ends = [np.clip(end, 0, 1) for end in (counts.low / most, counts.high / least)]
    estimate = np.clip(counts.estimate / point, *ends)
    return replace(counts, estimate=estimate, variance=counts.variance / point**2, low=ends[0], high=ends[1])


def bounded_shares(counts: Counts, others: Counts) -> Counts:
    """Bounds of a share from those of the count and of all other records; what was left out may be either."""
    low, high = (
        least / np.maximum(least + most, 1e-12)
        for least, most in ((counts.low, others.high), (counts.high, others.low))
    )
    whole = np.maximum(counts.estimate + others.estimate, 1e-12)
    estimate = counts.estimate / whole
    return replace(counts, estimate=estimate, variance=counts.variance / whole**2, low=low, high=high)
