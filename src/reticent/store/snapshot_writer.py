"""Writes a snapshot into the store in pieces, one with each commit.

A large snapshot in one commit would delay every other commit. Therefore it is written piece by piece into the one of two
places that is not in use, while changes are appended as usual. Then one small change makes it the current snapshot, and
the old one is removed in pieces. After a crash at any point the store has the old or the new snapshot, and all changes
since.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from reticent.store import schema
from reticent.store.integrity import corrupt_error

if TYPE_CHECKING:
    from reticent.store.integrity import Seal
    from reticent.store.transaction import Transaction

SPACE, IN_USE = "state", "in use"
_SPACES = ("state.a", "state.b")
# What one commit may write or remove in addition to its own work: 1 to 2 ms.
_PIECE = 256 << 10
_CHANGES = 8
# A piece is this many times as large as the change in the same commit, so that the journal does not outgrow the snapshot.
_PIECE_FACTOR = 4

_FIRST = sa.select(sa.func.min(schema.snapshots.c.part)).where(schema.snapshots.c.publisher == sa.bindparam("of"))
_REMOVE = sa.delete(schema.snapshots).where(
    schema.snapshots.c.publisher == sa.bindparam("of"), schema.snapshots.c.part < sa.bindparam("below")
)
_REMOVE_PIECES = sa.delete(schema.kv).where(
    schema.kv.c.publisher == sa.bindparam("of"),
    schema.kv.c.space == sa.bindparam("place"),
    schema.kv.c.key >= sa.bindparam("least"),
)


class SnapshotWriter:
    """Replaces the stored snapshot of a publisher with `state`, which includes all changes up to number `upto`."""

    def __init__(self, publisher: str, state: bytes, upto: int) -> None:
        self._publisher = publisher
        self._state = state
        self._upto = upto
        self._size = _PIECE
        self._tx: Transaction
        self._work = self._iter_pieces()

    def write_next_piece(self, tx: Transaction, change: int = 0) -> bool:
        """Write the next piece, in the same transaction as a change of `change` bytes. Return whether more is left.

        If the transaction fails, discard this object and start again from the store.
        """
        self._tx, self._size = tx, max(_PIECE, _PIECE_FACTOR * change)
        return next(self._work, False)

    def _iter_pieces(self) -> Iterator[bool]:
        last = self._tx.get(self._publisher, SPACE, IN_USE)
        old: dict[str, Any] = json.loads(last) if last is not None else {"place": _SPACES[1], "pieces": 0}
        place = next(place for place in _SPACES if place != old["place"])
        at = number = 0
        while at < len(self._state):
            piece = self._state[at : at + self._size]
            self._tx.put(self._publisher, place, _piece_key(number), piece)
            at, number = at + len(piece), number + 1
            yield True
        now = json.dumps({"place": place, "pieces": number, "upto": self._upto}).encode()
        row = {"publisher": self._publisher, "space": SPACE, "key": IN_USE, "value": now}
        self._tx.upsert(self._publisher, schema.kv, [row])
        self._state = b""
        yield True
        self._remove_pieces(place, number)  # left by a longer attempt that a crash ended
        for _ in self._iter_old_changes():
            yield True
        for left in reversed(range(old["pieces"])):
            self._remove_pieces(old["place"], left)
            yield True

    def _iter_old_changes(self) -> Iterator[None]:
        first = self._tx.value(_FIRST, of=self._publisher)
        for below in range(self._upto + 1 if first is None else first, self._upto + 1, _CHANGES):
            end = min(below + _CHANGES, self._upto + 1)
            self._tx.run(self._publisher, _REMOVE, [{"of": self._publisher, "below": end}])
            yield

    def _remove_pieces(self, place: str, least: int) -> None:
        values = {"of": self._publisher, "place": place, "least": _piece_key(least)}
        self._tx.run(self._publisher, _REMOVE_PIECES, [values])


def read_pieces(connection: sa.Connection, publisher: str, whole: bytes, seal: Seal) -> tuple[bytes, int]:
    """Read a snapshot that was written in pieces, and the number of the last change in it."""
    place = json.loads(whole)
    kv = schema.kv.c
    query = (
        sa.select(schema.kv)
        .where(kv.publisher == publisher, kv.space == place["place"], kv.key < _piece_key(place["pieces"]))
        .order_by(kv.key)
    )
    pieces = connection.execute(query).mappings().all()
    if len(pieces) != place["pieces"]:
        raise corrupt_error(f"The state of {publisher!r}")
    return b"".join(bytes(seal.open_row(schema.kv, piece)["value"]) for piece in pieces), int(place["upto"])


def _piece_key(number: int) -> str:
    return f"{number:08}"
