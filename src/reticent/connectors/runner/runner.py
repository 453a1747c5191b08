"""The loop: read what is there, place it, commit, send.

One transaction holds the input position, the released bytes, the change of the state and the dead letters; only then
does the sink see the bytes. The runner may be killed at any instruction: on restart the stored bytes are sent again and
the input is read on from the stored position. Nothing that was published is ever computed a second time.

The change of the state is the batch itself on codes: placing it again gives the same groups, because every choice is a
function of the stream's key and the record's position. Whole snapshots come when the journal outgrows them, so the cost
of durability follows the work and not the history.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from reticent.connectors.runner.batches import (
    LONGEST,
    Batch,
    CsvLines,
    JsonLines,
    nothing,
    numeric_columns,
    screened,
)
from reticent.connectors.runner.feed import BLOCK, Feed, guess_form
from reticent.connectors.runner.progress import Progress
from reticent.connectors.runner.wire import Wire, pack, record_lines, unpacked
from reticent.engine import publisher_class
from reticent.engine.rng import Rng
from reticent.engine.stream.immediate import Immediate
from reticent.engine.stream.records import Records
from reticent.errors import InternalError, StateError

if TYPE_CHECKING:
    from collections.abc import Callable

    from reticent.connectors.hl7 import Hl7Lines, MllpFeed
    from reticent.connectors.runner.sink import Sink
    from reticent.engine.base import Publisher
    from reticent.engine.stream.castle import Castle
    from reticent.policy import Policy
    from reticent.release import Counts, Guarantee
    from reticent.store import Store

    Lines = CsvLines | JsonLines | Hl7Lines

LOG = logging.getLogger(__name__)
NAME = "stream"
# A journal is cheap to write and slow to replay: at most this much, or as much as the snapshot itself.
_JOURNAL = 16 << 20


@dataclass
class Position:
    """Where the stream stands: bytes read, records seen, bytes released, columns that are numbers."""

    offset: int = 0
    seq: int = 0
    out: int = 0
    dead: int = 0
    numeric: list[str] | None = None
    header: list[str] | None = None
    delimiter: str = ","
    form: str | None = None

    def text(self) -> str:
        """As the store keeps it."""
        return json.dumps(self.__dict__)


@dataclass(frozen=True)
class Summary:
    """What a run did."""

    counts: Counts
    dead_letters: int
    seconds: float
    guarantee: Guarantee
    metrics: dict[str, float] = field(default_factory=dict)


@dataclass
class _Commit:
    """One batch on its way to disk and sink."""

    payload: bytes
    position: Position
    journal: bytes | None
    snapshot: bytes | None
    bad: list[tuple[int, str, bytes]]
    records: int
    began: float


class StreamRunner:
    """Runs one stream from a source to a sink, durably; use it as a context manager."""

    def __init__(self, policy: Policy, store: Store, sink: Sink, *, seed: int | None = None) -> None:
        self.policy, self._store, self._sink, self._seed = policy, store, sink, seed
        self.progress = Progress()
        self.on_dead: Callable[[int, str, bytes], None] | None = None
        self._stack = ExitStack()
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="commit")
        self._pending: Future[None] | None = None
        self._unsent = -1
        self._journal = self._whole = 0
        self._stopping = False
        self._wake: tuple[int, int] | None = None
        self._wire: Wire | None = None

    def __enter__(self) -> Self:
        self._store.register(NAME, policy_hash=self.policy.hash)
        self._stack.enter_context(self._store.lock(NAME))
        try:
            self._resume()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.shutdown(wait=True)
        self._stack.close()
        self._sink.close()

    def stop(self) -> None:
        """Finishes the batch at hand and ends the run; safe to call from a signal handler."""
        self._stopping = True
        if self._wake is not None:
            os.write(self._wake[1], b"x")

    def stop_on_signals(self) -> None:
        """Ends the run in order on SIGTERM and SIGINT."""
        self._wake = os.pipe()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.stop())

    # Starting again

    def _resume(self) -> None:
        kind = publisher_class("stream", self.policy.stream.method)
        saved = self._store.snapshot(NAME)
        stored = self._store.position(NAME)
        self.position = Position(**json.loads(stored)) if stored else Position()
        if saved is None:
            rng = Rng.from_seed(self._seed) if self._seed is not None else Rng(self._store.key(NAME))
            self.publisher: Publisher = kind(self.policy, rng=rng)
            self._begin()
        else:
            self.publisher = kind.restore(self.policy, saved.payload)
            self._whole = len(saved.payload)
            for delta in saved.deltas:
                self._replay(delta)
        self._resend()

    def _begin(self) -> None:
        first = self.publisher.snapshot()
        with self._store.transaction() as tx:
            tx.put_snapshot(NAME, first)
        self._whole = len(first)

    def _replay(self, delta: bytes) -> None:
        if not isinstance(self.publisher, Immediate):
            raise StateError("The journal is of another method.", hint="Use the policy the stream was begun with.")
        self.publisher.replay(Records.from_bytes(delta))
        self._journal += len(delta)

    def _resend(self) -> None:
        """Sends again, byte for byte, what was stored and perhaps not sent."""
        left = [(entry.number, unpacked(entry.kind, entry.payload)) for entry in self._store.unsent(NAME)]
        waiting = sum(len(payload) for _, payload in left)
        self._sink.resume(self.position.out - waiting, waiting)
        for number, payload in left:
            self._sink.write(payload)
            self._unsent = number

    # The loop

    def run(self, source: str, *, form: str | None = None, replayed: bool = False, block: int = BLOCK) -> Summary:
        """Reads the source to its end, or until `stop`.

        Args:
            source: a path, "-" for standard input, or mllp://host:port.
            form: "csv", "ndjson" or "hl7"; guessed from the name or the first byte when not given.
            replayed: a pipe starts from the beginning again: what was read before is skipped.
            block: bytes to read at most at a time.
        """
        wake = self._wake[0] if self._wake else None
        with closing(_open(source, wake=wake, block=block)) as feed:
            known = isinstance(feed, Feed) and (feed.regular or (replayed and self.position.offset > 0))
            if isinstance(feed, Feed) and known:
                feed.skip(self.position.offset)
            self._read(feed, form, fresh=not known)
        if not self._stopping:
            self._close()
        self._settle()
        self._acknowledge()
        self.progress.tick(self._metrics(), final=True)
        return self.summary()

    def _read(self, feed: Feed | MllpFeed, form: str | None, *, fresh: bool) -> None:
        lines: Lines | None = None
        carry, block = b"", b"-"
        while block and not self._stopping:
            found = self._next(feed)
            began = time.perf_counter()
            if found is None:
                return
            block, data = found, carry + found
            if lines is None and data:
                lines = self._lines(form or guess_form(feed.name, data))
            if lines is None:
                return
            if isinstance(lines, CsvLines) and lines.header is None:
                data = self._header(lines, data, fresh=fresh, last=not block)
            ready = not isinstance(lines, CsvLines) or lines.header is not None
            carry = self._take(lines, data, last=not block, began=began) if ready else data

    def _next(self, feed: Feed | MllpFeed) -> bytes | None:
        if feed.answers:  # whoever sent it may forget it only when it is stored
            self._settle()
            feed.acknowledge()
        return feed.read()

    def _lines(self, form: str) -> Lines:
        """The reader of the form that the stream was begun in."""
        self.position.form = self.position.form or form
        if self.position.form == "hl7":
            from reticent.connectors.hl7 import Hl7Lines

            return Hl7Lines(self.policy)
        return JsonLines(self.policy) if self.position.form == "ndjson" else CsvLines(self.policy)

    def _header(self, lines: CsvLines, data: bytes, *, fresh: bool, last: bool) -> bytes:
        """Takes the header off the data, or from the position when the file is read on from its middle."""
        if self.position.header is not None and not fresh:
            lines.header, lines.delimiter = self.position.header, self.position.delimiter
            return data
        end = data.find(b"\n") + 1 or (len(data) if last else 0)
        if end:
            lines.begin(data[:end])
            self.position.header, self.position.delimiter = lines.header, lines.delimiter
            self.position.offset += end
        return data[end:]

    def _take(self, lines: Lines, data: bytes, *, last: bool, began: float) -> bytes:
        """Releases the complete records of the data; gives back the beginning of the next one."""
        while data:
            end = lines.end(data, last=last)
            if end:
                self._release(lines.parse(data[:end]), end, began)
                data = data[end:]
            elif last or len(data) > LONGEST:
                # A quote that is never closed: its line is set aside, what follows may be fine.
                end = data.find(b"\n") + 1 or len(data)
                bad = [(0, "a quote is opened and never closed", data[:end])]
                self._release(nothing(self.policy, 1, bad), end, began)
                data = data[end:]
            else:
                break
        return data

    def _release(self, batch: Batch, size: int, began: float) -> None:
        if not batch.total:
            self.position.offset += size
            return
        batch = screened(batch, self.policy, self._needed())
        if self.position.numeric is None and batch.table.num_rows:
            typed = self.position.form == "ndjson"
            self.position.numeric = list(batch.typed) if typed else numeric_columns(batch.table, self.policy)
        first = self.position.seq
        payload, journal, snapshot = self._place(batch, (batch.rows + first).astype(np.uint64))
        self.position.offset += size
        self.position.seq += batch.total
        self.position.out += len(payload)
        self.position.dead += len(batch.bad)
        bad = [(first + number, why, line) for number, why, line in batch.bad]
        position = Position(**self.position.__dict__)
        self._submit(_Commit(payload, position, journal, snapshot, bad, batch.table.num_rows, began))

    def _needed(self) -> tuple[str, ...]:
        """Quasi-identifiers that must be numbers."""
        if isinstance(self.publisher, Immediate):
            return ()
        specs = {name: self.policy.columns[name].hierarchy for name in self.policy.quasi}
        return tuple(name for name, spec in specs.items() if spec is not None and spec.kind == "intervals")

    def _place(self, batch: Batch, seqs: Any) -> tuple[bytes, bytes | None, bytes | None]:
        numeric = self.position.numeric or []
        if not isinstance(self.publisher, Immediate):
            castle: Castle = self.publisher  # type: ignore[assignment]
            payload = record_lines(castle.push(batch.table, seqs=seqs), self.policy, numeric)
            return payload, None, self.publisher.snapshot()
        if not batch.table.num_rows:
            return b"", None, None
        if self._wire is None:
            self._wire = Wire(self.policy, () if self.position.form == "ndjson" else numeric)
        records = self.publisher.read(batch.table, seqs)
        payload = self._wire.lines(
            batch.table, records, self.publisher.place(records), self.publisher.values, batch.typed
        )
        journal = records.to_bytes()
        self._journal += len(journal)
        if self._journal <= max(_JOURNAL, self._whole):
            return payload, journal, None
        snapshot = self.publisher.snapshot()
        self._journal, self._whole = 0, len(snapshot)
        return payload, None, snapshot

    def _close(self) -> None:
        """The input has ended: what is held is released or suppressed."""
        releases = self.publisher.close()
        if not releases and isinstance(self.publisher, Immediate):
            return
        payload = record_lines(releases, self.policy, self.position.numeric or [])
        self.position.out += len(payload)
        position = Position(**self.position.__dict__)
        snapshot = self.publisher.snapshot()
        self._submit(_Commit(payload, position, None, snapshot, [], 0, time.perf_counter()))

    # To disk and out

    def _submit(self, commit: _Commit) -> None:
        """Hands a batch to the writer; waits for the one before it, so that a slow sink slows the source."""
        self._settle()
        self._pending = self._writer.submit(self._write, commit)
        self.progress.tick(self._metrics())

    def _settle(self) -> None:
        if self._pending is not None:
            self._pending.result()
            self._pending = None

    def _write(self, commit: _Commit) -> None:
        number = None
        packed = pack(commit.payload)
        with self._store.transaction() as tx:
            if self._unsent >= 0:
                tx.mark_sent(NAME, self._unsent)
                tx.forget_sent(NAME, self._unsent)
            if commit.payload:
                number = tx.put_outbox(NAME, *packed, position=commit.position.text())
            else:
                tx.set_position(NAME, commit.position.text())
            if commit.snapshot is not None:
                tx.put_snapshot(NAME, commit.snapshot)
            elif commit.journal is not None:
                tx.append_delta(NAME, commit.journal)
            for seq, why, line in commit.bad:
                tx.dead_letter(NAME, str(seq), why, line)
        for seq, why, line in commit.bad:
            if self.on_dead is not None:
                self.on_dead(seq, why, line)
        self._unsent = -1
        if number is not None:
            self._sink.write(commit.payload)
            self._unsent = number
        self.progress.batch(commit.records, time.perf_counter() - commit.began)

    def _acknowledge(self) -> None:
        """Notes that everything has been sent."""
        if self._unsent < 0:
            return
        with self._store.transaction() as tx:
            tx.mark_sent(NAME, self._unsent)
            tx.forget_sent(NAME, self._unsent)
        self._unsent = -1

    def _metrics(self) -> dict[str, float]:
        if isinstance(self.publisher, Immediate):
            return self.publisher.metrics()
        castle: Castle = self.publisher  # type: ignore[assignment]
        return castle.metrics()

    def summary(self) -> Summary:
        """What the stream has done so far, over all its runs."""
        guarantee: Guarantee = getattr(self.publisher, "guarantee", None)  # type: ignore[assignment]
        if guarantee is None:
            raise InternalError("A stream without a guarantee.")
        counts, seconds = self.publisher.counts, self.progress.seconds
        return Summary(counts, self.position.dead, seconds, guarantee, self._metrics())


def _open(source: str, *, wake: int | None, block: int) -> Feed | MllpFeed:
    if source.startswith("mllp://"):
        from reticent.connectors.hl7 import MllpFeed

        return MllpFeed(source, wake=wake)
    return Feed(source, wake=wake, block=block)
