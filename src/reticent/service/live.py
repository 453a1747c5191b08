"""A stream that is running: its engine, its journal, and the keys of the batches it has released.

One transaction holds the released lines, the change of the state and the key of the batch. A batch that comes again
with its key gets the stored lines again: to place it anew would be a second publication of the same people.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import OrderedDict, deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from reticent.connectors.runner.wire import Wire, record_lines
from reticent.engine import publisher, publisher_class
from reticent.engine.rng import Rng
from reticent.engine.stream.castle import Castle
from reticent.engine.stream.immediate import Immediate
from reticent.engine.stream.records import Records
from reticent.errors import StateError
from reticent.service import wire
from reticent.service.meter import Meter
from reticent.service.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from reticent.policy import Policy
    from reticent.store import Store, Transaction

KEYS = "key"
# A journal is replayed at a million records a second; a snapshot of a large stream takes a fraction of one.
_JOURNAL = 16 << 20
# Batches whose keys are remembered; at a batch a second a feed may retry for a day.
_REMEMBERED = 100_000
_SHOWN = 20


@dataclass(frozen=True, repr=False)
class Pushed:
    """The answer to a batch: where it stands in the stream, its lines, and whether they were stored before."""

    number: int
    lines: bytes
    rows: int
    held: int = 0
    replayed: bool = False


class LiveStream:
    """One stream; all methods but the readers run on the writer's thread."""

    def __init__(self, name: str, policy: Policy, store: Store) -> None:
        self.name = name
        self.policy = policy
        self.publisher = f"stream:{name}"
        self.meter = Meter()
        self.latest: deque[bytes] = deque(maxlen=_SHOWN)
        self.heard: list[Callable[[], None]] = []
        self.cursor = -1
        self._store = store
        self._engine: Immediate | Castle | None = None
        self._wire = Wire(policy, ())
        self._keys: OrderedDict[str, tuple[int, str, int]] = OrderedDict()
        self._journalled = 0
        self._labels = 0

    @staticmethod
    def probe(policy: Policy) -> None:
        """Refuses a policy under which no stream can run."""
        publisher(policy, "stream", policy.stream.method, rng=Rng.fresh())

    @property
    def engine(self) -> Immediate | Castle:
        """The engine, built from the store when it is not in memory."""
        if self._engine is None:
            self._engine = self._restored()
        return self._engine

    def _restored(self) -> Immediate | Castle:
        method = self.policy.stream.method
        kept = self._store.snapshot(self.publisher)
        if kept is None:
            engine = publisher(self.policy, "stream", method, rng=Rng(self._store.key(self.publisher)))
        else:
            engine = publisher_class("stream", method).restore(self.policy, kept.payload)
        if not isinstance(engine, Immediate | Castle):
            raise StateError("The policy's stream method cannot run here.", hint="Use sealed, delay-free or castle.")
        for delta in kept.deltas if kept is not None and isinstance(engine, Immediate) else ():
            assert isinstance(engine, Immediate)  # noqa: S101 - only these keep a journal
            engine.replay(Records.from_bytes(delta))
        self._journalled = sum(map(len, kept.deltas)) if kept is not None else _JOURNAL
        self._labels = len(engine.values) if isinstance(engine, Immediate) else 0
        self._wire = Wire(self.policy, ())
        found = {key: json.loads(value) for key, value in self._store.items(self.publisher, KEYS).items()}
        self._keys = OrderedDict(sorted(((k, tuple(v)) for k, v in found.items()), key=lambda pair: pair[1][2]))
        self.cursor = max([self.cursor, *(number for number, _, _ in self._keys.values())])
        return engine

    def drop(self) -> None:
        """Forgets everything in memory."""
        self._engine = None

    # Pushing

    def replay(self, key: str | None, digest: str) -> Pushed | None:
        """The stored answer to a batch that came before."""
        self.engine  # noqa: B018 - reads the keys
        if key is None or key not in self._keys:
            return None
        number, known, _ = self._keys[key]
        if known != digest:
            raise Problem(409, "key", "This idempotency key was used for another batch.", "Use a new key per batch.")
        if number < 0:
            return Pushed(number, b"", 0, replayed=True)
        entry = next(iter(self._store.outbox(self.publisher, after=number - 1)), None)
        if entry is None or entry.number != number:
            raise Problem(410, "key", "The released lines of this batch are no longer kept.", "Do not send it again.")
        return Pushed(number, entry.payload, 0, replayed=True)

    def read(self, table: pa.Table) -> Records | None:
        """A batch as the engine takes it; a batch that cannot be released is refused here."""
        return self.engine.read(table) if isinstance(self.engine, Immediate) else None

    def push(self, tx: Transaction, table: pa.Table, records: Records | None, key: str | None, digest: str) -> Pushed:
        """Releases a batch within a transaction."""
        engine = self.engine
        if isinstance(engine, Immediate):
            done = self._place(tx, engine, table, records or engine.read(table))
        else:
            done = self._hold(tx, engine, table)
        if key is not None:
            self._remember(tx, key, done.number, digest)
        return done

    def _place(self, tx: Transaction, engine: Immediate, table: pa.Table, records: Records) -> Pushed:
        # A batch that was refused halfway may have taught the engine labels; they go into this journal entry.
        records = replace(records, labels=tuple(engine.values.labels[self._labels :]))
        self._labels = len(engine.values)
        lines = self._wire.lines(table, records, engine.place(records), engine.values)
        journal = records.to_bytes()
        self._journalled += len(journal)
        if self._journalled > _JOURNAL:
            tx.put_snapshot(self.publisher, engine.snapshot())
            self._journalled = 0
        else:
            tx.append_delta(self.publisher, journal)
        return Pushed(tx.put_outbox(self.publisher, "ndjson", lines), lines, len(records))

    def _hold(self, tx: Transaction, engine: Castle, table: pa.Table) -> Pushed:
        lines = record_lines(engine.push(table), self.policy, ())
        tx.put_snapshot(self.publisher, engine.snapshot())
        number = tx.put_outbox(self.publisher, "ndjson", lines) if lines else -1
        # What is released now belongs to earlier batches, perhaps of other feeds: readers get it, the sender does not.
        return Pushed(number, b"", table.num_rows, held=engine.counts.held)

    def _remember(self, tx: Transaction, key: str, number: int, digest: str) -> None:
        number = number if isinstance(self.engine, Immediate) else -1
        order = next(reversed(self._keys.values()))[2] + 1 if self._keys else 0
        self._keys[key] = (number, digest, order)
        tx.put(self.publisher, KEYS, key, json.dumps(self._keys[key]).encode())
        while len(self._keys) > _REMEMBERED:
            tx.delete(self.publisher, KEYS, self._keys.popitem(last=False)[0])

    def settled(self, done: Pushed, began: float) -> None:
        """Notes what is on disk now, and wakes those who follow the stream."""
        if not done.replayed:
            self.meter.add(done.rows, time.perf_counter() - began)
            self.cursor = max(self.cursor, done.number)
            self.latest.extend(done.lines[-4000:].splitlines()[-_SHOWN:] if done.lines else ())
        for wake in tuple(self.heard):
            wake()

    def status(self) -> dict[str, Any]:
        """What an operator watches; nothing of it is private."""
        engine, counts = self._engine, None
        if engine is not None:
            counts = engine.counts
        return {
            "name": self.name,
            "method": self.policy.stream.method,
            "rows_in": counts.rows_in if counts else 0,
            "published": counts.published if counts else 0,
            "held": counts.held if counts else 0,
            "suppressed": counts.suppressed if counts else 0,
            "cursor": self.cursor,
            "metrics": engine.metrics() if engine is not None and counts and counts.rows_in else {},
            "guarantee": dict(engine.guarantee.claims) if engine is not None else {},
            "against": engine.guarantee.against if engine is not None else "",
            "not_covered": list(engine.guarantee.not_covered) if engine is not None else [],
        } | self.meter.read()


class PushStep:
    """A batch on its way through the writer."""

    def __init__(self, stream: LiveStream, body: bytes, kind: str, key: str | None) -> None:
        self._stream, self._body, self._kind, self._key = stream, body, kind, key
        self._digest = hashlib.blake2b(body, digest_size=16).hexdigest()
        self._began = time.perf_counter()
        self._known: Pushed | None = None
        self._table: pa.Table | None = None
        self._records: Records | None = None
        self._done: Pushed | None = None

    def check(self) -> None:
        """Reads the batch; an engine refuses it here, before anything is placed."""
        self._known = self._stream.replay(self._key, self._digest)
        if self._known is None:
            self._table = wire.records(self._body, self._kind, self._stream.policy)
            self._records = self._stream.read(self._table)

    def apply(self, tx: Transaction) -> Pushed:
        """Releases it, unless it was released before."""
        assert self._known or self._table is not None  # noqa: S101 - check comes first
        self._done = self._known or self._stream.push(tx, self._table, self._records, self._key, self._digest)
        return self._done

    def settled(self) -> None:
        """On disk."""
        if self._done is not None:
            self._stream.settled(self._done, self._began)

    def drop(self) -> None:
        """The engine may be ahead of the store."""
        self._stream.drop()

