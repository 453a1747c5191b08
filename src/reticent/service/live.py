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
from itertools import islice
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
from reticent.service.keeping import Keeping
from reticent.service.meter import Meter
from reticent.service.problems import ServiceError
from reticent.store import Rewriting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reticent.policy import Policy
    from reticent.store import Store, Transaction

KEYS = "key"
# A journal this long, or as long as the state itself, is replaced by the state; it is replayed at a million records a second.
_JOURNAL = 16 << 20
# Batches whose keys are remembered; at a batch a second a feed may retry for a day.
_REMEMBERED = 100_000
_SHOWN = 20
_LOOK = 0.25


@dataclass(repr=False)
class Pushed:
    """The answer to a batch: its lines, and where they stand in the stream once they are on disk."""

    lines: bytes
    rows: int
    number: int = -1
    held: int = 0
    replayed: bool = False
    seconds: float = 0.0


@dataclass(frozen=True, repr=False)
class _Seen:
    """A batch by its key: what it was, and where its lines are in which entry of the outbox."""

    digest: str
    start: int
    length: int
    number: int = -1
    pushed: Pushed | None = None
    """The batch itself, until the group it belongs to is on disk."""


class LiveStream:
    """One stream; all methods but the readers run on the writer's thread."""

    def __init__(self, name: str, policy: Policy, store: Store, *, keep_days: float | None = None) -> None:
        self.name = name
        self.policy = policy
        self.publisher = f"stream:{name}"
        self.meter = Meter()
        self.keeping = Keeping(self.publisher, keep_days)
        self.latest: deque[bytes] = deque(maxlen=_SHOWN)
        self.heard: list[Callable[[], None]] = []
        self.cursor = -1
        self._store = store
        self._engine: Immediate | Castle | None = None
        self._wire = Wire(policy, ())
        self._keys: OrderedDict[str, _Seen] = OrderedDict()
        self._group: list[tuple[str | None, _Seen, bytes]] = []
        self._released: list[bytes] = []
        self._length = 0
        self._figures: dict[str, float] = {}
        self._looked = -_LOOK
        self._journalled = 0
        self._whole = 0
        self._part = -1
        self._rewriting: Rewriting | None = None
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
        for delta in kept.deltas if kept is not None else ():
            for entry in _split(delta):
                engine.replay(Records.from_bytes(entry))  # type: ignore[union-attr] # only Immediate keeps a journal
        self._journalled = sum(map(len, kept.deltas)) if kept is not None else 0
        self._whole = len(kept.payload) if kept is not None else 0
        self._part, self._rewriting = -1, None
        self._labels = len(engine.values) if isinstance(engine, Immediate) else 0
        self._wire = Wire(self.policy, ())
        self._group, self._released, self._length = [], [], 0
        self._keys = self._known_keys()
        self.keeping.load(self._store)
        self._figures = engine.metrics() if engine.counts.rows_in else {}
        self.cursor = max([self.cursor, *(seen.number for seen in self._keys.values())])
        return engine

    def _known_keys(self) -> OrderedDict[str, _Seen]:
        """The keys by entry of the outbox, the oldest first."""
        found: OrderedDict[str, _Seen] = OrderedDict()
        rows = sorted((int(number), value) for number, value in self._store.items(self.publisher, KEYS).items())
        for number, value in rows:
            for key, (digest, start, length) in json.loads(value).items():
                found[key] = _Seen(digest, start, length, number)
        return found

    def begin(self, tx: Transaction) -> None:
        """Builds the engine, and stores the state of a stream that has none yet: neither is left to the first batch."""
        engine = self.engine
        if not self._whole:
            state = engine.snapshot()
            tx.put_snapshot(self.publisher, state)
            self._whole = len(state)

    def drop(self) -> None:
        """Forgets everything in memory."""
        self._engine = None

    # Pushing

    def replay(self, key: str | None, digest: str) -> Pushed | None:
        """The stored answer to a batch that came before."""
        self.engine  # noqa: B018 - reads the keys
        seen = self._keys.get(key) if key is not None else None
        if seen is None:
            return None
        if seen.digest != digest:
            raise ServiceError(409, "key", "This idempotency key was used for another batch.", "Use a new key.")
        if seen.pushed is not None:
            return seen.pushed
        if not seen.length:
            return Pushed(b"", 0, seen.number, replayed=True)
        entry = next(iter(self._store.outbox(self.publisher, after=seen.number - 1)), None)
        if entry is None or entry.number != seen.number:
            raise ServiceError(410, "key", "The released lines of this batch are no longer kept.", "Do not repeat it.")
        return Pushed(entry.payload[seen.start : seen.start + seen.length], 0, seen.number, replayed=True)

    def read(self, table: pa.Table) -> Records | None:
        """A batch as the engine takes it; a batch that cannot be released is refused here."""
        return self.engine.read(table) if isinstance(self.engine, Immediate) else None

    def push(self, table: pa.Table, records: Records | None, key: str | None, digest: str) -> Pushed:
        """Places a batch; `flush` stores it, with all others of its group."""
        engine = self.engine
        if isinstance(engine, Immediate):
            records = records or engine.read(table)
            # A batch that was refused halfway may have taught the engine labels; they go into this journal entry.
            records = replace(records, labels=tuple(engine.values.labels[self._labels :]))
            self._labels = len(engine.values)
            lines = shown = self._wire.lines(table, records, engine.place(records), engine.values)
            journal = records.to_bytes()
        else:
            # What CASTLE releases now belongs to earlier batches, perhaps of other feeds: readers get it, not the sender.
            lines, shown, journal = record_lines(engine.push(table), self.policy, ()), b"", b""
        pushed = Pushed(shown, table.num_rows, held=engine.counts.held)
        seen = _Seen(digest, self._length, len(shown), pushed=pushed)
        self._length += len(lines)
        self._group.append((key, seen, journal))
        self._released.append(lines)
        if key is not None:
            self._keys[key] = seen
        return pushed

    def flush(self, tx: Transaction) -> None:
        """Stores what was placed since the last flush: lines, change of state and keys, in one transaction."""
        group, lines = self._group, b"".join(self._released)
        self._group, self._released, self._length = [], [], 0
        if not group:
            return
        self._keep_state(tx, [journal for _, _, journal in group])
        # An entry without lines still gives the keys a place.
        number = tx.put_outbox(self.publisher, "ndjson", lines)
        keys = {key: [seen.digest, seen.start, seen.length] for key, seen, _ in group if key is not None}
        if keys:
            tx.put(self.publisher, KEYS, str(number), json.dumps(keys).encode())
        for key, seen, _ in group:
            assert seen.pushed is not None  # noqa: S101 - a batch of this group
            seen.pushed.number = number
            if key is not None:
                self._keys[key] = replace(seen, number=number, pushed=None)
        self._forget(tx)
        self.keeping.note(tx, number)
        self._look()

    def _look(self) -> None:
        """Takes the engine's figures now and then: only this thread may ask an engine that it also changes."""
        now = time.monotonic()
        if now - self._looked > _LOOK and self.engine.counts.rows_in:
            self._figures, self._looked = self.engine.metrics(), now

    def _keep_state(self, tx: Transaction, journal: list[bytes]) -> None:
        engine, delta = self.engine, _join(journal)
        if not isinstance(engine, Immediate):
            tx.put_snapshot(self.publisher, engine.snapshot())
            return
        self._part = tx.append_delta(self.publisher, delta)
        self._journalled += len(delta)
        if self._rewriting is not None and not self._rewriting.go_on(tx, len(delta)):
            self._rewriting = None

    def committed(self) -> None:
        """Takes the state when the journal has outgrown it; the next commits write it down, a piece each."""
        if self._rewriting is not None or self._part < 0 or self._journalled <= max(_JOURNAL, self._whole):
            return
        state = self.engine.snapshot()
        self._rewriting = Rewriting(self.publisher, state, self._part)
        self._whole, self._journalled = len(state), 0

    def _forget(self, tx: Transaction) -> None:
        while len(self._keys) > _REMEMBERED:
            number = next(iter(self._keys.values())).number
            tx.delete(self.publisher, KEYS, str(number))
            for key in [key for key, seen in islice(self._keys.items(), 1000) if seen.number == number]:
                del self._keys[key]

    def settled(self, done: Pushed, began: float) -> None:
        """Notes what is on disk now, and wakes those who follow the stream."""
        if not done.replayed and not done.seconds:
            done.seconds = time.perf_counter() - began
            self.meter.add(done.rows, done.seconds)
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
            "oldest": self.keeping.oldest,
            "metrics": self._figures,
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

    def apply(self, _: Transaction) -> Pushed:
        """Releases it, unless it was released before."""
        assert self._known or self._table is not None  # noqa: S101 - check comes first
        self._done = self._known or self._stream.push(self._table, self._records, self._key, self._digest)
        return self._done

    @property
    def owner(self) -> LiveStream:
        """The stream, which stores all batches of a group at once."""
        return self._stream

    def settled(self) -> None:
        """On disk."""
        if self._done is not None:
            self._stream.settled(self._done, self._began)

    def drop(self) -> None:
        """The engine may be ahead of the store."""
        self._stream.drop()


def _join(entries: list[bytes]) -> bytes:
    return b"".join(len(entry).to_bytes(4, "little") + entry for entry in entries)


def _split(joined: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(joined):
        size = int.from_bytes(joined[at : at + 4], "little")
        yield joined[at + 4 : at + 4 + size]
        at += 4 + size
