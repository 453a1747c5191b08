"""The groups of one release: which rows stand in which group, and what counterfeits show."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reticent.arrays import Bools, Float32s, Int32s, Int64s, UInt8s

WITHHELD_REASONS = (
    "published",
    "update outside the knowledge",
    "no legal place",
    "risk above the limit",
    "no design for the value",
    "came back after missing a release",
)
RISK_REASON = 3
MAX_LENDERS = 4096
"""Records looked at, at most, for one whose quasi-identifiers a lone person's group takes in."""


@dataclass(frozen=True, repr=False)
class Grouping:
    """Places, group after group.

    Attributes:
        offsets: where each group begins.
        row: row of the table in each place, -1 for a counterfeit.
        value: sensitive code shown in each place.
        donor: row whose quasi-identifiers the place has; a counterfeit borrows them.
        held: per row of the table, 0 or the reason it is held back.
    """

    offsets: Int64s
    row: Int32s
    value: Int32s
    donor: Int32s
    withheld: UInt8s

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def group(self) -> Int64s:
        """The group of each place."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    @property
    def counterfeits(self) -> Int64s:
        """Counterfeits of each group."""
        return np.bincount(self.group[self.row < 0], minlength=len(self)).astype(np.int64)

    def published_records(self) -> tuple[Int32s, Int32s, Int32s]:
        """Row, group and value of every record that is published."""
        real = self.row >= 0
        return self.row[real], self.group[real].astype(np.int32), self.value[real]

    def withhold(self, rows: Bools, reason: int) -> Grouping:
        """The same groups with some rows held back: counterfeits keep their places, so nobody else's candidates change."""
        gone = (self.row >= 0) & rows[np.maximum(self.row, 0)]
        row = np.where(gone, np.int32(-1), self.row)
        group, real = self.group, row >= 0
        keeper = np.full(len(self), -1, dtype=np.int32)
        keeper[group[real]] = row[real]
        donor = np.where(gone, keeper[group], self.donor).astype(np.int32)
        alive = keeper[group] >= 0
        sizes = np.diff(self.offsets)[keeper >= 0]
        held = np.where(rows, np.uint8(reason), self.withheld)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return Grouping(offsets, row[alive], self.value[alive], donor[alive], held)

    def hide_single_persons(self, points: Float32s) -> Grouping:
        """The same groups, a person alone among counterfeits sharing its ranges with the nearest record that differs most.

        The counterfeit counts are public: without this a group of one person would print exact quasi-identifiers.
        """
        group, real = self.group, self.row >= 0
        lone = np.bincount(group[real], minlength=len(self)) == 1
        lenders = np.linspace(0, len(points) - 1, min(len(points), MAX_LENDERS)).astype(np.int32)
        donor, there = self.donor.copy(), points[lenders]
        for place in np.flatnonzero(real & lone[group]):
            apart = np.abs(there - points[self.row[place]])
            differing = (apart > 0).sum(axis=1)
            most = np.flatnonzero(differing == differing.max())
            lender = lenders[most[apart[most].sum(axis=1).argmin()]]
            places = slice(self.offsets[group[place]], self.offsets[group[place] + 1])
            donor[places] = np.where(real[places], donor[places], lender)
        return replace(self, donor=donor)
