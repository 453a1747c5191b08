"""Generalized tables and CASTLE records: exact values with coarse fields; and groups of a series with counterfeits."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from reticent.arrays import Bools, Floats, Int64s
from reticent.read.estimate.generalized import counts
from reticent.read.estimate.veil import Counts
from reticent.read.question import Question
from reticent.read.shape.labels import codes, domain

EVERY_RECORD = "every record"
"""Replaces the sensitive column in a release without one, so that records can still be counted by their fields."""


@dataclass(frozen=True, repr=False)
class Generalized:
    """A table with one sensitive column whose values are exact.

    Attributes:
        table: the records.
        sensitive: name of the sensitive column.
        missing: number of records that were suppressed or withheld.
        counterfeits: number of counterfeit rows per group of the column `group`; None without groups.
    """

    table: pa.Table
    sensitive: str
    missing: int = 0
    counterfeits: dict[int, int] | None = field(default=None)

    @cached_property
    def domain(self) -> tuple[str, ...]:
        """The sensitive values that occur."""
        return domain(self.table.column(self.sensitive)) if self.sensitive != EVERY_RECORD else ("all",)

    @property
    def bounded(self) -> bool:
        """True: the values are exact, so low and high are bounds that always hold."""
        return True

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes that low and high are bounds, and on missing records."""
        words = "Low and high are worst-case bounds; the estimate spreads each coarse cell by the other cells of the column, or evenly."
        extra = f"{self.missing:,} records are not in the release; the upper bound includes them."
        return (words, extra) if self.missing else (words,)

    @cached_property
    def _values(self) -> Int64s:
        if self.sensitive == EVERY_RECORD:
            return np.zeros(self.table.num_rows, dtype=np.int64)
        return codes(self.table.column(self.sensitive), self.domain)

    @property
    def counted(self) -> Bools:
        """All records are counted."""
        return np.ones(self.table.num_rows, dtype=bool)

    def counts(self, question: Question) -> Counts:
        """Return worst-case bounds, with the overlap of the cells as the estimate."""
        counterfeits = None
        if self.counterfeits is not None:
            labels, groups = np.unique(self.table.column("group").to_numpy(), return_inverse=True)
            counterfeits = groups.reshape(-1), np.array([self.counterfeits.get(int(label), 0) for label in labels])
        return counts(self._values, question, missing=self.missing, counterfeits=counterfeits)

    def scores(self, target: Floats) -> Floats:
        """Return the target of each record's value, which is known."""
        return np.asarray(np.append(target, 0.0)[self._values])

    def shares(self, target: Floats) -> Floats:
        """Return the same as `scores`, because the value is known."""
        return self.scores(target)

    def values(self, strata: Int64s, draws: int, rng: np.random.Generator) -> list[Int64s]:  # noqa: ARG002 - signature of Shape
        """Return the known values for every draw."""
        return [self._values] * draws
