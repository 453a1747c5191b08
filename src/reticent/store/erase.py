"""Erases publications, dead letters, and values that only deleted records had.

SQLite overwrites deleted rows (`secure_delete`). Its log still contains them until it is written back and truncated.

Guarantee: against an attacker who has the store's files afterwards: they contain nothing of what was erased.
Not covered: published releases and backups. Keyed hashes of the persons stay in the ledger, so that erased persons are not published
    a second time. PostgreSQL keeps the old pages until its next vacuum.
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
    """Erase the releases, the state and the records of a publication, and close it. The ledger keeps its persons.

    Raises:
        StateError: there is no publication of this name, or another process uses it.
    """
    if publisher in (_SERVICE, _VEIL_KEY):
        raise StateError(f"{publisher!r} is not a publication.", hint="Run `reticent ledger` to list the publications.")
    with store.lock(publisher), store.transaction() as tx:
        for table in _PUBLISHER_TABLES:
            tx.run(publisher, sa.delete(table).where(table.c.publisher == sa.bindparam("of")), [{"of": publisher}])
        tx.forget_all(publisher)
        write_restore_outcome(tx, publisher, RestoreOutcome(closed="it was erased"))
    _truncate_log(store)


def erase_dead_letters(store: Store, days: float, *, now: float | None = None) -> int:
    """Erase the dead letters that existed at a call at least `days` days ago; 0 erases all. Return their number.

    A dead letter has no time. Each call notes the last dead letter, and a later call erases up to it.
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
            "The data was erased, but the log of the store still contains it: another process reads the store.",
            hint="Stop the other process, then run the command again.",
        )


def forget_words(
    tx: Transaction, publisher: str, columns: Sequence[str], removed: Int32s, gone: Sequence[Int32s] | None = None
) -> list[str]:
    """Overwrite the values of an evolving table that only removed records had. Return the affected columns.

    Args:
        tx: the transaction that has removed the records.
        publisher: the name of the table.
        columns: the columns of the codes, in order.
        removed: a row of codes per removed record.
        gone: per column the codes that no record has any more, if known; otherwise they are read from the store.
    """
    if gone is None:
        left = _remaining_codes(tx, publisher, len(columns))
        gone = [_exclusive_codes(removed[:, at], left[:, at]) for at in range(len(columns))]
    words = {column: codes for column, codes in zip(columns, gone, strict=True) if len(codes)}
    for column, codes in words.items():
        _overwrite(tx, publisher, column, codes)
    return list(words)


def _exclusive_codes(removed: Int32s, left: Int32s) -> Int32s:
    """Return the codes of removed records that no remaining record has, sorted."""
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
    """Replace the values of some codes with unique placeholders, so that all other values keep their codes."""
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
