"""One transaction of a store, which is applied completely or not at all; and the values that a store returns."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from reticent.arrays import Int64s, UInt64s
from reticent.errors import StateError
from reticent.release import LedgerEntry
from reticent.store import schema
from reticent.store.database import insert, select_rows
from reticent.store.integrity import DIGEST, SIZE, Seal
from reticent.store.snapshot_writer import IN_USE, SPACE

if TYPE_CHECKING:
    from reticent.store.store import Store

# Statements are built once: building them costs more than running them.
_OF_PUBLISHER = schema.publishers.c.publisher == sa.bindparam("of")
_READ_ROW = sa.select(schema.publishers).where(_OF_PUBLISHER).with_for_update()
_MUTABLE_COLUMNS = ("secret", "position", "next_number", "next_part", "first_number", "next_unsent", "entries", "chain")
_WRITE_ROW = (
    sa.update(schema.publishers)
    .where(_OF_PUBLISHER)
    .values({name: sa.bindparam(name) for name in (*_MUTABLE_COLUMNS, DIGEST)})
)
_FORGET = sa.delete(schema.outbox).where(
    schema.outbox.c.publisher == sa.bindparam("of"), schema.outbox.c.number < sa.bindparam("least")
)
_AT_KEY = sa.and_(
    schema.kv.c.publisher == sa.bindparam("of"),
    schema.kv.c.space == sa.bindparam("in_space"),
    schema.kv.c.key == sa.bindparam("at_key"),
)
_GET = select_rows(schema.kv, 'publisher = :of AND space = :in_space AND "key" = :at_key')
_DELETE = sa.delete(schema.kv).where(_AT_KEY)


@dataclass(frozen=True)
class OutboxEntry:
    """One released batch, with the exact bytes for the sinks."""

    number: int
    kind: str
    payload: bytes = field(repr=False)
    position: str | None = None


@dataclass(frozen=True)
class Snapshot:
    """The stored state: a snapshot and the changes since, in order."""

    payload: bytes = field(repr=False)
    deltas: tuple[bytes, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class DeadLetter:
    """A record that could not be released: its position, the reason and its bytes."""

    position: str
    reason: str
    payload: bytes = field(repr=False)


@dataclass
class _PublisherRow:
    """A publisher's row, read once and written back once per transaction."""

    publisher: str
    policy_hash: str
    secret: bytes
    position: str | None
    next_number: int
    next_part: int
    first_number: int
    next_unsent: int
    entries: int
    chain: bytes


