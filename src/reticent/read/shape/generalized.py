"""Generalised tables and CASTLE records: exact values beside coarse fields; and groups of a series with counterfeits."""

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
"""Stands for the sensitive column where a release has none: records can still be counted by their fields."""


@dataclass(frozen=True, repr=False)
class Generalized:
    """A table with one sensitive column whose values are exact.

    Attributes:
        table: the records.
        sensitive: name of the column.
        missing: records that were suppressed or held back.
        fakes: per group of the column `group`, how many of its lines are counterfeit; None where there are no groups.
    """

    table: pa.Table
    sensitive: str
    missing: int = 0
    counterfeits: dict[int, int] | None = field(default=None)

    @cached_property
    def domain(self) -> tuple[str, ...]:
        """The values that occur."""
        return domain(self.table.column(self.sensitive)) if self.sensitive != EVERY_RECORD else ("all",)

    @property
    def bounded(self) -> bool:
        """Values are exact: bounds hold always."""
        return True

    @property
    def notes(self) -> tuple[str, ...]:
        """Bounds, not intervals; and who is missing."""
        words = "Low and high are bounds that hold in the worst case; the estimate spreads each coarse cell as the others suggest, or evenly."
        extra = f"{self.missing:,} records were left out of the release; the upper bound includes them."
        return (words, extra) if self.missing else (words,)

    @cached_property
    def _values(self) -> Int64s:
        if self.sensitive == EVERY_RECORD:
            return np.zeros(self.table.num_rows, dtype=np.int64)
        return codes(self.table.column(self.sensitive), self.domain)

    @property
    def counted(self) -> Bools:
        """All records."""
        return np.ones(self.table.num_rows, dtype=bool)

    def counts(self, question: Question) -> Counts:
        """Worst-case bounds, and the overlap as the estimate."""
        fakes = None
        if self.counterfeits is not None:
            labels, groups = np.unique(self.table.column("group").to_numpy(), return_inverse=True)
            fakes = groups.reshape(-1), np.array([self.counterfeits.get(int(label), 0) for label in labels])
        return counts(self._values, question, missing=self.missing, counterfeits=fakes)

    def scores(self, target: Floats) -> Floats:
        """The target of each record's value: it is known."""
        return np.asarray(np.append(target, 0.0)[self._values])

    def shares(self, target: Floats) -> Floats:
        """The same: the value is known."""
        return self.scores(target)

    def values(self, strata: Int64s, draws: int, rng: np.random.Generator) -> list[Int64s]:  # noqa: ARG002 - the shape's contract
        """The values are known: every draw is the same."""
        return [self._values] * draws
