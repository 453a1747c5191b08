"""Another key for a store, or its first one, or none: every row is written anew under a fresh data key, in one transaction.

Guarantee: whoever has the key of before and this store as it is from now on reads nothing; nobody else notices but by the key.
Not covered: copies and backups from before stay under the key of before.
Cost: the whole store is read and written once; nobody writes meanwhile.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import sqlalchemy as sa

from reticent.store import database, generation, schema
from reticent.store.generation import SECRET
from reticent.store.keys import Key
from reticent.store.scrub import cut_log
from reticent.store.store import Store

if TYPE_CHECKING:
    import os

    from reticent.store.integrity import Seal

_ROWS = 200


def rekey(where: str | os.PathLike[str], new: Key | None) -> None:
    """Brings a store under another key, or under none.

    Args:
        where: the store; it opens with the key that the environment names, or with none where it is not encrypted.
        new: the key from now on; None leaves the store unencrypted.

    Raises:
        StateError: somebody uses the store, it is damaged, or the present key is not its own.
    """
    with Store.open(where, create=False, key=_present(where)) as store, ExitStack() as stack:
        for publisher in store.publishers():
            stack.enter_context(store.lock(publisher))  # whoever is at work holds the data key of before
        with database.writing(store.engine) as connection:
            seal, text = generation.new_seal(new, store.seal.secret)
            for table in schema.metadata.sorted_tables:
                if table is not schema.meta:
                    _write_anew(connection, table, store.seal, seal)
            connection.execute(sa.update(schema.meta).where(schema.meta.c.name == SECRET).values(value=text))
            store.head = generation.read_head(connection, store.seal).next()
            generation.write_head(connection, store.head, seal)
        store.adopt(seal)
        cut_log(store)


def _present(where: str | os.PathLike[str]) -> Key | None:
    """The key of the environment where the store has one: it may stand there for a store that is yet to be encrypted."""
    key = Key.from_environment()
    return key if key is None or Store.encrypted(where) else None


def _write_anew(connection: sa.Connection, table: sa.Table, old: Seal, new: Seal) -> None:
    keys = list(table.primary_key)
    rows = list(connection.execute(sa.select(*keys)))
    for start in range(0, len(rows), _ROWS):
        which = sa.tuple_(*keys).in_([tuple(row) for row in rows[start : start + _ROWS]])
        some = [old.opened(table, row) for row in connection.execute(sa.select(table).where(which)).mappings()]
        connection.execute(sa.delete(table).where(which))
        connection.execute(sa.insert(table), [new.sealed(table, row) for row in some])