class Transaction:
    """The changes of one step of a publisher; `Store.transaction` commits them together."""

    def __init__(self, connection: sa.Connection, owners: Mapping[str, str], seal: Seal) -> None:
        self._connection = connection
        self._owners = owners
        self._seal = seal
        self._rows: dict[str, _PublisherRow] = {}

    def put_outbox(self, publisher: str, kind: str, payload: bytes, *, position: str | None = None) -> int:
        """Store a released batch and return its number. `position` is the input position after it."""
        row = self._lock_row(publisher)
        refuse_closed_publication(self, publisher)
        number = row.next_number
        row.next_number += 1
        if position is not None:
            row.position = position
        digest = self._insert(
            schema.outbox, publisher=publisher, number=number, kind=kind, payload=payload, position=position
        )
        row.chain = hashlib.blake2b(row.chain + digest, digest_size=SIZE).digest()
        return number

    def confirm_delivery(self, publisher: str, number: int) -> None:
        """Record that the sinks have every batch up to and including `number`."""
        row = self._lock_row(publisher)
        row.next_unsent = max(row.next_unsent, min(number + 1, row.next_number))

    def forget_delivered_batches(self, publisher: str, number: int) -> None:
        """Delete sent batches up to and including `number`. Unsent batches stay."""
        self.forget_outbox(publisher, min(number + 1, self._lock_row(publisher).next_unsent))

    def forget_outbox(self, publisher: str, below: int) -> None:
        """Delete all batches with a number below `below`, sent or not."""
        row = self._lock_row(publisher)
        below = min(below, row.next_number)
        if below > row.first_number:
            self._connection.execute(_FORGET, {"of": publisher, "least": below})
            row.first_number, row.next_unsent = below, max(row.next_unsent, below)

    def forget_all(self, publisher: str) -> None:
        """Record that nothing of a publisher is stored any more. Its numbers are never used again."""
        row = self._lock_row(publisher)
        row.position, row.next_part, row.entries = None, 0, 0
        row.first_number = row.next_unsent = row.next_number

    def set_position(self, publisher: str, position: str) -> None:
        """Store the input position."""
        self._lock_row(publisher).position = position

    def put_snapshot(self, publisher: str, payload: bytes) -> None:
        """Replace the stored state, and all changes to it, with a snapshot."""
        row = self._lock_row(publisher)
        self._connection.execute(sa.delete(schema.snapshots).where(schema.snapshots.c.publisher == publisher))
        self.delete(publisher, SPACE, IN_USE)
        self._insert(schema.snapshots, publisher=publisher, part=0, payload=payload)
        row.next_part = 1

    def append_delta(self, publisher: str, payload: bytes) -> int:
        """Add a change to the stored state. Return the number of changes since the snapshot."""
        row = self._lock_row(publisher)
        if not row.next_part:
            raise StateError(f"{publisher!r} has no stored state to change.", hint="Store a snapshot first.")
        self._insert(schema.snapshots, publisher=publisher, part=row.next_part, payload=payload)
        row.next_part += 1
        return row.next_part - 1

    def record_ledger(self, publisher: str, entry: LedgerEntry, persons: UInt64s, groups: Int64s) -> None:
        """Record a publication with the group of each person (by keyed hash). The entry cannot be changed later."""
        row = self._lock_row(publisher)
        if len(persons) != len(groups):
            raise StateError("A ledger entry needs one group per person.", hint="Give arrays of the same length.")
        values = {name: value for name, value in asdict(entry).items() if name != "digest"} | {
            "payload_digest": entry.digest,
            "records": json.dumps(asdict(entry.records)),
            "persons": persons.astype("<u8").tobytes(),
            "groups": groups.astype("<i8").tobytes(),
        }
        self._insert(schema.ledger, publisher=publisher, **values)
        row.entries += 1

    def put_dead_letter(self, publisher: str, position: str, reason: str, payload: bytes) -> None:
        """Store a record that could not be released. `reason` must not quote it; `payload` is never published."""
        self._lock_row(publisher)
        self._insert(schema.dead_letters, publisher=publisher, position=position, reason=reason, payload=payload)

    def record_population(self, publisher: str, **about: Any) -> None:
        """Record persons of a publication in the ledger that all publications of the store share."""
        self._lock_row(publisher)
        self._insert(schema.population, publisher=publisher, **about)

    def run(self, publisher: str, statement: sa.Executable, rows: list[dict[str, Any]]) -> None:
        """Run a statement on an engine's own table, once per row, as the publisher's only writer."""
        self._lock_row(publisher)
        if rows:
            self._connection.execute(statement, rows)

    def change(self, statement: sa.Executable) -> None:
        """Run a statement on rows that belong to no single publisher."""
        self._connection.execute(statement)

    def value(self, query: sa.Executable, **values: Any) -> Any:
        """Return the single value of a query, as this transaction sees it."""
        return self._connection.execute(query, values).scalar()

    def rows(self, table: sa.Table, which: sa.ColumnElement[bool]) -> list[Mapping[Any, Any]]:
        """Return whole rows of a table, checked and decrypted, as this transaction sees them."""
        rows = self._connection.execute(sa.select(table).where(which)).mappings().all()
        return [self._seal.open_row(table, row) for row in rows]

    def upsert(self, publisher: str, table: sa.Table, rows: list[dict[str, Any]]) -> None:
        """Write rows of an engine's own table. They replace rows with the same key."""
        self._lock_row(publisher)
        self._write(table, self._seal.seal_rows(table, rows), again=True)

    def get(self, publisher: str, space: str, key: str) -> bytes | None:
        """Return a value of an engine or the service, as this transaction sees it."""
        row = self._connection.execute(_GET, self._key_parameters(publisher, space, key)).mappings().one_or_none()
        return None if row is None else bytes(self._seal.open_row(schema.kv, row)["value"])

    def put(self, publisher: str, space: str, key: str, value: bytes) -> None:
        """Set a value of an engine or the service; this needs no lock."""
        row = {"publisher": publisher, "space": space, "key": key, "value": value}
        self._write(schema.kv, [self._seal.seal_row(schema.kv, row)], again=True)

    def delete(self, publisher: str, space: str, key: str) -> None:
        """Delete a value of an engine or the service."""
        self._connection.execute(_DELETE, self._key_parameters(publisher, space, key))

    def flush(self) -> None:
        """Write the publishers' rows back; `Store.transaction` calls this before it commits."""
        for publisher, row in self._rows.items():
            sealed = self._seal.seal_row(schema.publishers, vars(row))
            self._connection.execute(
                _WRITE_ROW, {"of": publisher, **{name: sealed[name] for name in (*_MUTABLE_COLUMNS, DIGEST)}}
            )

    def _key_parameters(self, publisher: str, space: str, key: str) -> dict[str, str]:
        return {"of": publisher, "in_space": space, "at_key": self._seal.name_in_store(schema.kv, "key", key, space)}

    def _insert(self, table: sa.Table, **values: Any) -> bytes:
        row = self._seal.seal_row(table, values)
        self._write(table, [row])
        return bytes(row[DIGEST])

    def _write(self, table: sa.Table, rows: list[dict[str, Any]], *, again: bool = False) -> None:
        """Write sealed rows. With `again`, they replace rows with the same key."""
        if not rows:
            return
        dialect = self._connection.dialect.name
        if dialect == "sqlite":
            # Bypass SQLAlchemy: preparing each cell and each statement took longer than writing them.
            names = tuple(rows[0])
            cells = [tuple(map(row.__getitem__, names)) for row in rows]
            self._connection.exec_driver_sql(_sqlite_insert(table, names, again=again), cells)
        else:
            self._connection.execute(_upsert(dialect, table) if again else sa.insert(table), rows)

    def _lock_row(self, publisher: str) -> _PublisherRow:
        """Lock and return the publisher's row, after checking that this process is its only writer."""
        if publisher in self._rows:
            return self._rows[publisher]
        row = self._connection.execute(_READ_ROW, {"of": publisher}).mappings().one_or_none()
        if publisher not in self._owners or row is None:
            raise StateError(f"{publisher!r} is not locked by this process.", hint="Write inside `store.lock(...)`.")
        if row["owner"] != self._owners[publisher]:
            raise StateError(
                f"Another process took over {publisher!r}; nothing was changed.", hint="Start again from the store."
            )
        cells = self._seal.open_row(schema.publishers, row)
        self._rows[publisher] = _PublisherRow(**{name: cells[name] for name in self._seal.columns(schema.publishers)})
        return self._rows[publisher]


