"""The audit trail: who published, read, deleted or granted what, and when. Entries are added and never changed.

Each entry quotes the SHA-256 of the one before it, so that a trail whose last digest was noted elsewhere cannot be rewritten
unseen, and is stored in the transaction of the act itself: what was done is in it, what is in it was done.

Guarantee: against whoever edits, removes or reorders entries in the store: `broken` names the first entry that does not follow
    from the one before, and the store's own digests refuse a row that was written without its key.
Not covered: whoever has the store's key and rewrites the whole trail, unless its head was noted elsewhere; pushes into streams
    and changes of evolving tables, one by one: what they released is their own record.
Cost: one small row per act.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from reticent.service.actor import actor
from reticent.service.documents import OWNER, now
from reticent.store import Store, Transaction, schema

_SPACE, _HEAD = "audit-log", "audit-log-head"
_FIRST_DIGEST = "0" * 64
_PAGE = 1_000


class AuditLog:
    """All entries, the oldest first, numbered from 0."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def append(self, tx: Transaction, action: str, target: str) -> None:
        """Adds an entry for the present actor, within the transaction of the act: to what as `kind:name`, never a value of the data."""
        number, before = _head(tx)
        who = actor()
        entry = {
            "number": number,
            "time": now(),
            "action": action,
            "target": target,
            "actor": who.id if who else "server",
            "name": who.name if who else "the server itself",
            "role": str(who.role) if who else "server",
            "previous": before,
        }
        data = json.dumps(entry, sort_keys=True).encode()
        tx.put(OWNER, _SPACE, _key(number), data)
        head = {"entries": number + 1, "digest": hashlib.sha256(data).hexdigest()}
        tx.put(OWNER, _HEAD, "", json.dumps(head).encode())

    def head(self) -> dict[str, Any]:
        """How many entries there are, and the digest of the last: to be noted where the store's owner cannot write."""
        return _parse_head(self._store.get(OWNER, _HEAD, ""))

    def entries(self, after: int = -1, limit: int = 100) -> list[dict[str, Any]]:
        """Entries with a number above `after`, each with its own digest."""
        table = schema.kv.c
        within = table.key.between(_key(after + 1), _key(after + limit))
        which = sa.and_(table.publisher == OWNER, table.space == _SPACE, within)
        rows = self._store.rows(schema.kv, which, order_by=table.key)
        return [{**json.loads(row["value"]), "digest": hashlib.sha256(row["value"]).hexdigest()} for row in rows]

    def first_broken_entry(self) -> int | None:
        """The first entry that does not follow from the one before it, or is missing; None when all do."""
        number, digest, head = 0, _FIRST_DIGEST, self.head()
        for entry in self._iter_entries():
            if entry["number"] != number or entry["previous"] != digest:
                return number
            number, digest = number + 1, entry["digest"]
        return None if (number, digest) == (head["entries"], head["digest"]) else number

    def _iter_entries(self) -> Iterator[dict[str, Any]]:
        last = -1
        while page := self.entries(last, _PAGE):
            yield from page
            last = page[-1]["number"]


def _head(tx: Transaction) -> tuple[int, str]:
    table = schema.kv.c
    # Two processes may write: the second waits here until the first has committed.
    tx.value(sa.select(table.key).where(table.publisher == OWNER, table.space == _HEAD).with_for_update())
    head = _parse_head(tx.get(OWNER, _HEAD, ""))
    return head["entries"], head["digest"]


def _parse_head(value: bytes | None) -> dict[str, Any]:
    head: dict[str, Any] = json.loads(value) if value else {"entries": 0, "digest": _FIRST_DIGEST}
    return head


def _key(number: int) -> str:
    return f"{number:012d}"
