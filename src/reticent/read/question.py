"""Questions to the estimators: which values, which records, by which groups, at which confidence level."""

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
    """How many records have a target value and match the conditions, by group.

    Attributes:
        target: 1 for the values to count, 0 for others, in the order of the domain.
        match: how far each record matches the conditions.
        groups: group of each record, as numbers from 0.
        size: number of groups.
        level: level of the interval.
    """

    target: Floats
    match: Match
    groups: Int64s
    size: int
    level: float

    def sums(self, values: Floats, at: Int64s | None = None) -> Floats:
        """Sum one number per record by group; `at` selects the records, default: all."""
        groups = self.groups if at is None else self.groups[at]
        return np.bincount(groups, values, minlength=self.size).astype(np.float64)


class Shape(Protocol):
    """A release of one shape: its records, its values, and how to count and draw values."""

    @property
    def domain(self) -> tuple[str, ...]:
        """Labels of the values."""

    @property
    def table(self) -> pa.Table:
        """One row per record."""

    @property
    def bounded(self) -> bool:
        """Whether low and high are bounds that always hold, not confidence intervals."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for every answer."""

    @property
    def counted(self) -> Bools:
        """The records that answers cover."""

    def counts(self, question: Question) -> Counts:
        """Return estimates with intervals."""

    def scores(self, target: Floats) -> Floats:
        """Return one number per record whose mean is the record's target."""

    def shares(self, target: Floats) -> Floats:
        """Return the share of the target among each record's candidates or in its group."""

    def values(self, strata: Int64s, draws: int, rng: np.random.Generator) -> list[Int64s]:
        """Draw the values of all records, `draws` times."""


def shrink(counts: Counts, shares: Floats) -> Counts:
    """Shrink the estimate toward the sum of shares, if both agree; keep the interval of the unbiased estimate.

    The smaller their difference relative to the standard error, the more of it is noise (James and Stein, 1961). Errors
    become smaller if the shares are right, and grow by about a standard error if not.
    """
    gap = counts.estimate - shares
    weight = np.maximum(1 - 2 * counts.variance / np.maximum(gap**2, 1e-12), 0)
    return replace(counts, estimate=shares + weight * gap)


def combine_bounds(point: Floats, sure: Counts, perhaps: Counts) -> Counts:
    """Combine intervals for coarse cells: from the lower end of the sure matches to the upper end of all possible matches."""
    low, high = np.minimum(sure.low, perhaps.low), np.maximum(sure.high, perhaps.high)
    return replace(perhaps, estimate=np.clip(point, low, high), low=low, high=high)


def shares_of(counts: Counts, match: Match, groups: Int64s, counted: Bools) -> Counts:
    """Divide counts by the number of matching counted records; for uncertain matches, take the worst case."""
    size = len(counts.estimate)
    point, least, most = (
        np.maximum(np.bincount(groups, part * counted, minlength=size), 1e-12)
        for part in (match.share, match.sure.astype(float), match.perhaps.astype(float))
    )
    ends = [np.clip(end, 0, 1) for end in (counts.low / most, counts.high / least)]
    estimate = np.clip(counts.estimate / point, *ends)
    return replace(counts, estimate=estimate, variance=counts.variance / point**2, low=ends[0], high=ends[1])


def bounded_shares(counts: Counts, others: Counts) -> Counts:
    """Return bounds of a share from the bounds of the count and of all other records; missing records may be either."""
    low, high = (
        least / np.maximum(least + most, 1e-12)
        for least, most in ((counts.low, others.high), (counts.high, others.low))
    )
    whole = np.maximum(counts.estimate + others.estimate, 1e-12)
    estimate = counts.estimate / whole
    return replace(counts, estimate=estimate, variance=counts.variance / whole**2, low=low, high=high)
