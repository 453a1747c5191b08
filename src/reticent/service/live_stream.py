"""A stream that is running: its engine, its journal, and the keys of the batches it has released.

One transaction holds the released lines, the change of the state and the key of the batch. A batch that comes again
with its key gets the stored lines again: to place it anew would be a second publication of the same people. Batches that wait
together are placed as one, so that what a batch costs beside its records is paid once; each keeps its place, its key and its answer.
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
# Batches whose keys are remembered; at a batch a second a feed may retry for a day.
_MAX_KEYS = 100_000
_LATEST_LINES = 20
# Records that are placed at once: beyond this many there is nothing left to gain, and memory to lose.
_MAX_RECORDS = 10_000
_FIGURES_INTERVAL = 0.25
# Points of the charts: an hour of a busy stream, a second apart.
_TREND_POINTS = 3_600
# Seconds that the meter looks back.
_WINDOW_SECONDS = 10.0
_TYPE_OFFSET, _GROUP_LETTER, _NEWLINE = len(b'{"type":"'), ord("g"), ord("\n")
"""Where a line says what it is; a group, which opens before its first record, begins with a letter of its own."""


class Meter:
    """Counts rows and times of batches; `read` looks back ten seconds."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._batches: deque[tuple[float, int, float]] = deque(maxlen=20_000)
        self.rows = 0
        self.batches = 0

    def add(self, rows: int, seconds: float) -> None:
        """A batch is on disk, so many seconds after it came in."""
        self._batches.append((time.monotonic(), rows, seconds))
        self.rows += rows
        self.batches += 1

    def read(self) -> dict[str, float]:
        """Rows per second, and the median and the 99th percentile of the latency in milliseconds."""
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
    """The answer to a batch: its lines, and where they stand in the stream once they are on disk."""

    lines: bytes
    rows: int
    number: int = -1
    pending: int = 0
    replayed: bool = False
    seconds: float = 0.0


@dataclass(frozen=True, repr=False)
class _StoredBatch:
    """A batch by its key: what it was, and where its lines are in which entry of the outbox."""

    digest: str
    start: int
    length: int
    number: int = -1
    result: PushResult | None = None
    """The batch itself, until the group it belongs to is on disk."""


@dataclass(frozen=True, repr=False)
class _QueuedBatch:
    """A batch that is read and not placed yet."""

    batch: Batch
    key: str | None
    digest: str
    result: PushResult


