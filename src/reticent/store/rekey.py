"""Writes every row of a store again in one transaction: under another key, under its first key, or under none.

Guarantee: whoever has the key of before and this store as it is from now on reads nothing; nobody else notices but by the key.
Not covered: copies and backups from before stay under the key of before.
Cost: the whole store is read and written once; nobody writes meanwhile.
"""

from __future__ import annotations

import os
from contextlib import ExitStack

import sqlalchemy as sa

from reticent.store import database, schema
from reticent.store.integrity import SECRET, Seal, new_seal, read_head, write_head
from reticent.store.keys import Key
from reticent.store.store import Store

_KEYS = 200
"""Rows that are read and written at once."""


def rekey(where: str | os.PathLike[str], new: Key | None) -> None:
    """Brings a store under another key, or under none.

    Args:
        where: the store; it opens with the key that the environment names, or with none where it is not encrypted.
        new: the key from now on; None leaves the store unencrypted.

    Raises:
        StateError: somebody uses the store, it is damaged, or the present key is not its own.
    """
    with Store.open(where, create=False, key=_current_key(where)) as store, ExitStack() as stack:
        for publisher in store.publishers():
            stack.enter_context(store.lock(publisher))  # whoever is at work holds the data key of before
        with database.write_transaction(store.engine) as connection:
            seal, text = new_seal(new, store.seal.secret)
            for table in schema.metadata.sorted_tables:
                if table is not schema.meta:
                    _rewrite_table(connection, table, store.seal, seal)
            connection.execute(sa.update(schema.meta).where(schema.meta.c.name == SECRET).values(value=text))
            store.head = read_head(connection, store.seal).next()
            write_head(connection, store.head, seal)
        store.adopt(seal)
        database.truncate_log(store.engine)


def _current_key(where: str | os.PathLike[str]) -> Key | None:
    """The key of the environment where the store has one: it may stand there for a store that is yet to be encrypted."""
    key = Key.from_environment()
    return key if key is None or Store.is_encrypted(where) else None


def _rewrite_table(connection: sa.Connection, table: sa.Table, old: Seal, new: Seal) -> None:
    keys = list(table.primary_key)
    rows = list(connection.execute(sa.select(*keys)))
    for start in range(0, len(rows), _KEYS):
        which = sa.tuple_(*keys).in_([tuple(row) for row in rows[start : start + _KEYS]])
        some = [old.open_row(table, row) for row in connection.execute(sa.select(table).where(which)).mappings()]
        connection.execute(sa.delete(table).where(which))
        connection.execute(sa.insert(table), [new.seal_row(table, row) for row in some])
