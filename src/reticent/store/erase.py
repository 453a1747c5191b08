"""Erasing for good: a publication, records that could not be released, words that only removed records had.

SQLite overwrites deleted rows (`secure_delete`); the log beside it still holds them until it is written back and cut off.

Guarantee: nothing of what is erased is in the store's files afterwards.
Not covered: what was published, which others have; backups. Keyed hashes of the persons stay in the one ledger: whoever was
    published must not be published anew because the store was made to forget it. In PostgreSQL the pages go with its next vacuum.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import sqlalchemy as sa

from reticent.arrays import Int32s
from reticent.errors import StateError
from reticent.release.codec import table_bytes, table_from_bytes
from reticent.store import database, schema
from reticent.store.store import Store
from reticent.store.transaction import RestoreOutcome, Transaction, write_restore_outcome

_PUBLISHER_TABLES = (
    schema.outbox,
    schema.snapshots,
    schema.ledger,
    schema.dead_letters,
    schema.kv,
    schema.evolving_records,
    schema.evolving_words,
)
_SERVICE, _VEIL_KEY, _DEAD_LETTER_MARKS = "service", "veil_key", "dead letters"
_DAY = 24 * 3600


def erase(store: Store, publisher: str) -> None:
    """Erases a publication: its releases, its state, its records; it is closed, and its persons stay known to the ledger.

    Raises:
        StateError: there is none of this name, or somebody uses it.
    """
    if publisher in (_SERVICE, _VEIL_KEY):
        raise StateError(f"{publisher!r} is no publication.", hint="`reticent ledger` names them.")
    with store.lock(publisher), store.transaction() as tx:
        for table in _PUBLISHER_TABLES:
            tx.run(publisher, sa.delete(table).where(table.c.publisher == sa.bindparam("of")), [{"of": publisher}])
        tx.forget_all(publisher)
        write_restore_outcome(tx, publisher, RestoreOutcome(closed="it was erased"))
    _truncate_log(store)


def erase_dead_letters(store: Store, days: float, *, now: float | None = None) -> int:
    """Erases records that could not be released and were there at a call so many days ago; 0 erases all. Gives their number.

    A dead letter does not say when it came: each call notes how far they have come, and a later one erases up to there.
    """
    now = time.time() if now is None else now
    table = schema.dead_letters
    with store.transaction() as tx:
        seen = json.loads(tx.get(_SERVICE, _DEAD_LETTER_MARKS, "") or b"[]")
        seen.append((now, tx.value(sa.select(sa.func.max(table.c.id))) or 0))
        upto = max((last for at, last in seen if at <= now - days * _DAY), default=0)
        gone = int(tx.value(sa.select(sa.func.count()).select_from(table).where(table.c.id <= upto)))
        tx.change(sa.delete(table).where(table.c.id <= upto))
        tx.put(_SERVICE, _DEAD_LETTER_MARKS, "", json.dumps([one for one in seen if one[1] > upto]).encode())
    if gone:
        _truncate_log(store)
    return gone


def _truncate_log(store: Store) -> None:
    if not database.truncate_log(store.engine):
        raise StateError(
            "It is erased, and the log of the store still holds it: somebody reads the store.",
            hint="Run the command again when nobody does; closing the store cuts the log, too.",
        )


def forget_words(
    tx: Transaction, publisher: str, columns: Sequence[str], removed: Int32s, gone: Sequence[Int32s] | None = None
) -> list[str]:
    """Overwrites the words of an evolving table that only removed records had; the columns that had any.

    Args:
        tx: the transaction that removed the records, after it did.
        publisher: the table.
        columns: the columns of the codes, in order.
        removed: a row of codes per removed record.
        gone: per column those that no record has any more, by who has all of them in memory; read from the store otherwise.
    """
    if gone is None:
        left = _remaining_codes(tx, publisher, len(columns))
        gone = [_exclusive_codes(removed[:, at], left[:, at]) for at in range(len(columns))]
    words = {column: codes for column, codes in zip(columns, gone, strict=True) if len(codes)}
    for column, codes in words.items():
        _overwrite(tx, publisher, column, codes)
    return list(words)


def _exclusive_codes(removed: Int32s, left: Int32s) -> Int32s:
    """The codes of the removed that none of those left has, sorted."""
    only = np.zeros(int(removed.max()) + 1, dtype=np.bool_)
    only[removed] = True
    only[left[left < len(only)]] = False
    return np.flatnonzero(only).astype(np.int32)


def _remaining_codes(tx: Transaction, publisher: str, columns: int) -> Int32s:
    table, width = schema.evolving_records, 4 * columns
    rows = tx.rows(table, table.c.publisher == publisher)
    return np.frombuffer(b"".join(bytes(row["fixed"])[:width] for row in rows), "<i4").reshape(-1, columns)


def _overwrite(tx: Transaction, publisher: str, column: str, codes: Int32s) -> None:
    table = schema.evolving_words
    where = sa.and_(table.c.publisher == publisher, table.c.column == column)
    for part in tx.rows(table, where):
        first, words = part["first"], table_from_bytes(bytes(part["payload"])).column("value").combine_chunks()
        own = [int(code) for code in codes if first <= code < first + len(words)]
        if own:
            row = {"publisher": publisher, "column": column, "first": first}
            tx.upsert(publisher, table, [row | {"payload": table_bytes(_replace_words(words, own, first))}])


def _replace_words(words: pa.Array, codes: list[int], first: int) -> pa.Table:
    """The words with others in the place of some: each different, so that every other word keeps its code."""
    values = words.to_pylist()
    for code in codes:
        number = -(1 << 52) - code
        if pa.types.is_floating(words.type):
            values[code - first] = float(number)
        elif pa.types.is_int64(words.type):
            values[code - first] = number
        elif pa.types.is_string(words.type) or pa.types.is_large_string(words.type):
            values[code - first] = f"\x00{code}"
    return pa.table({"value": pa.array(values, words.type)})