class LiveStream:
    """One stream; all methods but the readers run on the writer's thread."""

    def __init__(self, name: str, policy: Policy, store: Store, *, keep_days: float | None = None) -> None:
        self.name = name
        self.policy = policy
        self.publisher = f"stream:{name}"
        self.meter = Meter()
        self.retention = Retention(self.publisher, keep_days)
        self.latest: deque[bytes] = deque(maxlen=_LATEST_LINES)
        self.subscribers: list[Callable[[], None]] = []
        self.trend: deque[tuple[float, int, dict[str, float]]] = deque(maxlen=_TREND_POINTS)
        """Time, records so far and figures, a second apart at least: what a chart shows to whoever comes later."""
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
        """The publication, built from the store when it is not in memory."""
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
        """The keys by entry of the outbox, the oldest first."""
        keys: OrderedDict[str, _StoredBatch] = OrderedDict()
        rows = sorted((int(number), value) for number, value in self._store.items(self.publisher, KEYS).items())
        for number, value in rows:
            for key, (digest, start, length) in json.loads(value).items():
                keys[key] = _StoredBatch(digest, start, length, number)
        return keys

    def codebook(self) -> bytes:
        """What recipients need to read the lines; nothing of it is private."""
        if self._codebook is None:
            self._codebook = self.publication.codebook()
        return self._codebook

    def begin(self, tx: Transaction) -> None:
        """Builds the engine, and stores the state of a stream that has none yet: neither is left to the first batch."""
        publication = self.publication
        if self._store.snapshot(self.publisher) is None:
            tx.put_snapshot(self.publisher, publication.snapshot())

    def stop(self, tx: Transaction) -> None:
        """Takes no more records until it is told to go on; what was released stays."""
        tx.put(self.publisher, STOPPED, STOPPED, b"1")
        self.stopped = True

    def resume(self, tx: Transaction) -> None:
        """Takes records again."""
        tx.delete(self.publisher, STOPPED, STOPPED)
        self.stopped = False

    def drop(self) -> None:
        """Forgets everything in memory."""
        self._publication = None

    # Pushing

    def _begin_group(self) -> None:
        """Nothing of the next group is there yet: neither what waits to be placed, nor what waits to be stored."""
        self._queue: list[_QueuedBatch] = []
        self._group: list[tuple[str | None, _StoredBatch]] = []
        self._released: list[bytes] = []
        self._journals: list[bytes | None] = []
        self._persons: list[npt.NDArray[np.uint64]] = []
        self._length = 0

    def replay(self, key: str | None, digest: str) -> PushResult | None:
        """The stored answer to a batch that came before."""
        self.publication  # noqa: B018 - reads the keys
        seen = self._keys.get(key) if key is not None else None
        if seen is None:
            return None
        if seen.digest != digest:
            raise ServiceError(409, "key", "This idempotency key was used for another batch.", "Use a new key.")
        if seen.result is not None:
            return seen.result
        if not seen.length:
            return PushResult(b"", 0, seen.number, replayed=True)
        entry = next(iter(self._store.outbox(self.publisher, after=seen.number - 1)), None)
        if entry is None or entry.number != seen.number:
            raise ServiceError(410, "key", "The released lines of this batch are no longer kept.", "Do not repeat it.")
        return PushResult(entry.payload[seen.start : seen.start + seen.length], 0, seen.number, replayed=True)

    def read(self, body: bytes, kind: str) -> Batch:
        """A batch as it was sent; refused whole when one of its records cannot be released."""
        reader = self.publication.reader
        batch = reader.arrow(check_arrow_stream(body)) if kind == ARROW else reader.ndjson(body)
        if batch.rejected:
            row, reason, _ = batch.rejected[0]
            raise DataError(
                f"Record {row + 1}: {reason}; {len(batch.rejected):,} of {batch.total:,} records cannot be released.",
                hint="Correct or leave them out, and send the batch again; nothing of it was released.",
            )
        if not batch.total:
            raise DataError("There are no records in the body.", hint="Write one JSON object per line.")
        return batch

    def push(self, batch: Batch, key: str | None, digest: str) -> PushResult:
        """Takes a batch in; it is placed with those that come together with it, and `flush` stores them."""
        pushed = PushResult(b"", batch.total)
        self._queue.append(_QueuedBatch(batch, key, digest, pushed))
        if key is not None:
            self._keys[key] = _StoredBatch(digest, 0, 0, result=pushed)
        if sum(one.batch.total for one in self._queue) >= _MAX_RECORDS:
            self._process_queue()
        return pushed

    def _process_queue(self) -> None:
        """Places what waits: one look at the ledger, one step of the engine and one of the judge for all of it."""
        waiting, self._queue = self._queue, []
        if not waiting:
            return
        batch = concat_batches([one.batch for one in waiting])
        persons = self.population.hash_table_persons(batch.table)
        self.population.refuse_shared_persons(persons)
        released = self.publication.take(batch)
        held = self.publication.engine.counts.withheld
        parts = split_lines(released.lines, [one.batch.total for one in waiting])
        for one, lines in zip(waiting, parts, strict=True):
            # What was held belongs to earlier batches, perhaps of other feeds: readers get it, not the sender.
            one.result.lines, one.result.pending = lines, held
            self._group.append((one.key, _StoredBatch(one.digest, self._length, len(lines), result=one.result)))
            self._length += len(lines)
        self._length += len(released.late_lines)
        self._released += [released.lines, released.late_lines]
        self._journals.append(released.journal)
        self._persons.append(persons)

    def flush(self, tx: Transaction) -> None:
        """Stores what was taken in since the last flush: lines, change of state and keys, in one transaction."""
        self._process_queue()
        group, lines, journals, persons = self._group, b"".join(self._released), self._journals, self._persons
        self._begin_group()
        if not group:
            return
        self.population.record(tx, np.concatenate(persons))
        self._store_state(tx, journals)
        # An entry without lines still gives the keys a place.
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
        """Takes the figures of the last batches, which came too soon after the ones before."""
        self._figures_time = -_FIGURES_INTERVAL
        self._sample_figures()

    def _sample_figures(self) -> None:
        """Takes the engine's figures now and then: only this thread may ask an engine that it also changes."""
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
        """Takes the state when the journal has outgrown it; the next commits write it down, a piece each."""
        if self._rewrite is None and self._last_delta >= 0 and self.publication.snapshot_due:
            self._rewrite = SnapshotWriter(self.publisher, self.publication.snapshot(), self._last_delta)

    def _drop_old_keys(self, tx: Transaction) -> None:
        while len(self._keys) > _MAX_KEYS:
            number = next(iter(self._keys.values())).number
            tx.delete(self.publisher, KEYS, str(number))
            for key in [key for key, seen in islice(self._keys.items(), 1000) if seen.number == number]:
                del self._keys[key]

    def record_push(self, done: PushResult, began: float) -> None:
        """Notes what is on disk now, and wakes those who follow the stream."""
        if not done.replayed and not done.seconds:
            done.seconds = time.perf_counter() - began
            self.meter.add(done.rows, done.seconds)
            self.cursor = max(self.cursor, done.number)
            self.latest.extend(done.lines[-4000:].splitlines()[-_LATEST_LINES:] if done.lines else ())
        for wake in tuple(self.subscribers):
            wake()

    def status(self) -> dict[str, Any]:
        """What an operator watches; nothing of it is private."""
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
    """Batches without a bad record, one behind the other."""
    if len(batches) == 1:
        return batches[0]
    table = pa.concat_tables([batch.table for batch in batches]).combine_chunks()
    typed = {name for batch in batches for name in batch.tokens}
    tokens = {name: pa.concat_arrays([batch.token_column(name) for batch in batches]) for name in typed}
    return Batch(table, np.arange(table.num_rows), table.num_rows, tokens=tokens)


def split_lines(lines: bytes, sizes: Sequence[int]) -> list[bytes]:
    """The lines of batches of these sizes, with the groups that their records open; nothing where records are held back."""
    if len(sizes) == 1 or not lines:
        return [lines, *[b""] * (len(sizes) - 1)]
    text = np.frombuffer(lines, np.uint8)
    ends = np.flatnonzero(text == _NEWLINE) + 1
    starts = np.concatenate([[0], ends[:-1]])
    records = ends[text[starts + _TYPE_OFFSET] != _GROUP_LETTER]
    cuts = [0, *records[np.cumsum(sizes) - 1].tolist()]
    return [lines[start:end] for start, end in pairwise(cuts)]
