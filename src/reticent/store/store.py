"""Store: the durable, private state of publishers. Nothing in it is published."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
import sqlalchemy as sa

from reticent.errors import PolicyError, StateError
from reticent.release import Ledger, LedgerEntry, RecordCounts
from reticent.store import database, integrity, opening, schema, snapshot_writer
from reticent.store.integrity import Head, Seal, corrupt_error
from reticent.store.keys import Key
from reticent.store.rollback_marker import RollbackMarker
from reticent.store.transaction import DeadLetter, OutboxEntry, Snapshot, Transaction

_PAGE_SIZE = 1_000
_VEIL_KEY = "veil_key"
_FIRST_DIGEST = "first"
_UNBOUND = "loose"
_ROW = database.select_rows(schema.publishers, "publisher = :of")
_LEDGER = database.select_rows(schema.ledger, "publisher = :of ORDER BY number")
_NEXT = sa.text(
    f"SELECT number FROM {schema.outbox.name} WHERE publisher = :of AND number > :last ORDER BY number LIMIT :most"  # noqa: S608 - no user input
)


def bind_veil_key(tx: Transaction, digest: str) -> None:
    """Pin the veil parameters to the store permanently, in the transaction that publishes with them.

    Raises:
        StateError: another process has pinned other parameters meanwhile.
    """
    if tx.get(_VEIL_KEY, _VEIL_KEY, digest) is None:
        raise StateError("Another process has set other veil parameters in this store.", hint="Run the command again.")
    if tx.get(_VEIL_KEY, _VEIL_KEY, _UNBOUND) == digest.encode():
        tx.delete(_VEIL_KEY, _VEIL_KEY, _UNBOUND)


class Store:
    """The state of publishers on disk. Open it with `Store.open` and use it as a context manager.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Store.open(f"{folder}/store.db") as store:
    ...     store.register("feed", policy_hash="abc")
    ...     with store.lock("feed"), store.transaction() as tx:
    ...         number = tx.put_outbox("feed", "stream", b"released", position="line 12")
    ...     [entry.payload for entry in store.iter_undelivered_batches("feed")], store.position("feed")
    ([b'released'], 'line 12')
    """

    def __init__(
        self, engine: sa.Engine, seal: Seal, head: Head, rollback_marker: RollbackMarker | None = None
    ) -> None:
        self.engine = engine
        self.seal, self.head, self._rollback_marker = seal, head, rollback_marker
        self._owners: dict[str, str] = {}

    @classmethod
    def open(
        cls, where: str | os.PathLike[str], *, create: bool = True, key: Key | None = None, allow_moved: bool = False
    ) -> Self:
        """Open the store at a path, a `sqlite:///` URL or a `postgresql://` URL.

        Args:
            where: the path or URL.
            create: create the store if it does not exist; otherwise its absence is an error.
            key: the key of an encrypted store; by default the key from the environment.
            allow_moved: allow a database that was restored from a backup; for the restore itself.

        Raises:
            StateError: the store cannot be reached, is corrupt, is not a store, or has another version.
        """
        path, key = database.file_of(where), key or Key.from_environment()
        if path is not None:
            opening.prepare_file(path, create=create, key=key, link=database.link_of(where))
        engine = database.connect(where)
        try:
            return cls(engine, *opening.open_and_check(engine, path, create=create, key=key, allow_moved=allow_moved))
        except BaseException:
            engine.dispose()
            raise

    @classmethod
    def exists(cls, where: str | os.PathLike[str]) -> bool:
        """Whether a store exists, intact or not. Creates nothing."""
        path = database.file_of(where)
        if path is not None:
            return path.exists()
        try:
            cls.open(where, create=False).close()
        except StateError:
            return False
        return True

    @classmethod
    def is_encrypted(cls, where: str | os.PathLike[str]) -> bool:
        """Whether an existing store needs a key."""
        path = database.file_of(where)
        if path is not None:
            opening.prepare_file(path, create=False)
        engine = database.connect(where)
        try:
            with database.translate_errors(engine), engine.connect() as connection:
                return integrity.is_encrypted(connection)
        finally:
            engine.dispose()

    def adopt(self, seal: Seal) -> None:
        """Use another seal from now on, after the key was changed."""
        self.seal = seal
        if self._rollback_marker is not None:
            self._rollback_marker.note(self.head, seal)

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()
        if self._rollback_marker is not None:
            self._rollback_marker.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Store({database.display_name(self.engine)})"

    allow_several_veil_keys = False
    """Whether the store may have several veil keys, as on a server: the ledger keeps each person under one of them."""

    # Publishers

    def register(self, publisher: str, *, policy_hash: str, secret: bytes | None = None) -> None:
        """Register a publisher with a secret key of its own. Does nothing if it is registered with the same policy.

        Args:
            publisher: its name.
            policy_hash: the hash of its policy, which never changes.
            secret: its key, if its first release was made before the store; otherwise 32 random bytes.

        Raises:
            StateError: the publisher is registered with another policy.
        """
        with database.write_transaction(self.engine) as connection:
            fresh = {
                "owner": "",
                "position": None,
                "next_number": 0,
                "next_part": 0,
                "first_number": 0,
                "next_unsent": 0,
                "entries": 0,
                "chain": b"",
                "secret": secret or os.urandom(32),
            }
            row = {"publisher": publisher, "policy_hash": policy_hash, **fresh}
            write = database.insert(connection.dialect.name, schema.publishers)
            connection.execute(write.values(self.seal.seal_row(schema.publishers, row)).on_conflict_do_nothing())
        if self.publisher_row(publisher)["policy_hash"] != policy_hash:
            raise StateError(
                f"{publisher!r} was started with another policy.",
                hint="Use its first policy. To publish with another policy, start a publication with another name.",
            )

    def publishers(self) -> tuple[str, ...]:
        """Return the names of all publishers."""
        with self._connect() as connection:
            return tuple(connection.execute(sa.select(schema.publishers.c.publisher).order_by("publisher")).scalars())

    def policy_hash(self, publisher: str) -> str:
        """Return the hash of the publisher's policy."""
        return str(self.publisher_row(publisher)["policy_hash"])

    def key(self, publisher: str) -> bytes:
        """Return the publisher's secret key of 32 bytes. It is created once and never published."""
        return bytes(self.publisher_row(publisher)["secret"])

    def veil_key(self, digest: str, *, key: bytes | None = None, binding: bool = True) -> bytes:
        """Return the key that all veiled publications with the same parameters share. It is created once and never rotated.

        Args:
            digest: the digest of the veil parameters: l, prior, kernel, domain and value orders.
            key: the key to pin if there is none yet; otherwise 32 random bytes.
            binding: whether to pin a new key permanently at once; otherwise `bind_veil_key` does so with the publication.

        Raises:
            PolicyError: the store's key belongs to other parameters: two veils of one true value would disclose it.
        """
        secret = self.get(_VEIL_KEY, _VEIL_KEY, digest)
        # Read a pinned key without a transaction: the caller may be inside one.
        if secret is None or (binding and self.get(_VEIL_KEY, _VEIL_KEY, _UNBOUND) == digest.encode()):
            with self.transaction() as tx:
                secret = self._pin_veil_key(tx, digest, key, binding=binding)
        if secret is None or (key is not None and key != secret):
            raise PolicyError(
                "The policy has another l, prior, kernel, value domain or household than the veil of this store. A second veil of the "
                "same people would disclose their values.",
                hint="Use the policy and the prior of the store's first release.",
            )
        return secret

    def _pin_veil_key(self, tx: Transaction, digest: str, key: bytes | None, *, binding: bool) -> bytes | None:
        first, secret = tx.get(_VEIL_KEY, _VEIL_KEY, _FIRST_DIGEST), tx.get(_VEIL_KEY, _VEIL_KEY, digest)
        unbound = tx.get(_VEIL_KEY, _VEIL_KEY, _UNBOUND)
        if secret is None and first is not None and first == unbound and not self.allow_several_veil_keys:
            # Nothing was published with this key, because its publication was refused.
            tx.delete(_VEIL_KEY, _VEIL_KEY, first.decode())
            first = None
        if secret is None and (first is None or self.allow_several_veil_keys):
            secret = key or os.urandom(32)
            tx.put(_VEIL_KEY, _VEIL_KEY, digest, secret)
            tx.put(_VEIL_KEY, _VEIL_KEY, _FIRST_DIGEST, first or digest.encode())
            if not binding and first is None:
                tx.put(_VEIL_KEY, _VEIL_KEY, _UNBOUND, digest.encode())
        if binding and secret is not None:
            bind_veil_key(tx, digest)
        return secret

    @contextlib.contextmanager
    def lock(self, publisher: str, *, wait: float = 0.0) -> Iterator[None]:
        """Become the only writer of a publisher over all processes. Wait at most `wait` seconds.

        Raises:
            StateError: another process is the writer, or the publisher is unknown.
        """
        self.publisher_row(publisher)
        with database.hold_lock(self.engine, publisher, wait):
            owner = secrets.token_hex(16)
            with database.write_transaction(self.engine) as connection:
                table = schema.publishers
                connection.execute(sa.update(table).where(table.c.publisher == publisher).values(owner=owner))
            self._owners[publisher] = owner
            try:
                yield
            finally:
                self._owners.pop(publisher, None)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Change the store. At the end of the block all changes are on disk; if the block raises, none is."""
        with database.write_transaction(self.engine) as connection:
            transaction = Transaction(connection, self._owners, self.seal)
            yield transaction
            transaction.flush()
            if self._rollback_marker is not None:
                self.head = integrity.read_head(connection, self.seal).next()
                integrity.write_head(connection, self.head, self.seal)
        if self._rollback_marker is not None:
            self._rollback_marker.note(self.head, self.seal)

    # Reading

    def position(self, publisher: str) -> str | None:
        """Return the input position after the last commit, or None at the beginning."""
        position = self.publisher_row(publisher)["position"]
        return None if position is None else str(position)

    def snapshot(self, publisher: str) -> Snapshot | None:
        """Return the stored state, or None at the beginning."""
        row = self._find_publisher(publisher)
        if row is None:
            return None
        with self._connect() as connection:
            whole = Transaction(connection, {}, self.seal).get(publisher, snapshot_writer.SPACE, snapshot_writer.IN_USE)
            last = -1
            parts: list[bytes] = []
            if whole is not None:
                state, last = snapshot_writer.read_pieces(connection, publisher, whole, self.seal)
                parts.append(state)
            parts += self._parts(connection, publisher, last)
        if last + 1 + len(parts) - (whole is not None) != row["next_part"]:
            raise corrupt_error(f"The state of {publisher!r}")
        return Snapshot(parts[0], tuple(parts[1:])) if parts else None

    def _parts(self, connection: sa.Connection, publisher: str, last: int) -> list[bytes]:
        table = schema.snapshots.c
        query = sa.select(schema.snapshots).where(table.publisher == publisher, table.part > last).order_by(table.part)
        rows = connection.execute(query).mappings().all()
        return [bytes(self.seal.open_row(schema.snapshots, row)["payload"]) for row in rows]

    def iter_undelivered_batches(self, publisher: str) -> Iterator[OutboxEntry]:
        """Yield the batches that no sink has confirmed, in order."""
        yield from self._iter_entries(publisher, None)

    def outbox(self, publisher: str, *, after: int = -1) -> Iterator[OutboxEntry]:
        """Yield all kept batches with a number above `after`, in order."""
        yield from self._iter_entries(publisher, after)

    def ledger(self, publisher: str) -> Ledger:
        """Return the ledger of a publisher: the persons of each group in each publication."""
        ledger = Ledger()
        with self._connect() as connection:
            row = self._read_publisher_row(connection, publisher)
            lines = connection.execute(_LEDGER, {"of": publisher}).mappings().all()
        for line in (self.seal.open_row(schema.ledger, line) for line in lines):
            counts = RecordCounts(**json.loads(line["records"]))
            entry = LedgerEntry(
                line["number"], line["time"], line["policy_hash"], line["method"], counts, line["payload_digest"]
            )
            ledger.record(entry, np.frombuffer(line["persons"], "<u8"), np.frombuffer(line["groups"], "<i8"))
        if len(ledger) != (0 if row is None else row["entries"]):
            raise corrupt_error(f"The ledger of {publisher!r}")
        return ledger

    def dead_letters(self, publisher: str) -> list[DeadLetter]:
        """Return the records that could not be released, in order."""
        table = schema.dead_letters
        rows = self.rows(table, table.c.publisher == publisher, order_by=table.c.id)
        return [DeadLetter(row["position"], row["reason"], bytes(row["payload"])) for row in rows]

    def get(self, publisher: str, space: str, key: str) -> bytes | None:
        """Return a value of an engine or the service, or None."""
        with self._connect() as connection:
            return Transaction(connection, {}, self.seal).get(publisher, space, key)

    def items(self, publisher: str, space: str) -> dict[str, bytes]:
        """Return all values of a space, by key."""
        table = schema.kv.c
        which = sa.and_(table.publisher == publisher, table.space == space)
        return {row["key"]: bytes(row["value"]) for row in self.rows(schema.kv, which, order_by=table.key)}

    def read(self, query: sa.Select[Any]) -> list[tuple[Any, ...]]:
        """Return the rows of a query, without checking digests."""
        with self._connect() as connection:
            return [tuple(row) for row in connection.execute(query)]

    def rows(
        self, table: sa.Table, which: sa.ColumnElement[bool], *, order_by: sa.ColumnElement[Any]
    ) -> list[Mapping[Any, Any]]:
        """Return whole rows of a table, each checked and decrypted."""
        return self.query_rows(table, sa.select(table).where(which).order_by(order_by))

    def query_rows(self, table: sa.Table, query: sa.Executable, **values: Any) -> list[Mapping[Any, Any]]:
        """Return whole rows of a table by a query, such as one from `database.select_rows`."""
        with self._connect() as connection:
            rows = connection.execute(query, values).mappings().all()
        return [self.seal.open_row(table, row) for row in rows]

    @property
    def epoch(self) -> str:
        """The store's id and epoch."""
        return self.head.epoch_name

    @property
    def population_key(self) -> bytes:
        """The key of the population ledger: a person has the same hash in every publication of this store."""
        return self.seal.permanent.digest("population", []) * 2

    # Inside

    def _iter_entries(self, publisher: str, last: int | None) -> Iterator[OutboxEntry]:
        # Read a page of numbers at a time: its cost must not grow with the length of the outbox.
        while True:
            numbers = self._numbers(publisher, last)
            for number in numbers:
                last, row = number, self._entry(publisher, number)
                if row is not None:
                    yield OutboxEntry(row["number"], row["kind"], bytes(row["payload"]), row["position"])
            if len(numbers) < _PAGE_SIZE:
                return

    def _numbers(self, publisher: str, last: int | None) -> list[int]:
        """Return the next numbers of the outbox; with `last=None` the unsent ones. A missing number means a corrupt store."""
        with self._connect() as connection:
            row = self._read_publisher_row(connection, publisher)
            if row is None:
                return []
            last = row["next_unsent"] - 1 if last is None else last
            numbers = list(connection.execute(_NEXT, {"of": publisher, "last": last, "most": _PAGE_SIZE}).scalars())
        if self.engine.dialect.name == "sqlite":  # both queries read the same snapshot
            first = max(last + 1, row["first_number"])
            if numbers != list(range(first, min(first + _PAGE_SIZE, row["next_number"]))):
                raise corrupt_error(f"What {publisher!r} has released")
        return numbers

    def _entry(self, publisher: str, number: int) -> Mapping[Any, Any] | None:
        table = schema.outbox.c
        which = sa.and_(table.publisher == publisher, table.number == number)
        return next(iter(self.rows(schema.outbox, which, order_by=table.number)), None)

    def _find_publisher(self, publisher: str) -> Mapping[Any, Any] | None:
        with self._connect() as connection:
            return self._read_publisher_row(connection, publisher)

    def _read_publisher_row(self, connection: sa.Connection, publisher: str) -> Mapping[Any, Any] | None:
        row = connection.execute(_ROW, {"of": publisher}).mappings().one_or_none()
        return None if row is None else self.seal.open_row(schema.publishers, row)

    def publisher_row(self, publisher: str) -> Mapping[Any, Any]:
        """Return the row of a publisher."""
        row = self._find_publisher(publisher)
        if row is None:
            raise StateError(f"The store has no publication {publisher!r}.", hint="Check the name, or create it first.")
        return row

    @contextlib.contextmanager
    def _connect(self) -> Iterator[sa.Connection]:
        with database.translate_errors(self.engine), self.engine.connect() as connection:
            yield connection
