"""One transaction: everything in it is there after a crash, or nothing is."""

from __future__ import annotations

import functools
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from reticent.errors import StateError
from reticent.store import schema
from reticent.store.database import of_dialect
from reticent.store.rewriting import IN_USE, SPACE

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import numpy.typing as npt

    from reticent.release import LedgerEntry


# Statements are built once: building them costs more than running them.
_OF = schema.publishers.c.publisher == sa.bindparam("of")
_READ_ROW = (
    sa.select(
        schema.publishers.c.owner,
        schema.publishers.c.position,
        schema.publishers.c.next_number,
        schema.publishers.c.next_part,
    )
    .where(_OF)
    .with_for_update()
)
_WRITE_ROW = (
    sa.update(schema.publishers)
    .where(_OF)
    .values({name: sa.bindparam(name) for name in ("position", "next_number", "next_part")})
)
_INSERT = {table: sa.insert(table) for table in (schema.outbox, schema.snapshots, schema.ledger, schema.dead_letters)}
_AT_KEY = sa.and_(
    schema.kv.c.publisher == sa.bindparam("of"),
    schema.kv.c.space == sa.bindparam("in_space"),
    schema.kv.c.key == sa.bindparam("at_key"),
)
_GET = sa.select(schema.kv.c.value).where(_AT_KEY)
_DELETE = sa.delete(schema.kv).where(_AT_KEY)


@dataclass
class _Row:
    """The changing part of a publisher's row, read once and written back once per transaction."""

    position: str | None
    next_number: int
    next_part: int


