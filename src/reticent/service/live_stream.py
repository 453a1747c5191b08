"""A running stream: its engine, its journal and the idempotency keys of its batches.

One transaction stores the released lines, the change of the state and the key of a batch. A batch that is sent again
with its key gets the stored lines: to process it again would be a second publication of the same people. Batches that
wait at the same time are processed together, so that fixed costs occur once; each keeps its position, key and answer.
"""

from __future__ import annotations

import json
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from reticent.errors import DataError
from reticent.policy import Policy
from reticent.publication.population import Population
from reticent.publication.records import Batch
from reticent.publication.stream import StreamPublication
from reticent.release import Guarantee, RecordCounts
from reticent.service.problems import ServiceError
from reticent.service.retention import Retention
from reticent.service.unpacked_size import check_arrow_stream
from reticent.service.uploads import ARROW
from reticent.store import SnapshotWriter, Store, Transaction

KEYS, STOPPED = "key", "stopped"
# Batches whose keys are stored; at one batch per second a feed may retry for a day.
_MAX_KEYS = 100_000
_LATEST_LINES = 20
# Records processed at once; more would cost memory and save no time.
_MAX_RECORDS = 10_000
_FIGURES_INTERVAL = 0.25
# Points of the charts: one hour of a busy stream at one point per second.
_TREND_POINTS = 3_600
# Seconds of the past that the meter reports on.
_WINDOW_SECONDS = 10.0
_TYPE_OFFSET, _GROUP_LETTER, _NEWLINE = len(b'{"type":"'), ord("g"), ord("\n")
"""Position of the type in a line, and first letter of the type of a group, whose line precedes its first record."""


