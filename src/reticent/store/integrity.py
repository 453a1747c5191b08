"""Rows that prove themselves: a keyed digest over every row, its keys included, checked whenever the row is read.

Guarantee: against bits that turn on disk, rows that change places, and anyone who writes without the store's key: a row is as
    it was written, or the store is refused.
Not covered: rows that are missing altogether, which the counts in a publisher's row and the structure check find; a store that was
    replaced as a whole by an older copy of itself, which `witness` finds.
Cost: one pass of BLAKE2b over what is written and what is read, about a nanosecond per byte and a microsecond per row.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from reticent.errors import DAMAGED, StateError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import sqlalchemy as sa

SIZE = 16
DIGEST = "digest"
_FREE = (DIGEST, "id", "owner")
"""Not covered by the digest: itself, numbers that the database gives, and the mark of the present writer."""


def damaged(what: str) -> StateError:
    """The error for anything in a store that is not as it was written."""
    return StateError(f"{what} is damaged.", hint=DAMAGED)


class Seal:
    """Makes and checks the digests of one store, under its secret."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._columns: dict[str, tuple[str, ...]] = {}

    def digest(self, name: str, cells: Sequence[Any]) -> bytes:
        """The digest of some cells of a table, or of anything else that has a name."""
        state = hashlib.blake2b(name.encode(), digest_size=SIZE, key=self._secret)
        for cell in cells:
            raw = isinstance(cell, bytes | bytearray | memoryview)
            data = cell if raw else repr(cell).encode()
            state.update(b"%c%d:" % (b"b" if raw else b"r", len(data)))
            state.update(data)
        return state.digest()

    def sealed(self, table: sa.Table, row: Mapping[str, Any]) -> dict[str, Any]:
        """A row with its digest."""
        return {**row, DIGEST: self.digest(table.name, [row[name] for name in self.columns(table)])}

    def check(self, table: sa.Table, row: Mapping[Any, Any]) -> None:
        """Refuses a row that is not as it was written; what the database made of its cells does not matter."""
        if self.digest(table.name, [row[name] for name in self.columns(table)]) != row[DIGEST]:
            raise damaged(f"A row of {table.name}")

    def columns(self, table: sa.Table) -> tuple[str, ...]:
        """The columns that the digest covers, in order."""
        if table.name not in self._columns:
            self._columns[table.name] = tuple(column.name for column in table.c if column.name not in _FREE)
        return self._columns[table.name]
