"""Erasing for good: a whole publication, or records that could not be released; the bytes are gone from the file and its log.

Guarantee: nothing of what is erased is in the store's files afterwards.
Not covered: what was published, which others have; backups. Keyed hashes of the persons stay in the one ledger: whoever was
    published must not be published anew because the store was made to forget it. In PostgreSQL the pages go with its next vacuum.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import sqlalchemy as sa

from reticent.errors import StateError
from reticent.store import restored, schema
from reticent.store.restored import Restored
from reticent.store.scrub import cut_log

if TYPE_CHECKING:
    from reticent.store.store import Store

_OWN = (
    schema.outbox,
    schema.snapshots,
    schema.ledger,
    schema.dead_letters,
    schema.kv,
    schema.evolving_records,
    schema.evolving_words,
)
_SERVICE, _HOUSE, _SEEN = "service", "house", "dead letters"
_DAY = 24 * 3600


def erase(store: Store, publisher: str) -> None:
    """Erases a publication: its releases, its state, its records; it is closed, and its persons stay known to the ledger.

    Raises:
        StateError: there is none of this name, or somebody uses it.
    """
    if publisher in (_SERVICE, _HOUSE):
        raise StateError(f"{publisher!r} is no publication.", hint="`reticent ledger` names them.")
    with store.lock(publisher), store.transaction() as tx:
        for table in _OWN:
            tx.run(publisher, sa.delete(table).where(table.c.publisher == sa.bindparam("of")), [{"of": publisher}])
        tx.forget_all(publisher)
        restored.note(tx, publisher, Restored(closed="it was erased"))
    _cut(store)


def erase_dead_letters(store: Store, days: float, *, now: float | None = None) -> int:
    """Erases records that could not be released and were there at a call so many days ago; 0 erases all. Gives their number.

    A dead letter does not say when it came: each call notes how far they have come, and a later one erases up to there.
    """
    now = time.time() if now is None else now
    table = schema.dead_letters
    with store.transaction() as tx:
        seen = json.loads(tx.get(_SERVICE, _SEEN, "") or b"[]")
        seen.append((now, tx.value(sa.select(sa.func.max(table.c.id))) or 0))
        upto = max((last for at, last in seen if at <= now - days * _DAY), default=0)
        gone = int(tx.value(sa.select(sa.func.count()).select_from(table).where(table.c.id <= upto)))
        tx.change(sa.delete(table).where(table.c.id <= upto))
        tx.put(_SERVICE, _SEEN, "", json.dumps([one for one in seen if one[1] > upto]).encode())
    if gone:
        _cut(store)
    return gone


def _cut(store: Store) -> None:
    if not cut_log(store):
        raise StateError(
            "It is erased, and the log of the store still holds it: somebody reads the store.",
            hint="Run the command again when nobody does; closing the store cuts the log, too.",
        )
