"""Change: what one insertion, deletion or update did."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from reticent.arrays import UInt32s, UInt64s


def _none() -> UInt32s:
    return np.empty(0, dtype=np.uint32)


def _nobody() -> UInt64s:
    return np.empty(0, dtype=np.uint64)


@dataclass(frozen=True, repr=False)
class Change:
    """Counts for people, and the rows whose stored state changed, for the store.

    Attributes:
        touched: classes whose members changed.
        dissolved: classes given up.
        relocated: records that moved to another class although they were not changed themselves.
        held: records held back now, after this change.
        written: rows that are new or changed in any way.
        removed: rows that are gone.
        persons: keyed hashes of those of whom something else is remembered now.
    """

    inserted: int = 0
    deleted: int = 0
    updated: int = 0
    touched: int = 0
    dissolved: int = 0
    relocated: int = 0
    held: int = 0
    written: UInt32s = field(default_factory=_none)
    removed: UInt32s = field(default_factory=_none)
    persons: UInt64s = field(default_factory=_nobody)

    def to_dict(self) -> dict[str, Any]:
        """The counts alone."""
        names = ("inserted", "deleted", "updated", "touched", "dissolved", "relocated", "held")
        return {name: getattr(self, name) for name in names}

    def then(self, later: Change) -> Change:
        """Both changes as one; a row removed and used again counts as written."""
        removed = np.union1d(np.setdiff1d(self.removed, later.written), later.removed)
        return replace(
            later,
            inserted=self.inserted + later.inserted,
            deleted=self.deleted + later.deleted,
            updated=self.updated + later.updated,
            touched=self.touched + later.touched,
            dissolved=self.dissolved + later.dissolved,
            relocated=self.relocated + later.relocated,
            written=np.setdiff1d(np.union1d(self.written, later.written), later.removed),
            removed=removed,
            persons=np.union1d(self.persons, later.persons),
        )

    def __repr__(self) -> str:
        return f"Change({self.to_dict()})"
