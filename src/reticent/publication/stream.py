"""Publishes a stream from a store. The process may be killed at any instruction.

One transaction stores the input position, the released bytes, the change of the state and the dead letters; then the sink
gets the bytes. After a restart the stored bytes are sent again, and reading continues at the stored position. Published
bytes are never computed a second time.

The change of the state is the encoded batch: placing it again gives the same groups, because every choice is a function of
the stream's key and the record's position. A snapshot is written when the journal outgrows it, so the cost of durability
grows with the work and not with the history.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa

from reticent.errors import DataError
from reticent.frames import table_of
from reticent.policy import Policy
from reticent.publication.blocks import FORMATS, Blocks, Formats
from reticent.publication.lines import compress_lines, decompress_lines
from reticent.publication.population import Population
from reticent.publication.ports import Progress, Sink, Source, refuse_other_input
from reticent.publication.publication import Commit, commit_each_step
from reticent.publication.records import Batch
from reticent.publication.resume import Receipts, refuse_early_push, resume_sink
from reticent.publication.stream_publication import ReleasedBatch, StreamPublication, veil_key_of
from reticent.release import Guarantee, RecordCounts
from reticent.release.wording import REPUBLICATION
from reticent.store import DeadLetter, Store, Transaction

__all__ = ["NAME", "ReleasedBatch", "Stream", "StreamPublication", "Summary", "commit_each_step"]

NAME = "stream"


@dataclass
class Position:
    """The position of a stream: bytes read, records read, bytes released, records rejected, and the input's format."""

    offset: int = 0
    seq: int = 0
    out: int = 0
    dead_letters: int = 0
    header: str | None = None
    format: str | None = None
    fingerprint: str | None = None
    """Fingerprint of the bytes read, if they can be read again: the input must still begin with these bytes."""

    def to_json(self) -> str:
        """Return the position as the store keeps it."""
        return json.dumps(self.__dict__)


@dataclass(frozen=True)
class Summary:
    """The figures of a stream over all its runs. `seconds` is the duration of this run."""

    records: RecordCounts
    dead_letters: int
    seconds: float
    guarantee: Guarantee
    metrics: Mapping[str, float] = field(default_factory=dict)
    pending_bytes: int = 0
    """Bytes of an unfinished last line."""


@dataclass(frozen=True, repr=False)
class _Step:
    """One batch on its way to disk and sink."""

    released: ReleasedBatch
    snapshot: bytes | None
    first: int
    start: float
    position: str
    receipts: Sequence[str]
    people: pa.Table | None

    @property
    def lines(self) -> bytes:
        """All lines of the step."""
        return self.released.lines + self.released.late_lines


