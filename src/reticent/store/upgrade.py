"""Rewrites every row of a store in one transaction, to upgrade its schema or to change, add or remove its key.

Guarantee: an attacker who has the old key and the rewritten store can read nothing.
Not covered: earlier copies and backups can still be read with the old key.
Cost: the whole store is read and written once; other writers wait.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import sqlalchemy as sa

from reticent.errors import StateError
from reticent.store import database, schema
from reticent.store.backup import store_file
from reticent.store.integrity import HEAD, SECRET, Head, Seal, head_text, new_seal, read_head, write_head
from reticent.store.keys import Key
from reticent.store.store import Store

_OLDEST = 2
_OLD = "old_"
_ROWS, _KEYS = 5_000, 200
"""Rows per insert, and keys per query."""


def upgrade(where: str | os.PathLike[str]) -> int:
    """Upgrade a store to the current schema in one transaction. Return its earlier version."""
    engine = database.connect(store_file(where))
    try:
        with database.write_transaction(engine) as connection:
            query = sa.select(schema.meta.c.value).where(schema.meta.c.name == "schema")
            version = int(str(connection.execute(query).scalar() or "0"))
            if version not in (_OLDEST, schema.VERSION):
                raise StateError(
                    f"The store has schema {version}, which cannot be upgraded to schema {schema.VERSION}.",
                    hint="Use the version of Reticent that created the store.",
                )
            if version == _OLDEST:
                _upgrade_from_two(connection, Key.from_environment())
        return version
    finally:
        engine.dispose()


def _upgrade_from_two(connection: sa.Connection, key: Key | None) -> None:
    seal, secret = new_seal(key)
    old = [table for table in schema.metadata.sorted_tables if table not in (schema.meta, schema.population)]
    for index in sa.inspect(connection).get_multi_indexes().values():
        for one in index:
            connection.exec_driver_sql(f'DROP INDEX IF EXISTS "{one["name"]}"')
    for table in old:
        connection.exec_driver_sql(f'ALTER TABLE "{table.name}" RENAME TO "{_OLD}{table.name}"')
    schema.metadata.create_all(connection)
    names = connection.exec_driver_sql(f"SELECT publisher FROM {_OLD}reticent_publishers").scalars()  # noqa: S608
    facts = {name: _new_columns(connection, name) for name in list(names)}
    for table in old:
        _copy_rows(connection, table, seal, facts)
        connection.exec_driver_sql(f'DROP TABLE "{_OLD}{table.name}"')
    connection.execute(sa.update(schema.meta).where(schema.meta.c.name == "schema").values(value=str(schema.VERSION)))
    first = {SECRET: secret, HEAD: head_text(Head.fresh(), seal)}
    connection.execute(sa.insert(schema.meta), [{"name": name, "value": value} for name, value in first.items()])


def _new_columns(connection: sa.Connection, publisher: str) -> dict[str, Any]:
    """Return the columns of a publisher's row that the old schema did not have."""

    def one(text: str) -> Any:
        return connection.exec_driver_sql(text, (publisher,)).scalar()

    following = one(f"SELECT next_number FROM {_OLD}reticent_publishers WHERE publisher = ?")  # noqa: S608
    first = one(f"SELECT min(number) FROM {_OLD}reticent_outbox WHERE publisher = ?")  # noqa: S608
    unsent = one(f"SELECT min(number) FROM {_OLD}reticent_outbox WHERE publisher = ? AND NOT sent")  # noqa: S608
    return {
        "first_number": following if first is None else first,
        "next_unsent": following if unsent is None else unsent,
        "entries": one(f"SELECT count(*) FROM {_OLD}reticent_ledger WHERE publisher = ?"),  # noqa: S608
        "chain": b"",
    }


def _copy_rows(connection: sa.Connection, table: sa.Table, seal: Seal, facts: Mapping[str, Mapping[str, Any]]) -> None:
    rows = connection.exec_driver_sql(f'SELECT * FROM "{_OLD}{table.name}"').mappings()  # noqa: S608
    for some in rows.partitions(_ROWS):
        sealed = [seal.seal_row(table, _convert_row(table, dict(row), facts)) for row in some]
        names = {column.name for column in table.c}
        connection.execute(sa.insert(table), [{k: v for k, v in row.items() if k in names} for row in sealed])


def _convert_row(table: sa.Table, row: dict[Any, Any], facts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    if table is schema.publishers:
        return {**row, **facts[row["publisher"]]}
    if table is schema.ledger:
        return {**row, "payload_digest": row["digest"]}
    return row


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
