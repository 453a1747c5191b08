"""Changes: the effect of one insertion, deletion or update, and change feeds of change-data-capture tools."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from reticent.arrays import Int32s, UInt32s, UInt64s
from reticent.errors import DataError
from reticent.policy import Policy


@dataclass(frozen=True, repr=False)
class Change:
    """The counts of a change, and the rows whose stored state changed.

    Attributes:
        inserted: inserted records.
        deleted: deleted records.
        updated: updated records.
        touched: classes whose members changed.
        dissolved: dissolved classes.
        relocated: unchanged records that moved to another class.
        withheld: withheld records after this change.
        written: new or changed rows.
        removed: removed rows.
        persons: keyed hashes of persons whose memory changed.
        removed_codes: codes of the removed records, also of those whose row is used again.
    """

    inserted: int = 0
    deleted: int = 0
    updated: int = 0
    touched: int = 0
    dissolved: int = 0
    relocated: int = 0
    withheld: int = 0
    written: UInt32s = field(default_factory=lambda: np.empty(0, dtype=np.uint32))
    removed: UInt32s = field(default_factory=lambda: np.empty(0, dtype=np.uint32))
    persons: UInt64s = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    removed_codes: tuple[Int32s, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the counts only."""
        names = ("inserted", "deleted", "updated", "touched", "dissolved", "relocated", "withheld")
        return {name: getattr(self, name) for name in names}

    def then(self, later: Change) -> Change:
        """Combine two changes; a row that is removed and used again counts as written."""
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
            removed_codes=self.removed_codes + later.removed_codes,
        )

    def __repr__(self) -> str:
        return f"Change({self.to_dict()})"


Op = Literal["insert", "update", "delete"]
OP_COLUMN = "op"
# Full words, and the letters of Debezium (c, r, u, d) and of SQL Server (I, U, D).
OPERATIONS: dict[str, Op] = {
    "insert": "insert",
    "i": "insert",
    "c": "insert",
    "r": "insert",
    "update": "update",
    "u": "update",
    "delete": "delete",
    "d": "delete",
}


def is_feed(batch: pa.Table, policy: Policy) -> bool:
    """Return whether a batch has a column `op` with the operation of each row."""
    return OP_COLUMN in batch.column_names and OP_COLUMN not in policy.columns


def iter_segments(batch: pa.Table) -> Iterator[tuple[Op, pa.Table]]:
    """Yield the segments of a feed with one operation each, in order, without the column `op`."""
    words = [str(word).strip().lower() for word in batch.column(OP_COLUMN).to_pylist()]
    unknown = sum(word not in OPERATIONS for word in words)
    if unknown:
        raise DataError(
            f"{unknown:,} rows of the feed have an unknown operation in column '{OP_COLUMN}'.",
            hint="Write insert, update or delete.",
        )
    ops = [OPERATIONS[word] for word in words]
    rest = batch.drop_columns([OP_COLUMN])
    if not ops:
        return
    starts = [0, *(i for i in range(1, len(ops)) if ops[i] != ops[i - 1]), len(ops)]
    for start, stop in pairwise(starts):
        yield ops[start], rest.slice(start, stop - start)
