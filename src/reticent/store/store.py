"""Store: the durable memory of publishers. Private; nothing in it is for the world."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import sqlalchemy as sa

from reticent.errors import PolicyError, StateError
from reticent.release import Counts, Ledger, LedgerEntry
from reticent.store import database, lock, rewriting, schema
from reticent.store.transaction import Transaction
from reticent.store.values import DeadLetter, OutboxEntry, Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

# An arbitrary number that all versions of Reticent share: it keeps two of them from making the tables at once.
_MAKING = 7_265_746_963
_NUMBERS = 1_000
_HOUSE = "house"


class Store:
    """What publishers remember; open it with `Store.open`, use it as a context manager.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Store.open(f"{folder}/store.db") as store:
    ...     store.register("feed", policy_hash="abc")
    ...     with store.lock("feed"), store.transaction() as tx:
    ...         number = tx.put_outbox("feed", "stream", b"released", position="line 12")
    ...     [entry.payload for entry in store.unsent("feed")], store.position("feed")
    ([b'released'], 'line 12')
    """

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._owners: dict[str, str] = {}

    @classmethod
    def open(cls, where: str | os.PathLike[str], *, create: bool = True) -> Self:
        """Open the store at a path, a `sqlite:///` URL or a `postgresql://` URL.

        Args:
            where: the place.
            create: make the store when it is not there; otherwise its absence is an error.

        Raises:
            StateError: it cannot be reached, is damaged, is not a store, or is of another version.
        """
        engine = database.connect(where, create=create)
        store = cls(engine)
        try:
            store._make(create=create)
        except BaseException:
            engine.dispose()
            raise
        return store

    @classmethod
    def exists(cls, where: str | os.PathLike[str]) -> bool:
        """Whether a store is there; looking makes nothing."""
        try:
            cls.open(where, create=False).close()
        except StateError:
            return False
        return True

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Store({database.show(self._engine)})"

    # Publishers

    def register(self, publisher: str, *, policy_hash: str, secret: bytes | None = None) -> None:
        """Make a publisher known, with a secret key of its own; again under the same policy does nothing.

        Args:
            publisher: its name.
            policy_hash: the policy it works under for life.
            secret: its key, when its first release was made before the store; 32 random bytes otherwise.

        Raises:
            StateError: the publisher is known under another policy.
        """
        with self._writing() as connection:
            fresh = {
                "owner": "",
                "position": None,
                "next_number": 0,
                "next_part": 0,
                "secret": secret or os.urandom(32),
            }
            write = database.insert(connection, schema.publishers)
            connection.execute(
                write.values(publisher=publisher, policy_hash=policy_hash, **fresh).on_conflict_do_nothing()
            )
        if self._publisher(publisher).policy_hash != policy_hash:
            raise StateError(
                f"{publisher!r} was begun under another policy.",
                hint="Go on with the policy it was begun under, or use a new store.",
            )

    def publishers(self) -> tuple[str, ...]:
        """The names of all publishers."""
        with self._reading() as connection:
            return tuple(connection.execute(sa.select(schema.publishers.c.publisher).order_by("publisher")).scalars())

    def policy_hash(self, publisher: str) -> str:
        """The hash of the policy the publisher was begun under."""
        return str(self._publisher(publisher).policy_hash)

    def key(self, publisher: str) -> bytes:
        """The publisher's secret key of 32 bytes, made once; it never leaves the private side."""
        return bytes(self._publisher(publisher).secret)

    def house(self, digest: str, *, key: bytes | None = None) -> bytes:
        """The key that all veiled publications of this store share; made once, and never rotated.

        Args:
            digest: of what the key pins: l, prior, kernel, domain and orders.
            key: to be pinned where there is none yet; 32 random bytes otherwise.

        Raises:
            PolicyError: the key is pinned to something else: two veils of one truth would reveal it.
        """
        stored = self.get(_HOUSE, _HOUSE, "key")
        if stored is None:
            with self.transaction() as tx:
                stored = tx.get(_HOUSE, _HOUSE, "key")
                if stored is None:
                    stored = digest.encode() + b" " + (key or os.urandom(32))
                    tx.put(_HOUSE, _HOUSE, "key", stored)
        pinned, _, secret = stored.partition(b" ")
        if pinned != digest.encode() or (key is not None and key != secret):
            raise PolicyError(
                "This store's veil has another l, prior, kernel or domain than the policy: a second veil over the same truth "
                "would reveal it.",
                hint="Go on with the policy and the prior that the store was begun with.",
            )
        return secret

    @contextlib.contextmanager
    def lock(self, publisher: str, *, wait: float = 0.0) -> Iterator[None]:
        """Be the only writer of a publisher, over all processes; wait at most `wait` seconds to become it.

        Raises:
            StateError: another one is, or the publisher is unknown.
        """
        self._publisher(publisher)
        with lock.held(self._engine, publisher, wait):
            owner = secrets.token_hex(16)
            with self._writing() as connection:
                table = schema.publishers
                connection.execute(sa.update(table).where(table.c.publisher == publisher).values(owner=owner))
            self._owners[publisher] = owner
            try:
                yield
            finally:
                self._owners.pop(publisher, None)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Change the store: when the block ends, all of it is on disk; when it raises, none of it is."""
        with self._writing() as connection:
            transaction = Transaction(connection, self._owners)
            yield transaction
            transaction.flush()

    # Reading

    def position(self, publisher: str) -> str | None:
        """Where the input stood after the last commit; None at the beginning."""
        position = self._publisher(publisher).position
        return None if position is None else str(position)

    def snapshot(self, publisher: str) -> Snapshot | None:
        """The state to go on from; None at the beginning."""
        table = schema.snapshots.c
        query = sa.select(table.payload).where(table.publisher == publisher).order_by(table.part)
        with self._reading() as connection:
            whole = Transaction(connection, {}).get(publisher, rewriting.SPACE, rewriting.IN_USE)
            if whole is not None:
                parts = rewriting.stored(connection, publisher, whole)
            else:
                parts = [bytes(part) for part in connection.execute(query).scalars()]
        return Snapshot(parts[0], tuple(parts[1:])) if parts else None

    def unsent(self, publisher: str) -> Iterator[OutboxEntry]:
        """The batches that no sink has confirmed, in order; one at a time, whatever their number."""
        yield from self._entries(publisher, schema.outbox.c.sent.is_(False))

    def outbox(self, publisher: str, *, after: int = -1) -> Iterator[OutboxEntry]:
        """All kept batches with a number above `after`, in order."""
        yield from self._entries(publisher, schema.outbox.c.number > after)

    def mark_sent(self, publisher: str, number: int) -> None:
        """Note in a transaction of its own that the sinks have every batch up to and including `number`."""
        with self.transaction() as transaction:
            transaction.mark_sent(publisher, number)

    def ledger(self, publisher: str) -> Ledger:
        """What the world has seen of whom, publication by publication."""
        ledger = Ledger()
        query = sa.select(schema.ledger).where(schema.ledger.c.publisher == publisher).order_by("number")
        with self._reading() as connection:
            for row in connection.execute(query):
                counts = Counts(**json.loads(row.counts))
                entry = LedgerEntry(row.number, row.time, row.policy_hash, row.method, counts, row.digest)
                ledger.record(entry, np.frombuffer(row.persons, "<u8"), np.frombuffer(row.groups, "<i8"))
        return ledger

    def dead_letters(self, publisher: str) -> list[DeadLetter]:
        """The records that could not be released, in order."""
        table = schema.dead_letters.c
        query = sa.select(table.position, table.reason, table.payload)
        with self._reading() as connection:
            rows = connection.execute(query.where(table.publisher == publisher).order_by(table.id)).all()
        return [DeadLetter(row.position, row.reason, bytes(row.payload)) for row in rows]

    def get(self, publisher: str, space: str, key: str) -> bytes | None:
        """A value of the engine's or the service's own."""
        with self._reading() as connection:
            return Transaction(connection, {}).get(publisher, space, key)

    def items(self, publisher: str, space: str) -> dict[str, bytes]:
        """All values of one space, by key."""
        table = schema.kv.c
        query = sa.select(table.key, table.value).where(table.publisher == publisher, table.space == space)
        with self._reading() as connection:
            return {row.key: bytes(row.value) for row in connection.execute(query.order_by(table.key))}

    def read(self, query: sa.Select[Any]) -> list[tuple[Any, ...]]:
        """The rows of an engine's own table."""
        with self._reading() as connection:
            return [tuple(row) for row in connection.execute(query)]

    # Inside

    def _entries(self, publisher: str, which: sa.ColumnElement[bool]) -> Iterator[OutboxEntry]:
        # A few numbers at a time: what a page costs must not grow with what lies behind it.
        table, last = schema.outbox.c, -1
        while True:
            query = sa.select(table.number).where(table.publisher == publisher, which, table.number > last)
            with self._reading() as connection:
                numbers = connection.execute(query.order_by(table.number).limit(_NUMBERS)).scalars().all()
            for number in numbers:
                last, row = number, self._entry(publisher, number)
                if row is not None:
                    yield OutboxEntry(row.number, row.kind, bytes(row.payload), row.position)
            if len(numbers) < _NUMBERS:
                return

    def _entry(self, publisher: str, number: int) -> sa.Row[Any] | None:
        table = schema.outbox.c
        query = sa.select(schema.outbox).where(table.publisher == publisher, table.number == number)
        with self._reading() as connection:
            return connection.execute(query).one_or_none()

    def _publisher(self, publisher: str) -> sa.Row[Any]:
        with self._reading() as connection:
            query = sa.select(schema.publishers).where(schema.publishers.c.publisher == publisher)
            row = connection.execute(query).one_or_none()
        if row is None:
            raise StateError(f"The store knows no {publisher!r}.", hint="Check the name, or begin it first.")
        return row

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        with database.errors(self._engine), self._engine.connect() as connection:
            yield connection

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        with database.errors(self._engine), self._engine.connect() as plain:
            connection = plain.execution_options(writes=True)
            with connection.begin():
                yield connection

    def _make(self, *, create: bool) -> None:
        with self._writing() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MAKING)))
            tables = sa.inspect(connection).get_table_names()
            if schema.meta.name not in tables:
                self._make_tables(connection, tables, create=create)
            version = connection.execute(sa.select(schema.meta.c.value).where(schema.meta.c.name == "schema")).scalar()
        if version != str(schema.VERSION):
            raise StateError(
                f"{self!r} has schema {version}, this version of Reticent reads {schema.VERSION}.",
                hint="Use the version that made the store, or a new store.",
            )

    def _make_tables(self, connection: sa.Connection, tables: list[str], *, create: bool) -> None:
        # A PostgreSQL database may be shared; an SQLite file with other tables is somebody else's.
        if not create or (tables and connection.dialect.name == "sqlite"):
            raise StateError(f"{self!r} is not a store of Reticent.", hint="Check the path, or create a store first.")
        schema.metadata.create_all(connection)
        connection.execute(sa.insert(schema.meta).values(name="schema", value=str(schema.VERSION)))
