"""The groups of one release: the rows of each group, and the values that counterfeits show."""

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
"""Most records to search for one whose quasi-identifiers widen the group of a single person."""


@dataclass(frozen=True, repr=False)
class Grouping:
    """The places of a release, group after group; each has a record or a counterfeit.

    Attributes:
        offsets: the first place of each group.
        row: per place, the row of the table, -1 for a counterfeit.
        value: per place, the sensitive code shown.
        donor: per place, the row whose quasi-identifiers it has; a counterfeit borrows them.
        withheld: per row of the table, 0 or the reason why it is withheld.
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
        """The number of counterfeits of each group."""
        return np.bincount(self.group[self.row < 0], minlength=len(self)).astype(np.int64)

    def published_records(self) -> tuple[Int32s, Int32s, Int32s]:
        """Return row, group and value of every published record."""
        real = self.row >= 0
        return self.row[real], self.group[real].astype(np.int32), self.value[real]

    def withhold(self, rows: Bools, reason: int) -> Grouping:
        """Withhold some rows; counterfeits take their places, so the candidates of all others stay the same."""
        removed = (self.row >= 0) & rows[np.maximum(self.row, 0)]
        row = np.where(removed, np.int32(-1), self.row)
        group, real = self.group, row >= 0
        keeper = np.full(len(self), -1, dtype=np.int32)
        keeper[group[real]] = row[real]
        donor = np.where(removed, keeper[group], self.donor).astype(np.int32)
        remaining = keeper[group] >= 0
        sizes = np.diff(self.offsets)[keeper >= 0]
        withheld = np.where(rows, np.uint8(reason), self.withheld)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return Grouping(offsets, row[remaining], self.value[remaining], donor[remaining], withheld)

    def hide_single_persons(self, points: Float32s) -> Grouping:
        """Widen the ranges of each group of one person and counterfeits by the nearest record that differs most.

        The numbers of counterfeits are public: otherwise such a group would show exact quasi-identifiers of one person.
        """
        group, real = self.group, self.row >= 0
        lone = np.bincount(group[real], minlength=len(self)) == 1
        lenders = np.linspace(0, len(points) - 1, min(len(points), MAX_LENDERS)).astype(np.int32)
        donor, coordinates = self.donor.copy(), points[lenders]
        for place in np.flatnonzero(real & lone[group]):
            distances = np.abs(coordinates - points[self.row[place]])
            differing = (distances > 0).sum(axis=1)
            most = np.flatnonzero(differing == differing.max())
            lender = lenders[most[distances[most].sum(axis=1).argmin()]]
            places = slice(self.offsets[group[place]], self.offsets[group[place] + 1])
            donor[places] = np.where(real[places], donor[places], lender)
        return replace(self, donor=donor)