class Stream:
    """A stream on a store: `run` from a source to a sink, or `push` batches and receive the lines.

    A stream that was closed or killed continues at its stored position when it is opened again.

    Args:
        policy: the policy, or the path of its file.
        store: the store, its file or its database URL.
        seed: replaces the store's key in tests and reproductions.
        name: the name of the stream in the store.
        commit: how a step becomes durable; by default in one transaction per step.
        allow_republication: allow people who were already released from this store; the summary records this.
    """

    formats: Formats = FORMATS

    def __init__(
        self,
        policy: Policy | str | Path,
        *,
        store: Store | str | Path,
        seed: int | None = None,
        name: str = NAME,
        commit: Commit | None = None,
        allow_republication: bool = False,
    ) -> None:
        self.policy = policy if isinstance(policy, Policy) else Policy.load(policy)
        self.on_dead_letter: Callable[[int, str, bytes], None] | None = None
        self._name, self._seed = name, seed
        self._stopping = False
        self._source: Source | None = None
        self._receipts: Receipts | None = None
        self._final, self._waiting = False, 0
        self._start = time.perf_counter()
        with ExitStack() as stack:
            self._store = store if isinstance(store, Store) else stack.enter_context(Store.open(store))
            if seed is None:
                veil_key_of(self.policy, self._store)  # refuses other veil parameters before anything else
            self._store.register(name, policy_hash=self.policy.hash)
            stack.enter_context(self._store.lock(name))
            self._commit = commit or commit_each_step(self._store)
            self._population = Population(
                self._store,
                name,
                self.policy,
                kind="stream",
                method=self.policy.stream.method,
                allow_republication=allow_republication,
            )
            self._resume()
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def __repr__(self) -> str:
        return f"Stream({self.policy.stream.method}, {self.publication.engine.counts})"

    def dead_letters(self) -> list[DeadLetter]:
        """Return the records that could not be released so far."""
        return self._store.dead_letters(self._name)

    def stop(self) -> None:
        """Finish the current batch and end the run. Safe to call from a signal handler."""
        self._stopping = True

    def _resume(self) -> None:
        stored = self._store.position(self._name)
        self.position = Position(**json.loads(stored)) if stored else Position()
        self.publication = StreamPublication.load(self.policy, self._store, self._name, seed=self._seed)
        if self._store.snapshot(self._name) is None:
            state = self.publication.snapshot()
            self._commit(lambda tx: tx.put_snapshot(self._name, state))
        unsent = list(self._store.iter_undelivered_batches(self._name))
        self._unsent = unsent[-1].number if unsent else -1
        self.undelivered = b"".join(decompress_lines(entry.kind, entry.payload) for entry in unsent)
        """Lines that were stored before the last stop and may not have been received."""

    # Pushing

    def push(self, batch: bytes | str | Path | Any) -> bytes:
        """Release a table or frame, NDJSON bytes, or a CSV or NDJSON file. The returned lines are stored already.

        Records that cannot be read become dead letters in the store.
        """
        reader = self.publication.reader
        refuse_early_push(self._store, self._name, self.position.out)
        if isinstance(batch, str | Path):
            return b"".join(map(self._push, self._iter_file_batches(Path(batch))))
        if isinstance(batch, bytes):
            return self._push(reader.ndjson(batch))
        return self._push(reader.table(batch if isinstance(batch, pa.Table) else table_of(batch)))

    def _push(self, batch: Batch) -> bytes:
        if not batch.total:
            return b""
        step = self._take(batch, 0, time.perf_counter())
        self._unsent = self._write(step)
        return step.lines

    def _iter_file_batches(self, path: Path) -> Iterator[Batch]:
        try:
            data = path.read_bytes()
        except OSError as error:
            reason = os.strerror(error.errno or 0)
            raise DataError(f"{path} cannot be read: {reason}.", hint="Check the path and its permissions.") from None
        lines = self.formats["ndjson" if data.lstrip()[:1] == b"{" else "csv"](self.publication.reader)
        for batch, _ in Blocks(lines, self.publication.reader).iter_batches(data, last=True):
            yield batch

    def close(self) -> bytes:
        """End the stream: release or suppress the pending records, and close the store."""
        with self._stack:
            step = self._final_step()
            self._unsent = self._write(step)
            self._acknowledge()
        return step.lines

    # Running

    def run(
        self,
        source: Source,
        sink: Sink,
        *,
        format: str | None = None,  # noqa: A002 - the word of the command line
        replayed: bool = False,
        final: bool = False,
        progress: Progress | None = None,
    ) -> Summary:
        """Read the source to its end, or until `stop`.

        Args:
            source: where records come from.
            sink: where lines go.
            format: the input's format; by default that of the first run, or as the source guesses.
            replayed: a pipe starts from the beginning again; skip the bytes that an earlier run has read.
            final: the input is complete, so an unfinished last line is a record. Otherwise it stays unread in a file, and is
                rejected from a pipe.
            progress: receives the progress of the run.
        """
        self._start = time.perf_counter()
        self._source, self._final, self._waiting = source, final, 0
        known = source.regular or (replayed and self.position.offset > 0)
        if source.regular:
            refuse_other_input(source, self.position.offset, self.position.fingerprint)
        if source.answers:
            self._receipts = Receipts(self._store, self._name)
            source.recognize(self._receipts)
        sink = resume_sink(self._store, self._name, sink, self.position.out - len(self.undelivered))
        self._resend(sink)
        if known:
            source.skip(self.position.offset)
        with _Writer(self._write, lambda step, number: self._deliver(step, number, sink, progress)) as writer:
            for step in self._iter_steps(source, writer, format, fresh=not known):
                writer.submit(step)
                if progress is not None:
                    progress.tick(self._metrics)
            if not self._stopping:
                writer.submit(self._final_step())
        self._acknowledge()
        if progress is not None:
            progress.tick(self._metrics, final=True)
        return self.summary()

    def summary(self) -> Summary:
        """Return the figures of the stream so far, over all its runs."""
        engine, seconds = self.publication.engine, time.perf_counter() - self._start
        guarantee = engine.guarantee
        if self._population.shared:
            guarantee = replace(guarantee, not_covered=(*guarantee.not_covered, REPUBLICATION))
        return Summary(engine.counts, self.position.dead_letters, seconds, guarantee, engine.metrics, self._waiting)

    def _metrics(self) -> Mapping[str, float]:
        return self.publication.engine.metrics

    def _resend(self, sink: Sink) -> None:
        """Send the stored bytes that may not have been sent, unchanged."""
        sink.resume(max(0, self.position.out - len(self.undelivered)), len(self.undelivered))
        sink.describe(self.publication.codebook())
        if self.undelivered:
            sink.write(self.undelivered)
        self.undelivered = b""

    def _iter_steps(self, source: Source, writer: _Writer, form: str | None, *, fresh: bool) -> Iterator[_Step]:
        blocks: Blocks | None = None
        block: bytes | None = b"-"
        while block and not self._stopping:
            if source.answers:  # a sender may forget a message only when it is stored
                writer.settle()
                source.acknowledge()
            block, began = source.read(), time.perf_counter()
            if block is None or (not block and blocks is None):
                return
            blocks = blocks or self._blocks(form or source.guess(block), fresh=fresh)
            if not block and source.regular and not self._final and blocks.unfinished:
                self._waiting = len(blocks.unfinished)  # another process may still be writing this line
                return
            for batch, size in blocks.iter_batches(block, last=not block, final=self._final):
                self.position.header = blocks.header
                if batch.total:
                    yield self._take(batch, size, began)
                else:
                    self.position.offset += size

    def _blocks(self, form: str, *, fresh: bool) -> Blocks:
        """Return the blocks of the input, in the format of the stream's first run."""
        self.position.format = self.position.format or form
        reader = self.publication.reader
        header = None if fresh else self.position.header
        return Blocks(self.formats[self.position.format](reader), reader, header)

    def _take(self, batch: Batch, size: int, began: float) -> _Step:
        first = self.position.seq
        released = self.publication.take(batch, (batch.rows + first).astype(np.uint64))
        self.position.offset += size
        if size and self._source is not None and self._source.regular:
            self.position.fingerprint = self._source.fingerprint(self.position.offset)
        self.position.seq += batch.total
        self.position.dead_letters += len(batch.rejected)
        self.position.out += len(released.lines + released.late_lines) if size else 0
        receipts = () if self._source is None else self._source.receipts()
        return self._step(released, first, began, receipts, batch.table)

    def _final_step(self) -> _Step:
        """Return the last step, with the pending records."""
        released = self.publication.close()
        self.position.out += len(released.lines + released.late_lines)
        return self._step(released, self.position.seq, time.perf_counter())

    def _step(
        self,
        released: ReleasedBatch,
        first: int,
        began: float,
        receipts: Sequence[str] = (),
        people: pa.Table | None = None,
    ) -> _Step:
        whole = released.journal is None or self.publication.snapshot_due
        snapshot = self.publication.snapshot() if whole else None
        return _Step(released, snapshot, first, began, self.position.to_json(), receipts, people)

    # To disk and out

    def _deliver(self, step: _Step, number: int, sink: Sink, progress: Progress | None) -> None:
        """Send the lines stored under a number. The next commit records that they were sent."""
        for row, reason, payload in step.released.rejected:
            if self.on_dead_letter is not None:
                self.on_dead_letter(step.first + row, reason, payload)
        if step.lines:
            sink.write(step.lines)
            self._unsent = number
        if progress is not None and step.released.records:
            progress.batch(step.released.records, time.perf_counter() - step.start)

    def _write(self, step: _Step) -> int:
        """Store a step. Return the number of its lines in the outbox, or -1 if it has none."""
        entry = compress_lines(step.lines)

        def change(tx: Transaction) -> int:
            self._confirm_delivery(tx)
            number = tx.put_outbox(self._name, *entry, position=step.position) if step.lines else -1
            if not step.lines:
                tx.set_position(self._name, step.position)
            if step.snapshot is not None:
                tx.put_snapshot(self._name, step.snapshot)
            elif step.released.journal:
                tx.append_delta(self._name, step.released.journal)
            for row, reason, payload in step.released.rejected:
                tx.put_dead_letter(self._name, str(step.first + row), reason, payload)
            if step.people is not None:  # done here because the next batch is placed at the same time
                persons = self._population.hash_table_persons(step.people)
                self._population.refuse_shared_persons(persons)
                self._population.record(tx, persons)
            if self._receipts is not None:
                self._receipts.note(tx, step.receipts)
            return number

        return self._commit(change)

    def _confirm_delivery(self, tx: Transaction) -> None:
        """Record what the sink has confirmed. A caller who pushes again has received the earlier lines."""
        sent = self._unsent  # another thread may be sending the next one
        if sent >= 0:
            tx.confirm_delivery(self._name, sent)
            tx.forget_delivered_batches(self._name, sent)

    def _acknowledge(self) -> None:
        """Record that everything was sent."""
        if self._unsent >= 0:
            self._commit(self._confirm_delivery)
        self._unsent = -1


