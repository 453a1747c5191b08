"""Rewrites every row of a store in one transaction to change, add or remove its key.

Guarantee: an attacker who has the old key and the rewritten store can read nothing.
Not covered: earlier copies and backups can still be read with the old key.
Cost: the whole store is read and written once; other writers wait.
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
    """Change the key of a store, or remove its encryption.

    Args:
        where: the store; it is opened with the key from the environment, if it is encrypted.
        new: the new key; None removes the encryption.

    Raises:
        StateError: another process uses the store, it is corrupt, or the current key is wrong.
    """
    with Store.open(where, create=False, key=_current_key(where)) as store, ExitStack() as stack:
        for publisher in store.publishers():
            stack.enter_context(store.lock(publisher))  # a process at work has the old data key
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
    """Return the key from the environment if the store is encrypted; otherwise the key is the new one."""
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
