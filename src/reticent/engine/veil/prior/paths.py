"""Persons of the past with all of their events: who comes first, and what followed what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reticent.engine.veil.events import in_order

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from reticent.policy import Policy

    Codes = npt.NDArray[np.integer]


@dataclass(frozen=True, repr=False)
class Paths:
    """Records in the order of persons and of their events.

    Attributes:
        order: records, each person's one behind the other.
        starts: per person, where they begin; and the end of all.
    """

    order: Codes
    starts: Codes

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
    def firsts(self) -> Codes:
        """The first record of every person."""
        return self.order[self.starts[:-1]]

    @property
    def lengths(self) -> Codes:
        """Events of every person."""
        return np.diff(self.starts)

    @property
    def several(self) -> npt.NDArray[np.bool_]:
        """Whether a person has several events."""
        return np.asarray(self.lengths > 1)

    def steps(self, values: Codes, persons: Codes) -> tuple[Codes, Codes, Codes]:
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

    def one_step(self, values: Codes, persons: Codes, rng: np.random.Generator) -> tuple[Codes, Codes]:
        """One transition of each of the persons who have any, drawn at random: before, after."""
        several = persons[self.several[persons]]
        at = self.starts[several] + (rng.random(len(several)) * (self.lengths[several] - 1)).astype(np.int64)
        return values[self.order[at]], values[self.order[at + 1]]
