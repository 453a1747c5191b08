"""Forgetting for good: what was deleted is gone from the file, from its log, and from the lists of words.

SQLite overwrites deleted rows (`secure_delete`); the log beside it still holds them until it is written back and cut off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import sqlalchemy as sa

from reticent.release.codec import table_bytes, table_from
from reticent.store import database, schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from reticent.store.store import Store
    from reticent.store.transaction import Transaction

    Codes = npt.NDArray[np.int32]


def cut_log(store: Store) -> bool:
    """Writes the log back and cuts it to nothing; whether nobody stood in the way. Another server has its own means."""
    return database.cut_log(store.engine)


def forget_words(
    tx: Transaction, publisher: str, columns: Sequence[str], removed: Codes, left: Codes | None = None
) -> bool:
    """Overwrites the words of an evolving table that only removed records had; whether there were any.

    Args:
        tx: the transaction that removed the records, after it did.
        publisher: the table.
        columns: the columns of the codes, in order.
        removed: a row of codes per removed record.
        left: one per record that is left, by who has all of them in memory; read from the store otherwise.
    """
    if left is None:
        left = _left(tx, publisher, len(columns))
    gone = [_only(removed[:, at], left[:, at]) for at in range(len(columns))]
    for column, codes in zip(columns, gone, strict=True):
        if len(codes):
            _overwrite(tx, publisher, column, codes)
    return any(len(codes) for codes in gone)


def _only(removed: Codes, left: Codes) -> Codes:
    """The codes of the removed that none of those left has, sorted."""
    only = np.zeros(int(removed.max()) + 1, dtype=np.bool_)
    only[removed] = True
    only[left[left < len(only)]] = False
    return np.flatnonzero(only).astype(np.int32)


def _left(tx: Transaction, publisher: str, columns: int) -> Codes:
    table, width = schema.evolving_records, 4 * columns
    rows = tx.rows(table, table.c.publisher == publisher)
    return np.frombuffer(b"".join(bytes(row["fixed"])[:width] for row in rows), "<i4").reshape(-1, columns)


def _overwrite(tx: Transaction, publisher: str, column: str, codes: Codes) -> None:
    table = schema.evolving_words
    where = sa.and_(table.c.publisher == publisher, table.c.column == column)
    for part in tx.rows(table, where):
        first, words = part["first"], table_from(bytes(part["payload"])).column("value").combine_chunks()
        own = [int(code) for code in codes if first <= code < first + len(words)]
        if own:
            row = {"publisher": publisher, "column": column, "first": first}
            tx.upsert(publisher, table, [row | {"payload": table_bytes(_without(words, own, first))}])


def _without(words: pa.Array, codes: list[int], first: int) -> pa.Table:
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
