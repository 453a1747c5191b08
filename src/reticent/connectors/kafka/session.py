"""One consumer, one producer and the shards they hold, until the first failure they cannot undo; then all is thrown away.

What is in memory runs ahead of what is committed by the transaction that is on its way (`reticent.connectors.kafka.transaction`) and by the
batch that is placed meanwhile. When a transaction fails, a session that still has its place in the group reads its shards again and goes
on (other members are not disturbed); one that does not ends, and a new one starts from what is committed.
"""

from __future__ import annotations

import contextlib
import logging
import time
from dataclasses import dataclass, field
from functools import partial
from itertools import compress, filterfalse
from typing import TYPE_CHECKING, Any

import numpy as np
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from reticent.connectors.kafka.client import (
    CALL_TIMEOUT,
    HungError,
    SessionLostError,
    call_with_deadline,
    pause_gc,
    retry_call,
)
from reticent.connectors.kafka.liveness import LivenessCheck
from reticent.connectors.kafka.state import SavedState, StateTopic, state_messages
from reticent.connectors.kafka.transaction import Route, ShardBatch, Transaction
from reticent.errors import ReticentError
from reticent.publication.stream import StreamPublication

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy.typing as npt

    from reticent.connectors.kafka.address import Address
    from reticent.connectors.kafka.partition_check import PartitionCheck
    from reticent.engine.rng import Rng
    from reticent.policy import Policy

LOG = logging.getLogger(__name__)
_ASK = 10.0
_LINES_PER_RECORD, _QUEUE = 2, 100_000
_REWINDS = 5
"""Transactions that may fail one after the other before the session is given up."""

DeadLetter = tuple[str, str, bytes]
"""Position, reason and payload of a record that cannot be released."""
_Input = tuple["npt.NDArray[np.int64]", list[bytes | None]]
"""Offsets and values of messages."""


@dataclass(frozen=True)
class Settings:
    """How a worker works.

    Attributes:
        group: the consumer group; its workers share the partitions.
        batch: records per transaction at most.
        linger: seconds to wait for a fuller batch; the longest that a record waits.
        snapshot_every: records of a shard between two snapshots of its state at least; more while its journal is shorter than
            the state.
        session: seconds after which a silent worker loses its partitions.
        patience: seconds of failing brokers after which the worker gives up.
        allow_republication: begin although other publications stand in the store.
    """

    group: str = "reticent"
    batch: int = 20_000
    linger: float = 0.05
    snapshot_every: int = 100_000
    session: float = 10.0
    patience: float = 120.0
    allow_republication: bool = False
    client: Mapping[str, Any] = field(default_factory=dict)

    @property
    def lease(self) -> float:
        """Seconds a transaction may last: then the broker ends it, and insisting on it would only hold readers up."""
        return max(10.0, self.session)


@dataclass(frozen=True)
class Job:
    """What a worker does: from where to where, under which policy, where dead letters go, and who knows how many shards there are."""

    source: Address
    sink: Address
    state: StateTopic
    policy: Policy
    rng: Rng
    settings: Settings
    store_dead_letters: Callable[[list[DeadLetter]], None]
    pin: Callable[[int], None]
    partition_check: PartitionCheck | None = None
    """Where persons have to come back to their shard."""


@dataclass
class Totals:
    """Records that are committed, and those set aside."""

    published: int = 0
    dead: int = 0


@dataclass
class OwnedShard:
    """A shard that this worker has: where it reads next, what is committed, and how much of its journal lies behind its snapshot."""

    shard: StreamPublication
    position: int
    committed: int = 0
    journal_records: int = 0
    codebook_sent: bool = False


