"""The audit log: who published, read, deleted or granted what, and when. Entries are appended and never changed.

Each entry contains the SHA-256 digest of the previous entry. The transaction that makes a change also stores its entry.

Guarantee: against an attacker who edits, removes or reorders entries in the store. `first_broken_entry` names the first
    entry that does not follow from the previous one. The store's own digests reject a row written without its key.
Not covered: an attacker who has the store's key and rewrites the whole log, unless the digest of its head was saved
    elsewhere; single pushes to streams and single changes of evolving tables, which their own releases document.
Cost: one small row per action.
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
    """All entries, oldest first, numbered from 0."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def append(self, tx: Transaction, action: str, target: str) -> None:
        """Append an entry for the current actor in the transaction of the action; `target` is `kind:name`, never a data value."""
        number, previous = _head(tx)
        who = actor()
        entry = {
            "number": number,
            "time": now(),
            "action": action,
            "target": target,
            "actor": who.id if who else "server",
            "name": who.name if who else "the server itself",
            "role": str(who.role) if who else "server",
            "previous": previous,
        }
        data = json.dumps(entry, sort_keys=True).encode()
        tx.put(OWNER, _SPACE, _key(number), data)
        head = {"entries": number + 1, "digest": hashlib.sha256(data).hexdigest()}
        tx.put(OWNER, _HEAD, "", json.dumps(head).encode())

    def head(self) -> dict[str, Any]:
        """Return the number of entries and the digest of the last one; save it where the owner of the store cannot write."""
        return _parse_head(self._store.get(OWNER, _HEAD, ""))

    def entries(self, after: int = -1, limit: int = 100) -> list[dict[str, Any]]:
        """Return entries with a number above `after`, each with its own digest."""
        table = schema.kv.c
        within = table.key.between(_key(after + 1), _key(after + limit))
        which = sa.and_(table.publisher == OWNER, table.space == _SPACE, within)
        rows = self._store.rows(schema.kv, which, order_by=table.key)
        return [{**json.loads(row["value"]), "digest": hashlib.sha256(row["value"]).hexdigest()} for row in rows]

    def first_broken_entry(self) -> int | None:
        """Return the number of the first missing or inconsistent entry, or None if the log is intact."""
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
    # Two processes may write: the second one waits here until the first one has committed.
    tx.value(sa.select(table.key).where(table.publisher == OWNER, table.space == _HEAD).with_for_update())
    head = _parse_head(tx.get(OWNER, _HEAD, ""))
    return head["entries"], head["digest"]


def _parse_head(value: bytes | None) -> dict[str, Any]:
    head: dict[str, Any] = json.loads(value) if value else {"entries": 0, "digest": _FIRST_DIGEST}
    return head


def _key(number: int) -> str:
    return f"{number:012d}"
