"""Reads and writes the records of an evolving table in bulk, one row per record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import sqlalchemy as sa

from reticent.store import schema
from reticent.store.store import Store
from reticent.store.transaction import Transaction

# Ids per query: well below SQLite's limit of parameters per statement.
_IDS_PER_QUERY = 500
# Rows in memory at once while a large change is written.
_ROWS_PER_WRITE = 20_000
_PERSON_STATES = "person_states"
_REMOVE = sa.delete(schema.evolving_records).where(
    schema.evolving_records.c.publisher == sa.bindparam("of"),
    schema.evolving_records.c.row.in_(sa.bindparam("rows", expanding=True)),
)


@dataclass(frozen=True, slots=True, repr=False)
class StoredRecord:
    """One record as the store keeps it."""

    row: int
    person: str
    name: str | None
    fixed: bytes
    group: int


def write(tx: Transaction, publisher: str, rows: Iterable[tuple[int, str, str | None, bytes, int]]) -> None:
    """Add or replace records, each given as row number, person, name, fixed bytes and class."""
    waiting = iter(rows)
    while chunk := list(islice(waiting, _ROWS_PER_WRITE)):
        values = [
            {"publisher": publisher, "row": row, "person": person, "name": name, "fixed": fixed, "class": group}
            for row, person, name, fixed, group in chunk
        ]
        tx.upsert(publisher, schema.evolving_records, values)


def remove(tx: Transaction, publisher: str, rows: Sequence[int]) -> None:
    """Remove records by row number."""
    for start in range(0, len(rows), _IDS_PER_QUERY):
        tx.run(publisher, _REMOVE, [{"of": publisher, "rows": rows[start : start + _IDS_PER_QUERY]}])


def read(store: Store, publisher: str) -> list[StoredRecord]:
    """Return all records, sorted by row number."""
    t = schema.evolving_records.c
    rows = store.rows(schema.evolving_records, t.publisher == publisher, order_by=t.row)
    return [_to_record(row) for row in rows]


def find(store: Store, publisher: str, *, persons: Sequence[str] = (), names: Sequence[str] = ()) -> list[StoredRecord]:
    """Return the records of the given persons or record ids, sorted by row number."""
    t = schema.evolving_records.c
    rows: dict[int, StoredRecord] = {}
    for column, ids in ((t.person, persons), (t.name, names)):
        for start in range(0, len(ids), _IDS_PER_QUERY):
            stored_ids = [
                store.seal.name_in_store(schema.evolving_records, column.name, one)
                for one in ids[start : start + _IDS_PER_QUERY]
            ]
            which = sa.and_(t.publisher == publisher, column.in_(stored_ids))
            rows |= {
                each["row"]: _to_record(each) for each in store.rows(schema.evolving_records, which, order_by=t.row)
            }
    return [rows[number] for number in sorted(rows)]


def next_row_number(store: Store, publisher: str) -> int:
    """Return the first row number above all used ones."""
    t = schema.evolving_records.c
    (last,) = store.read(sa.select(sa.func.max(t.row)).where(t.publisher == publisher))[0]
    return 0 if last is None else int(last) + 1


def write_person_states(tx: Transaction, publisher: str, states: Mapping[str, bytes]) -> None:
    """Store the states of persons by key. A state stays when the person's records are deleted."""
    waiting = iter(states.items())
    while chunk := list(islice(waiting, _ROWS_PER_WRITE)):
        rows = [{"publisher": publisher, "space": _PERSON_STATES, "key": key, "value": state} for key, state in chunk]
        tx.upsert(publisher, schema.kv, rows)


def read_person_states(store: Store, publisher: str, keys: Sequence[str]) -> dict[str, bytes]:
    """Return the stored states of persons, by key."""
    t = schema.kv.c
    states: dict[str, bytes] = {}
    for start in range(0, len(keys), _IDS_PER_QUERY):
        has_key = t.key.in_(
            [
                store.seal.name_in_store(schema.kv, t.key.name, key, _PERSON_STATES)
                for key in keys[start : start + _IDS_PER_QUERY]
            ]
        )
        which = sa.and_(t.publisher == publisher, t.space == _PERSON_STATES, has_key)
        states |= {row["key"]: bytes(row["value"]) for row in store.rows(schema.kv, which, order_by=t.key)}
    return states


def add_words(tx: Transaction, publisher: str, column: str, first: int, payload: bytes) -> None:
    """Add the values of a column, starting at code `first`."""
    row = {"publisher": publisher, "column": column, "first": first, "payload": payload}
    tx.upsert(publisher, schema.evolving_words, [row])


def read_words(store: Store, publisher: str, column: str) -> list[bytes]:
    """Return the values of a column in the order of their codes."""
    t = schema.evolving_words.c
    which = sa.and_(t.publisher == publisher, t.column == column)
    return [bytes(row["payload"]) for row in store.rows(schema.evolving_words, which, order_by=t.first)]


def _to_record(row: Mapping[Any, Any]) -> StoredRecord:
    return StoredRecord(row["row"], row["person"], row["name"], row["fixed"], row["class"])
