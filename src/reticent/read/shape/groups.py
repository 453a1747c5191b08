"""Anatomy and delay-free groups: exact fields, and the sensitive values of each group."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from reticent.arrays import Bools, Floats, Int64s
from reticent.errors import DataError
from reticent.read.draws import draw_group_values
from reticent.read.estimate.groups import Groups
from reticent.read.estimate.veil import Counts
from reticent.read.question import Question, combine_bounds
from reticent.read.shape.labels import codes, domain, to_text

_SUPPRESSION_FACTOR = 3.0
"""Largest assumed ratio of a value's share among missing records to its share among published records."""


@dataclass(frozen=True, repr=False)
class Grouped:
    """Records with their group, and the table of groups.

    Attributes:
        table: the records, with a column `group`.
        listed: the table of groups, with the columns group, value and count.
        missing: number of records that were suppressed or withheld.
    """

    table: pa.Table
    listed: pa.Table
    missing: int = 0

    @cached_property
    def domain(self) -> tuple[str, ...]:
        """The values that the groups list."""
        return domain(self.listed.column("value"))

    @property
    def bounded(self) -> bool:
        """False: the values are hidden, so low and high are confidence intervals."""
        return False

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the assumptions of the estimate and on missing records."""
        words = []
        if self.groups.records is not None:
            words.append(
                "Some groups list values that no record has; the estimate assumes the same probability for each listed value."
            )
        if self.missing:
            words.append(
                f"{self.missing:,} records are not in the release and are not counted; the upper end allows for them."
            )
        return tuple(words)

    @cached_property
    def _numbers(self) -> tuple[Int64s, Int64s]:
        """Group of each record and of each row of the table of groups, as numbers from 0."""
        names = pa.chunked_array([to_text(self.listed.column("group"))])
        group_names = domain(names)
        record_groups = codes(self.table.column("group"), group_names)
        if (record_groups < 0).any():
            raise DataError(
                f"{int((record_groups < 0).sum())} records have a group that the release does not list.",
                hint="Get the release again: its tables do not belong together.",
            )
        return record_groups, codes(names, group_names)

    @cached_property
    def groups(self) -> Groups:
        """The published groups as arrays."""
        record_groups, lines = self._numbers
        counts = self.listed.column("count").to_numpy().astype(np.int64)
        records = np.bincount(record_groups, minlength=int(lines.max(initial=-1)) + 1)
        same = np.array_equal(records, np.bincount(lines, counts))
        values = codes(self.listed.column("value"), self.domain)
        return Groups(len(self.domain), lines, values, counts, None if same else records)

    @property
    def counted(self) -> Bools:
        """All records are counted."""
        return np.ones(self.table.num_rows, dtype=bool)

    def counts(self, question: Question) -> Counts:
        """Invert the groups; for coarse cells, return an interval from the sure matches to all possible matches."""
        perhaps = self._counts(question, question.match.perhaps)
        if question.match.exact:
            return perhaps
        point = question.sums(question.match.share * self.scores(question.target))
        return combine_bounds(point, self._counts(question, question.match.sure), perhaps)

    def _counts(self, question: Question, flags: Bools) -> Counts:
        at = np.flatnonzero(flags)
        region = self._numbers[0][at]
        counts = self.groups.counts_by(
            region, question.groups[at], question.target, size=question.size, level=question.level
        )
        return replace(
            counts, high=counts.high + self._suppression_margin(question.target) * counts.records / max(len(flags), 1)
        )

    def _suppression_margin(self, target: Floats) -> float:
        """Bound the missing records with a target value; frequent values are suppressed first, so more than their share."""
        totals = self.groups.totals
        return self.missing * min(1.0, _SUPPRESSION_FACTOR * float(target @ totals) / max(float(totals.sum()), 1.0))

    def scores(self, target: Floats) -> Floats:
        """Return the contribution of each record to an estimate."""
        return np.asarray(self.groups.scores(target)[self._numbers[0]])

    def shares(self, target: Floats) -> Floats:
        """Return the share of the target in each record's group."""
        groups = self.groups
        mine = np.bincount(groups.groups, groups.counts * target[groups.values])
        return np.asarray((mine / np.bincount(groups.groups, groups.counts))[self._numbers[0]])

    def values(self, strata: Int64s, draws: int, rng: np.random.Generator) -> list[Int64s]:
        """Assign the values of each group to its records at random."""
        return draw_group_values(self.groups, self._numbers[0], strata, draws, rng)