@functools.cache
def _upsert(dialect: str, table: sa.Table) -> sa.Insert:
    """Return an upsert statement. It is built once per table, because building costs more than running it for one row."""
    write = insert(dialect, table)
    keys = [column.name for column in table.primary_key]
    change = {column.name: write.excluded[column.name] for column in table.c if column.name not in keys}
    return write.on_conflict_do_update(index_elements=keys, set_=change)


@functools.cache
def _sqlite_insert(table: sa.Table, names: tuple[str, ...], *, again: bool) -> str:
    """Return the SQL that inserts a row, or with `again` replaces a row with the same key."""
    keys = [f'"{column.name}"' for column in table.primary_key]
    cells = [f'"{name}"' for name in names]
    words = f"INSERT INTO {table.name} ({', '.join(cells)}) VALUES ({', '.join('?' * len(cells))})"  # noqa: S608 - names of our own
    if not again:
        return words
    change = ", ".join(f"{cell} = excluded.{cell}" for cell in cells if cell not in keys)
    return f"{words} ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {change}"


_RESTORED, _WHAT = "restored", "what"


@dataclass(frozen=True)
class RestoreOutcome:
    """The outcome of a restore for one publication.

    A backup does not know what was published after it. Therefore a restore closes every publication unless it learns what was published:
    from the rollback marker (nothing is missing), the release folders, the lines of a stream, or a number.

    Attributes:
        closed: the reason why nothing more may be published; empty if publishing may continue.
        lines: the file with a stream's published lines.
        size: the number of published bytes in this file.
    """

    closed: str = ""
    lines: str = ""
    size: int = 0


def write_restore_outcome(tx: Transaction, publisher: str, outcome: RestoreOutcome) -> None:
    """Store the outcome of a restore for a publication."""
    tx.put(publisher, _RESTORED, _WHAT, json.dumps(asdict(outcome)).encode())


def read_restore_outcome(where: Store | Transaction, publisher: str) -> RestoreOutcome:
    """Return the outcome of the last restore for a publication; an empty one without a restore."""
    value = where.get(publisher, _RESTORED, _WHAT)
    return RestoreOutcome() if value is None else RestoreOutcome(**json.loads(value))


def refuse_closed_publication(where: Store | Transaction, publisher: str) -> None:
    """Refuse to publish for a closed publication."""
    restored = read_restore_outcome(where, publisher)
    if restored.closed:
        raise StateError(
            f"{publisher!r} is closed: {restored.closed}. Publishing again could release the same people a second time.",
            hint="After a restore, restore again with --published or with a later backup. People who were never released can go "
            "into a publication with another name.",
        )
