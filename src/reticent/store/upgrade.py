"""Stores of older versions: their tables renamed, made anew, and filled with digests, all in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from reticent.errors import StateError
from reticent.store import database, schema
from reticent.store.generation import HEAD, SECRET, Head, head_text, new_seal
from reticent.store.keys import Key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reticent.store.integrity import Seal

_OLDEST = 2
_OLD = "old_"
_ROWS = 5_000


def upgraded(engine: sa.Engine) -> int:
    """Brings a store to this version; nothing is changed when it fails."""
    with database.writing(engine) as connection:
        query = sa.select(schema.meta.c.value).where(schema.meta.c.name == "schema")
        version = int(str(connection.execute(query).scalar() or "0"))
        if version == schema.VERSION:
            return version
        if version != _OLDEST:
            raise StateError(
                f"Schema {version} cannot be brought to {schema.VERSION}.", hint="Use the version that made the store."
            )
        _from_two(connection, Key.from_environment())
    return version


def _from_two(connection: sa.Connection, key: Key | None) -> None:
    seal, secret = new_seal(key)
    old = [table for table in schema.metadata.sorted_tables if table not in (schema.meta, schema.population)]
    for index in sa.inspect(connection).get_multi_indexes().values():
        for one in index:
            connection.exec_driver_sql(f'DROP INDEX IF EXISTS "{one["name"]}"')
    for table in old:
        connection.exec_driver_sql(f'ALTER TABLE "{table.name}" RENAME TO "{_OLD}{table.name}"')
    schema.metadata.create_all(connection)
    facts = {name: _facts(connection, name) for name in _publishers(connection)}
    for table in old:
        _fill(connection, table, seal, facts)
        connection.exec_driver_sql(f'DROP TABLE "{_OLD}{table.name}"')
    connection.execute(sa.update(schema.meta).where(schema.meta.c.name == "schema").values(value=str(schema.VERSION)))
    first = {SECRET: secret, HEAD: head_text(Head.fresh(), seal)}
    connection.execute(sa.insert(schema.meta), [{"name": name, "value": value} for name, value in first.items()])


def _publishers(connection: sa.Connection) -> list[str]:
    return [str(name) for (name,) in connection.exec_driver_sql(f"SELECT publisher FROM {_OLD}reticent_publishers")]  # noqa: S608


def _facts(connection: sa.Connection, publisher: str) -> dict[str, Any]:
    """What a publisher's row counts now and did not before."""

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


def _fill(connection: sa.Connection, table: sa.Table, seal: Seal, facts: Mapping[str, Mapping[str, Any]]) -> None:
    rows = connection.exec_driver_sql(f'SELECT * FROM "{_OLD}{table.name}"').mappings()  # noqa: S608
    for some in rows.partitions(_ROWS):
        sealed = [seal.sealed(table, _renamed(table, dict(row), facts)) for row in some]
        names = {column.name for column in table.c}
        connection.execute(sa.insert(table), [{k: v for k, v in row.items() if k in names} for row in sealed])


def _renamed(table: sa.Table, row: dict[Any, Any], facts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    if table is schema.publishers:
        return {**row, **facts[row["publisher"]]}
    if table is schema.ledger:
        return {**row, "payload_digest": row["digest"]}
    return row