class Session:
    """Reads, places and publishes; `step` does one batch."""

    def __init__(self, job: Job, name: str, totals: Totals) -> None:
        """Opens the clients; a producer of an earlier session under the same name is fenced, its transaction ended."""
        self._job, self._totals, self._settings = job, totals, job.settings
        self.shards: dict[int, OwnedShard] = {}
        self._failure: ReticentError | None = None
        self._failures = 0
        self._closing = self._hung = self._committed_once = False
        self._transaction: Transaction | None = None
        self._route = Route(job.source.topic, job.sink.topic, job.state.address.topic, job.settings.lease)
        job.state.drop_client()
        self._producer = self._open_producer(name)
        self._consumer = Consumer(consumer_settings(job.source, job.settings))
        self._liveness = LivenessCheck(self._consumer, job.source.topic, job.settings.lease)
        self._consumer.subscribe(
            [job.source.topic], on_assign=self._assign, on_revoke=self._revoke, on_lost=self._revoke
        )

    @property
    def is_healthy(self) -> bool:
        """Whether the brokers have answered since it was opened: a transaction is committed, or nothing was there to commit."""
        return self._committed_once or self._liveness.is_healthy

    def step(self) -> None:
        """Waits for records and places them; what was placed before is committed meanwhile, in one transaction."""
        began = time.monotonic()
        parts = [self._release(partition, *read) for partition, read in self._read().items()]
        try:
            if self._await_commit(parts) and parts:
                self._transaction = Transaction(self._producer, self._route, parts, self._membership(began))
        except HungError:
            self._hung = True
            raise
        self._liveness.check({number: held.position for number, held in self.shards.items()})

    def finish(self) -> None:
        """Waits for what is on its way."""
        try:
            self._await_commit()
        except HungError:
            self._hung = True
            raise

    def close(self) -> None:
        """Leaves the group and lets the clients go; what does not end in time is left behind."""
        self._closing = True
        if self._transaction is not None:
            self._transaction.wait()
            self._hung = self._hung or isinstance(self._transaction.error, HungError)
            if self._transaction.error is None:
                self._count_commit(self._transaction)
        self.shards.clear()
        # The producer first: the transaction it has open keeps the successors of this worker waiting.
        for close in (() if self._hung else (self._producer.close,)) + (self._consumer.close,):
            with contextlib.suppress(Exception):
                call_with_deadline(close, "closing")

    def _open_producer(self, name: str) -> Producer:
        producer = Producer(producer_settings(self._job.sink, self._settings, name))
        try:
            retry_call(
                lambda: producer.init_transactions(CALL_TIMEOUT), "init_transactions", self._settings.lease + _ASK
            )
        except KafkaException:
            with contextlib.suppress(Exception):
                call_with_deadline(
                    producer.close, "closing"
                )  # what takes it out of memory would wait for its threads without end
            raise
        return producer

    # Partitions come and go

    def _assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Takes shards over with their state; reading goes on where the state says."""
        if self._closing:
            # The group may hand out partitions while the consumer leaves it: nothing is to be read any more.
            return
        try:
            numbers = [place.partition for place in partitions]
            if numbers and max(numbers) >= self._job.state.shards:
                self._job.state.prepare(self._job.source, self._job.sink)
                self._job.pin(self._job.state.shards)
            self._take_over(numbers)
        except ReticentError as error:
            self._failure = error
            return
        for place in partitions:
            place.offset = self.shards[place.partition].position
        consumer.incremental_assign(partitions)

    def _take_over(self, partitions: list[int]) -> None:
        if not partitions:
            return
        lease = self._settings.lease
        places = [TopicPartition(self._job.source.topic, number) for number in partitions]
        # The broker answers when no transaction on these offsets is open: that of a dead worker lasts a lease.
        # Asked by this thread: the client lets no other one in while it calls back.
        committed = self._consumer.committed(places, timeout=lease + 2 * _ASK)
        for known in committed:
            if known.error is not None:
                raise KafkaException(known.error)
        saved = self._job.state.load({known.partition: known.offset for known in committed}, lease)
        for number, state in saved.items():
            self.shards[number] = self._restore(number, state)
            LOG.info("shard %d taken over at offset %d", number, self.shards[number].position)
        self._liveness.track(partitions)

    def _restore(self, number: int, saved: SavedState) -> OwnedShard:
        shard = StreamPublication(self._job.policy, rng=self._job.rng, shard=number, state=saved.snapshot)
        before = shard.engine.counts.input
        for entry in saved.journal:
            shard.replay(entry)
        at, journaled = saved.position or 0, shard.engine.counts.input - before
        return OwnedShard(shard, at, at, journaled, codebook_sent=not saved.empty)

    def _revoke(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        if self._transaction is not None:
            self._transaction.wait()  # its partitions are still ours: so it need not be repeated by others
        for place in partitions:
            self.shards.pop(place.partition, None)

    # One transaction

    def _read(self) -> dict[int, _Input]:
        with pause_gc():
            messages = self._consumer.consume(self._settings.batch, self._settings.linger)
            if self._failure is not None:
                raise self._failure
            return self._split_by_partition(messages)

    def _split_by_partition(self, messages: list[Message]) -> dict[int, _Input]:
        # Mapped, not looped over: what is done for each message in Python is what limits a worker.
        if odd := list(filter(Message.error, messages)):
            for message in odd:
                self._handle_event(message)
            messages = list(filterfalse(Message.error, messages))
        partitions = np.fromiter(map(Message.partition, messages), np.int64, len(messages))
        offsets = np.fromiter(map(Message.offset, messages), np.int64, len(messages))
        values = list(map(Message.value, messages))
        batches: dict[int, _Input] = {}
        for partition, held in self.shards.items():
            mine = partitions == partition
            if not mine.any():
                continue
            self._liveness.note_activity(partition)
            mine &= offsets >= held.position
            if mine.any():
                batches[partition] = offsets[mine], list(compress(values, mine.tolist()))
        return batches

    def _handle_event(self, message: Message) -> None:
        """What comes instead of a record: word that a partition is read to its end, or of an error."""
        error = message.error()
        if error is None:
            return
        if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
            self._liveness.note_activity(int(message.partition() or 0), int(message.offset() or 0))
            return
        LOG.warning("reading: %s", error.name())
        if error.fatal():
            raise KafkaException(error)

    def _await_commit(self, ahead: Sequence[ShardBatch] = ()) -> bool:
        """Waits for the transaction that is on its way; False where it has to be repeated, and all that was placed behind it, too."""
        flight, self._transaction = self._transaction, None
        if flight is None:
            return True
        try:
            flight.finish()
        except KafkaException as error:
            if not error.args[0].txn_requires_abort() or self._failures >= _REWINDS:
                raise
            LOG.info("a transaction is repeated after %s", error.args[0].name())
            self._failures += 1
            retry_call(
                lambda: self._producer.abort_transaction(CALL_TIMEOUT), "abort_transaction", self._settings.lease
            )
            self._rewind({part.partition for part in (*flight.parts, *ahead)})
            return False
        self._failures = 0
        self._count_commit(flight)
        return True

    def _count_commit(self, transaction: Transaction) -> None:
        self._committed_once = True
        for part in transaction.parts:
            self._totals.published += part.records
            self._totals.dead += part.dead
            if part.partition in self.shards:
                self.shards[part.partition].committed = part.position
            if part.snapshot_start:
                self._job.state.prune(part.partition, part.snapshot_start)

    def _membership(self, began: float) -> object:
        """The place in the group, by which the broker refuses what a worker without the partitions would commit.

        A consumer that was put out of the group has an empty place, and the broker lets that one commit: it must not.
        """
        member = self._consumer.consumer_group_metadata()
        if not self._consumer.memberid() or time.monotonic() - began > self._settings.lease:
            raise SessionLostError("no longer in the group")
        return member

    def _rewind(self, partitions: Iterable[int]) -> None:
        """Forgets what was not committed: the state is read again, and reading goes on from there."""
        mine = [number for number in partitions if number in self.shards]
        self._take_over(mine)
        for number in mine:
            at = TopicPartition(self._job.source.topic, number, self.shards[number].position)
            try:
                call_with_deadline(partial(self._consumer.seek, at), "seek")
            except HungError as error:
                raise SessionLostError(str(error)) from None  # the producer is sound, and may be closed

    def _release(self, partition: int, offsets: npt.NDArray[np.int64], values: list[bytes | None]) -> ShardBatch:
        held = self.shards[partition]
        batch = held.shard.reader.objects(values)
        if batch.rejected:
            place = f"{self._job.source.topic}/{partition}"
            self._job.store_dead_letters(
                [(f"{place}/{offsets[row]}", reason, payload) for row, reason, payload in batch.rejected]
            )
        if (placement := self._job.partition_check) is not None:
            placement.check(partition, batch.table.column(placement.person))
        released = held.shard.take(batch, offsets[batch.rows].astype(np.uint64))
        held.position = int(offsets[-1]) + 1
        held.journal_records += released.records
        # A snapshot when the journal has grown long.
        short = held.journal_records < self._settings.snapshot_every or not held.shard.snapshot_cheaper
        journal = released.journal if short else None
        told, held.codebook_sent = [] if held.codebook_sent else [held.shard.codebook().rstrip()], True
        part = ShardBatch(
            partition,
            held.position,
            released.records,
            len(batch.rejected),
            told,
            released.lines,
            is_snapshot=journal is None,
        )
        if journal is None:
            part.state, held.journal_records = state_messages("snapshot", held.shard.snapshot(), held.position), 0
        else:
            part.state = state_messages("journal", journal, held.position)
        return part


def producer_settings(sink: Address, settings: Settings, name: str) -> dict[str, Any]:
    """How lines are sent: in transactions under a name."""
    return {
        **sink.client,
        "transactional.id": name,
        "transaction.timeout.ms": int(settings.lease * 1000),
        "linger.ms": 2,
        "compression.type": "lz4",
        # A transaction fits in whole: a queue that is full in the middle of it could change the order of lines.
        "queue.buffering.max.messages": _LINES_PER_RECORD * settings.batch + _QUEUE,
        **settings.client,
    }


def consumer_settings(source: Address, settings: Settings) -> dict[str, Any]:
    """How records are read: committed ones only, as a member of the group."""
    return {
        **source.client,
        "group.id": settings.group,
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        "enable.partition.eof": True,
        "partition.assignment.strategy": "cooperative-sticky",
        "session.timeout.ms": int(settings.session * 1000),
        "heartbeat.interval.ms": int(settings.session * 250),
        "topic.metadata.refresh.interval.ms": 10_000,
        # The client reads ahead, and looks at once when there is room again: its second of pause costs half the rate.
        "queued.min.messages": max(100_000, 5 * settings.batch),
        "fetch.queue.backoff.ms": 5,
        **settings.client,
    }