class _Writer:
    """Two threads with one step each: one step is sent while the next one is stored. A slow sink slows the source."""

    def __init__(self, store: Callable[[_Step], int], send: Callable[[_Step, int], None]) -> None:
        self._store, self._send = store, send
        self._pools = [ThreadPoolExecutor(max_workers=1, thread_name_prefix=name) for name in ("commit", "send")]
        self._storing: Future[None] | None = None
        self._sending: Future[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self.settle()
        finally:
            for pool in self._pools:
                pool.shutdown(wait=True)

    def submit(self, step: _Step) -> None:
        """Submit a step when the previous one is stored."""
        self._wait_for_store()
        self._storing = self._pools[0].submit(self._work, step)

    def _work(self, step: _Step) -> None:
        number = self._store(step)
        self._wait_for_send()  # steps are sent in order; a failed step ends the run, and the next run sends it again
        self._sending = self._pools[1].submit(self._send, step, number)

    def settle(self) -> None:
        """Wait until everything is stored and sent."""
        self._wait_for_store()
        self._wait_for_send()

    def _wait_for_store(self) -> None:
        if self._storing is not None:
            self._storing.result()
            self._storing = None

    def _wait_for_send(self) -> None:
        if self._sending is not None:
            self._sending.result()
            self._sending = None