class Transaction:
    """The changes of one step of a publisher; `Store.transaction` commits them together."""

    def __init__(self, connection: sa.Connection, owners: Mapping[str, str]) -> None:
        self._connection = connection
        self._owners = owners
        self._rows: dict[str, _Row] = {}

    def put_outbox(self, publisher: str, kind: str, payload: bytes, *, position: str | None = None) -> int:
        """Store a released batch to be sent; gives its number. `position` is where the input stood after it."""
        row = self._row(publisher)
        number = row.next_number
        row.next_number += 1
        if position is not None:
            row.position = position
        self._insert(
            schema.outbox,
            publisher=publisher,
            number=number,
            kind=kind,
            payload=payload,
            position=position,
            sent=False,
        )
        return number

    def mark_sent(self, publisher: str, number: int) -> None:
        """Note that the sinks have every batch up to and including `number`."""
        self._row(publisher)
        table = schema.outbox.c
        self._connection.execute(
            sa.update(schema.outbox)
            .where(table.publisher == publisher, table.sent.is_(False), table.number <= number)
            .values(sent=True)
        )

    def forget_sent(self, publisher: str, number: int) -> None:
        """Drop sent batches up to and including `number`; batches that were not sent stay."""
        self._row(publisher)
        table = schema.outbox.c
        self._connection.execute(
            sa.delete(schema.outbox).where(table.publisher == publisher, table.sent.is_(True), table.number <= number)
        )

    def forget_outbox(self, publisher: str, below: int) -> None:
        """Drop all batches with a number below this one, sent or not."""
        self._row(publisher)
        table = schema.outbox.c
        self._connection.execute(sa.delete(schema.outbox).where(table.publisher == publisher, table.number < below))

    def set_position(self, publisher: str, position: str) -> None:
        """Note where the input stands."""
        self._row(publisher).position = position

    def put_snapshot(self, publisher: str, payload: bytes) -> None:
        """Replace the stored state, and all changes to it, by a whole one."""
        row = self._row(publisher)
        self._connection.execute(sa.delete(schema.snapshots).where(schema.snapshots.c.publisher == publisher))
        self.delete(publisher, SPACE, IN_USE)
        self._insert(schema.snapshots, publisher=publisher, part=0, payload=payload)
        row.next_part = 1

    def append_delta(self, publisher: str, payload: bytes) -> int:
        """Add a change to the stored state; gives the number of changes since it was whole."""
        row = self._row(publisher)
        if not row.next_part:
            raise StateError(f"{publisher!r} has no stored state to change.", hint="Store a whole one first.")
        self._insert(schema.snapshots, publisher=publisher, part=row.next_part, payload=payload)
        row.next_part += 1
        return row.next_part - 1

    def record_ledger(
        self,
        publisher: str,
        entry: LedgerEntry,
        persons: npt.NDArray[np.uint64],
        groups: npt.NDArray[np.int64],
    ) -> None:
        """Remember a publication, and which person (by keyed hash) stood in which group; it can't be changed later."""
        self._row(publisher)
        if len(persons) != len(groups):
            raise StateError("A ledger entry needs one group per person.", hint="Give arrays of one length.")
        values = asdict(entry) | {
            "counts": json.dumps(asdict(entry.counts)),
            "persons": persons.astype("<u8").tobytes(),
            "groups": groups.astype("<i8").tobytes(),
        }
        self._insert(schema.ledger, publisher=publisher, **values)

    def dead_letter(self, publisher: str, position: str, reason: str, payload: bytes) -> None:
        """Keep a record that could not be released. `reason` must not quote it; `payload` stays on the private side."""
        self._row(publisher)
        self._insert(schema.dead_letters, publisher=publisher, position=position, reason=reason, payload=payload)

    def run(self, publisher: str, statement: sa.Executable, rows: list[dict[str, Any]]) -> None:
        """Run a statement on an engine's own table, once per row, as the publisher's one writer."""
        self._row(publisher)
        if rows:
            self._connection.execute(statement, rows)

    def value(self, query: sa.Select[Any], **values: Any) -> Any:
        """The one value that a query finds, as this transaction sees it."""
        return self._connection.execute(query, values).scalar()

    def upsert(self, publisher: str, table: sa.Table, rows: list[dict[str, Any]]) -> None:
        """Write rows of an engine's own table, in place of those with the same key."""
        self.run(publisher, _upsert(self._connection.dialect.name, table), rows)

    def get(self, publisher: str, space: str, key: str) -> bytes | None:
        """A value of the engine's or the service's own, as this transaction sees it."""
        value = self.value(_GET, of=publisher, in_space=space, at_key=key)
        return None if value is None else bytes(value)

    def put(self, publisher: str, space: str, key: str, value: bytes) -> None:
        """Set a value of the engine's or the service's own; this needs no lock."""
        row = {"publisher": publisher, "space": space, "key": key, "value": value}
        self._connection.execute(_upsert(self._connection.dialect.name, schema.kv), row)

    def delete(self, publisher: str, space: str, key: str) -> None:
        """Remove a value of the engine's or the service's own."""
        self._connection.execute(_DELETE, {"of": publisher, "in_space": space, "at_key": key})

    def flush(self) -> None:
        """Write back what was counted on; `Store.transaction` calls it before it commits."""
        for publisher, row in self._rows.items():
            self._connection.execute(_WRITE_ROW, {"of": publisher, **vars(row)})

    def _insert(self, table: sa.Table, **values: Any) -> None:
        self._connection.execute(_INSERT[table], values)

    def _row(self, publisher: str) -> _Row:
        """The publisher's row, held for this transaction, after checking that we are its one writer."""
        if publisher in self._rows:
            return self._rows[publisher]
        row = self._connection.execute(_READ_ROW, {"of": publisher}).one_or_none()
        if publisher not in self._owners or row is None:
            raise StateError(f"{publisher!r} is not locked by this process.", hint="Write inside `store.lock(...)`.")
        if row.owner != self._owners[publisher]:
            raise StateError(
                f"Another process took over {publisher!r}; nothing was changed.", hint="Start again from the store."
            )
        self._rows[publisher] = _Row(row.position, row.next_number, row.next_part)
        return self._rows[publisher]


@functools.cache
def _upsert(dialect: str, table: sa.Table) -> sa.Executable:
    """Built once per table: building it costs more than running it for one row."""
    write = of_dialect(dialect, table)
    keys = [column.name for column in table.primary_key]
    change = {column.name: write.excluded[column.name] for column in table.c if column.name not in keys}
    return write.on_conflict_do_update(index_elements=keys, set_=change)