class Meter:
    """Rows and latencies of batches; `read` covers the last ten seconds."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._batches: deque[tuple[float, int, float]] = deque(maxlen=20_000)
        self.rows = 0
        self.batches = 0

    def add(self, rows: int, seconds: float) -> None:
        """Add a stored batch and the seconds from its arrival to its commit."""
        self._batches.append((time.monotonic(), rows, seconds))
        self.rows += rows
        self.batches += 1

    def read(self) -> dict[str, float]:
        """Return rows per second, and the median and 99th percentile of the latency in milliseconds."""
        now = time.monotonic()
        recent = [(rows, seconds) for at, rows, seconds in tuple(self._batches) if at > now - _WINDOW_SECONDS]
        times = sorted(seconds for _, seconds in recent)
        span = max(min(_WINDOW_SECONDS, now - self._began), 1e-3)
        return {
            "rows_per_second": sum(rows for rows, _ in recent) / span,
            "median_ms": 1e3 * times[len(times) // 2] if times else 0.0,
            "p99_ms": 1e3 * times[min(len(times) - 1, int(0.99 * len(times)))] if times else 0.0,
        }


@dataclass(repr=False)
class PushResult:
    """The answer to a batch: its lines, and their position in the stream after the commit."""

    lines: bytes
    rows: int
    number: int = -1
    pending: int = 0
    replayed: bool = False
    seconds: float = 0.0


@dataclass(frozen=True, repr=False)
class _StoredBatch:
    """A batch by its key: its digest, and the position of its lines in an entry of the outbox."""

    digest: str
    start: int
    length: int
    number: int = -1
    result: PushResult | None = None
    """The answer, until the group of the batch is stored."""


@dataclass(frozen=True, repr=False)
class _QueuedBatch:
    """A batch that is parsed but not processed yet."""

    batch: Batch
    key: str | None
    digest: str
    result: PushResult


class LiveStream:
    """One stream; all methods that change it run in the writer's thread."""

    def __init__(self, name: str, policy: Policy, store: Store, *, keep_days: float | None = None) -> None:
        self.name = name
        self.policy = policy
        self.publisher = f"stream:{name}"
        self.meter = Meter()
        self.retention = Retention(self.publisher, keep_days)
        self.latest: deque[bytes] = deque(maxlen=_LATEST_LINES)
        self.subscribers: list[Callable[[], None]] = []
        self.trend: deque[tuple[float, int, dict[str, float]]] = deque(maxlen=_TREND_POINTS)
        """Time, number of records and metrics, at most one point per second, for the charts of pages opened later."""
        self.stopped = False
        self.cursor = -1
        self._store = store
        self._publication: StreamPublication | None = None
        self._keys: OrderedDict[str, _StoredBatch] = OrderedDict()
        self._begin_group()
        self._figures: dict[str, float] = {}
        self._figures_time = -_FIGURES_INTERVAL
        self._last_delta = -1
        self._rewrite: SnapshotWriter | None = None
        self._codebook: bytes | None = None

    @property
    def publication(self) -> StreamPublication:
        """The publication, restored from the store if it is not in memory."""
        if self._publication is None:
            self._publication = self._restore()
        return self._publication

    def _restore(self) -> StreamPublication:
        publication = StreamPublication.load(self.policy, self._store, self.publisher)
        self._last_delta, self._rewrite = -1, None
        self._begin_group()
        self.population = Population(
            self._store, self.publisher, self.policy, kind="stream", method=self.policy.stream.method
        )
        self._keys = self._load_keys()
        self.retention.load(self._store)
        self.stopped = self._store.get(self.publisher, STOPPED, STOPPED) is not None
        engine = publication.engine
        self._figures = engine.metrics if engine.counts.input else {}
        self.cursor = max([self.cursor, *(seen.number for seen in self._keys.values())])
        return publication

    def _load_keys(self) -> OrderedDict[str, _StoredBatch]:
        """Return the stored batches by key, oldest first."""
        keys: OrderedDict[str, _StoredBatch] = OrderedDict()
        rows = sorted((int(number), value) for number, value in self._store.items(self.publisher, KEYS).items())
        for number, value in rows:
            for key, (digest, start, length) in json.loads(value).items():
                keys[key] = _StoredBatch(digest, start, length, number)
        return keys

    def codebook(self) -> bytes:
        """Return the codebook that recipients need to read the lines; it is public."""
        if self._codebook is None:
            self._codebook = self.publication.codebook()
        return self._codebook

    def begin(self, tx: Transaction) -> None:
        """Build the engine and store the state of a new stream, before the first batch."""
        publication = self.publication
        if self._store.snapshot(self.publisher) is None:
            tx.put_snapshot(self.publisher, publication.snapshot())

    def stop(self, tx: Transaction) -> None:
        """Stop taking records until `resume`; released records stay."""
        tx.put(self.publisher, STOPPED, STOPPED, b"1")
        self.stopped = True

    def resume(self, tx: Transaction) -> None:
        """Take records again."""
        tx.delete(self.publisher, STOPPED, STOPPED)
        self.stopped = False

    def drop(self) -> None:
        """Discard the state in memory."""
        self._publication = None

    # Pushing

    def _begin_group(self) -> None:
        """Start an empty group: no batch to process and no lines to store."""
        self._queue: list[_QueuedBatch] = []
        self._group: list[tuple[str | None, _StoredBatch]] = []
        self._released: list[bytes] = []
        self._journals: list[bytes | None] = []
        self._persons: list[npt.NDArray[np.uint64]] = []
        self._length = 0

    def replay(self, key: str | None, digest: str) -> PushResult | None:
        """Return the stored answer to a batch that was sent before, or None."""
        self.publication  # noqa: B018 - reads the keys
        stored = self._keys.get(key) if key is not None else None
        if stored is None:
            return None
        if stored.digest != digest:
            raise ServiceError(409, "key", "This idempotency key was used for another batch.", "Use a new key.")
        if stored.result is not None:
            return stored.result
        if not stored.length:
            return PushResult(b"", 0, stored.number, replayed=True)
        entry = next(iter(self._store.outbox(self.publisher, after=stored.number - 1)), None)
        if entry is None or entry.number != stored.number:
            raise ServiceError(
                410,
                "key",
                "The released lines of this batch were deleted by the retention limit.",
                "Do not send this batch again.",
            )
        return PushResult(entry.payload[stored.start : stored.start + stored.length], 0, stored.number, replayed=True)

    def read(self, body: bytes, kind: str) -> Batch:
        """Parse a batch; reject all of it if one of its records cannot be released."""
        parser = self.publication.reader
        batch = parser.arrow(check_arrow_stream(body)) if kind == ARROW else parser.ndjson(body)
        if batch.rejected:
            row, reason, _ = batch.rejected[0]
            raise DataError(
                f"Record {row + 1}: {reason}; {len(batch.rejected):,} of {batch.total:,} records cannot be released.",
                hint="Correct or remove these records and send the batch again; no record of it was released.",
            )
        if not batch.total:
            raise DataError("The body has no records.", hint="Write one JSON object per line.")
        return batch

    def push(self, batch: Batch, key: str | None, digest: str) -> PushResult:
        """Queue a batch; it is processed with the other queued batches, and `flush` stores them."""
        pushed = PushResult(b"", batch.total)
        self._queue.append(_QueuedBatch(batch, key, digest, pushed))
        if key is not None:
            self._keys[key] = _StoredBatch(digest, 0, 0, result=pushed)
        if sum(queued.batch.total for queued in self._queue) >= _MAX_RECORDS:
            self._process_queue()
        return pushed

    def _process_queue(self) -> None:
        """Process all queued batches with one check of the ledger, one step of the engine and one of the verifier."""
        waiting, self._queue = self._queue, []
        if not waiting:
            return
        batch = concat_batches([queued.batch for queued in waiting])
        persons = self.population.hash_table_persons(batch.table)
        self.population.refuse_shared_persons(persons)
        released = self.publication.take(batch)
        pending = self.publication.engine.counts.withheld
        parts = split_lines(released.lines, [queued.batch.total for queued in waiting])
        for queued, lines in zip(waiting, parts, strict=True):
            # Late lines belong to earlier batches, perhaps of other feeds: subscribers get them, the sender does not.
            queued.result.lines, queued.result.pending = lines, pending
            stored = _StoredBatch(queued.digest, self._length, len(lines), result=queued.result)
            self._group.append((queued.key, stored))
            self._length += len(lines)
        self._length += len(released.late_lines)
        self._released += [released.lines, released.late_lines]
        self._journals.append(released.journal)
        self._persons.append(persons)

    def flush(self, tx: Transaction) -> None:
        """Store the lines, the state and the keys since the last flush in one transaction."""
        self._process_queue()
        group, lines, journals, persons = self._group, b"".join(self._released), self._journals, self._persons
        self._begin_group()
        if not group:
            return
        self.population.record(tx, np.concatenate(persons))
        self._store_state(tx, journals)
        # An entry without lines still gives the keys a number.
        number = tx.put_outbox(self.publisher, "ndjson", lines)
        keys = {key: [seen.digest, seen.start, seen.length] for key, seen in group if key is not None}
        if keys:
            tx.put(self.publisher, KEYS, str(number), json.dumps(keys).encode())
        for key, seen in group:
            assert seen.result is not None  # noqa: S101 - a batch of this group
            seen.result.number = number
            if key is not None:
                self._keys[key] = replace(seen, number=number, result=None)
        self._drop_old_keys(tx)
        if self.retention.limited:
            self.retention.record_batch(tx, number)
        self._sample_figures()

    def on_idle(self) -> None:
        """Read the metrics once more after the last batches, which may have followed too fast."""
        self._figures_time = -_FIGURES_INTERVAL
        self._sample_figures()

    def _sample_figures(self) -> None:
        """Read the metrics at intervals; only the writer's thread may read an engine that it also changes."""
        now = time.monotonic()
        engine = self.publication.engine
        if now - self._figures_time > _FIGURES_INTERVAL and engine.counts.input:
            self._figures, self._figures_time = engine.metrics, now
            if not self.trend or time.time() - self.trend[-1][0] >= 1:
                self.trend.append((time.time(), engine.counts.input, dict(self._figures)))

    def _store_state(self, tx: Transaction, journals: list[bytes | None]) -> None:
        if None in journals:
            tx.put_snapshot(self.publisher, self.publication.snapshot())
            return
        change = b"".join(journal for journal in journals if journal)
        self._last_delta = tx.append_delta(self.publisher, change)
        if self._rewrite is not None and not self._rewrite.write_next_piece(tx, len(change)):
            self._rewrite = None

    def after_commit(self) -> None:
        """Begin a new snapshot if the journal has outgrown the last one; each of the next commits writes a piece."""
        if self._rewrite is None and self._last_delta >= 0 and self.publication.snapshot_due:
            self._rewrite = SnapshotWriter(self.publisher, self.publication.snapshot(), self._last_delta)

    def _drop_old_keys(self, tx: Transaction) -> None:
        while len(self._keys) > _MAX_KEYS:
            number = next(iter(self._keys.values())).number
            tx.delete(self.publisher, KEYS, str(number))
            for key in [key for key, seen in islice(self._keys.items(), 1000) if seen.number == number]:
                del self._keys[key]

    def record_push(self, done: PushResult, began: float) -> None:
        """Update the meter after a commit and wake the subscribers."""
        if not done.replayed and not done.seconds:
            done.seconds = time.perf_counter() - began
            self.meter.add(done.rows, done.seconds)
            self.cursor = max(self.cursor, done.number)
            self.latest.extend(done.lines[-4000:].splitlines()[-_LATEST_LINES:] if done.lines else ())
        for wake in tuple(self.subscribers):
            wake()

    def status(self) -> dict[str, Any]:
        """Return the figures for the operator; they contain no private data."""
        publication = self._publication
        engine = publication.engine if publication is not None else None
        counts, guarantee = (
            (engine.counts, engine.guarantee) if engine is not None else (RecordCounts(), Guarantee({}, ""))
        )
        return {
            "name": self.name,
            "method": self.policy.stream.method,
            **{"pending" if name == "withheld" else name: number for name, number in asdict(counts).items()},
            "stopped": self.stopped,
            "cursor": self.cursor,
            "oldest": self.retention.oldest,
            "metrics": self._figures,
            "guarantee": dict(guarantee.claims),
            "against": guarantee.against,
            "not_covered": list(guarantee.not_covered),
        } | self.meter.read()


def concat_batches(batches: Sequence[Batch]) -> Batch:
    """Return several batches without rejected records as one."""
    if len(batches) == 1:
        return batches[0]
    table = pa.concat_tables([batch.table for batch in batches]).combine_chunks()
    typed = {name for batch in batches for name in batch.tokens}
    tokens = {name: pa.concat_arrays([batch.token_column(name) for batch in batches]) for name in typed}
    return Batch(table, np.arange(table.num_rows), table.num_rows, tokens=tokens)


def split_lines(lines: bytes, sizes: Sequence[int]) -> list[bytes]:
    """Split lines into batches of these sizes, each with the groups that its records open; no lines if records are pending."""
    if len(sizes) == 1 or not lines:
        return [lines, *[b""] * (len(sizes) - 1)]
    text = np.frombuffer(lines, np.uint8)
    ends = np.flatnonzero(text == _NEWLINE) + 1
    starts = np.concatenate([[0], ends[:-1]])
    records = ends[text[starts + _TYPE_OFFSET] != _GROUP_LETTER]
    cuts = [0, *records[np.cumsum(sizes) - 1].tolist()]
    return [lines[start:end] for start, end in pairwise(cuts)]
