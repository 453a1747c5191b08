"""Persons of the past with all of their events: who comes first, and what followed what."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from reticent.arrays import Bools, Integers
from reticent.engine.veil.events import in_order
from reticent.policy import Policy


@dataclass(frozen=True, repr=False)
class Paths:
    """Records in the order of persons and of their events.

    Attributes:
        order: records, each person's one behind the other.
        starts: per person, where they begin; and the end of all.
    """

    order: Integers
    starts: Integers

    @classmethod
    def of(cls, table: pa.Table, policy: Policy) -> Paths:
        """The paths of a table; without a person every record is one."""
        order, starts = in_order(table, policy)
        return cls(order, starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __repr__(self) -> str:
        return f"Paths({len(self)} persons, {len(self.order)} records)"

    @property
    def firsts(self) -> Integers:
        """The first record of every person."""
        return self.order[self.starts[:-1]]

    @property
    def lengths(self) -> Integers:
        """Events of every person."""
        return np.diff(self.starts)

    @property
    def several(self) -> Bools:
        """Whether a person has several events."""
        return np.asarray(self.lengths > 1)

    def steps(self, values: Integers, persons: Integers) -> tuple[Integers, Integers, Integers]:
        """All transitions of some persons: who, before, after.

        Args:
            values: code of every record of the table.
            persons: whose.
        """
        lengths = self.lengths[persons] - 1
        who = np.repeat(persons, lengths)
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        at = self.starts[who] + within
        return who, values[self.order[at]], values[self.order[at + 1]]

    def one_step(self, values: Integers, persons: Integers, rng: np.random.Generator) -> tuple[Integers, Integers]:
        """One transition of each of the persons who have any, drawn at random: before, after."""
        several = persons[self.several[persons]]
        at = self.starts[several] + (rng.random(len(several)) * (self.lengths[several] - 1)).astype(np.int64)
        return values[self.order[at]], values[self.order[at + 1]]
