"""A session: one consumer, one producer and their shards, until the first failure that cannot be undone.

The state in memory is ahead of the committed state by the current transaction (`reticent.connectors.kafka.transaction`)
and the next batch. After a failed transaction, a session that is still in its group reloads its shards and continues,
without disturbing other members. Otherwise the session ends, and a new one starts from the committed state.
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
"""Consecutive failed transactions after which the session is given up."""

DeadLetter = tuple[str, str, bytes]
"""Position, reason and payload of a record that cannot be released."""
_Input = tuple["npt.NDArray[np.int64]", list[bytes | None]]
"""Offsets and values of messages."""


@dataclass(frozen=True)
class Settings:
    """Settings of a worker.

    Attributes:
        group: the consumer group; its workers share the partitions.
        batch: maximum number of records per transaction.
        linger: maximum seconds that a record waits for a fuller batch.
        snapshot_every: minimum number of a shard's records between two snapshots; more while its journal is shorter
            than the state.
        session: seconds after which a silent worker loses its partitions.
        patience: seconds of broker failures after which the worker gives up.
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
        """Seconds a transaction may last; then the broker aborts it, so that consumers of the sink do not wait."""
        return max(10.0, self.session)


@dataclass(frozen=True)
class Job:
    """The task of a worker: source, sink, state, policy, and the functions for dead letters and the shard count."""

    source: Address
    sink: Address
    state: StateTopic
    policy: Policy
    rng: Rng
    settings: Settings
    store_dead_letters: Callable[[list[DeadLetter]], None]
    pin: Callable[[int], None]
    partition_check: PartitionCheck | None = None
    """The check that all records of a person are in one partition; None if the method keeps no person state."""


@dataclass
class Totals:
    """Numbers of committed and rejected records."""

    published: int = 0
    dead: int = 0


@dataclass
class OwnedShard:
    """A shard of this worker: its next and its committed offset, and the journal records since its snapshot."""

    shard: StreamPublication
    position: int
    committed: int = 0
    journal_records: int = 0
    codebook_sent: bool = False


class Session:
    """Reads, anonymizes and publishes records; `step` handles one batch."""

    def __init__(self, job: Job, name: str, totals: Totals) -> None:
        """Open the clients; an earlier producer of the same name is fenced and its transaction aborted."""
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
        """Whether the brokers have answered since the start, or a transaction is committed."""
        return self._committed_once or self._liveness.is_healthy

    def step(self) -> None:
        """Read and anonymize a batch while the previous one is committed, then start its transaction."""
        start = time.monotonic()
        parts = [self._release(partition, *read) for partition, read in self._read().items()]
        try:
            if self._await_commit(parts) and parts:
                self._transaction = Transaction(self._producer, self._route, parts, self._membership(start))
        except HungError:
            self._hung = True
            raise
        self._liveness.check({number: owned.position for number, owned in self.shards.items()})

    def finish(self) -> None:
        """Wait for the current transaction."""
        try:
            self._await_commit()
        except HungError:
            self._hung = True
            raise

    def close(self) -> None:
        """Leave the group and close the clients; abandon a client that does not close in time."""
        self._closing = True
        if self._transaction is not None:
            self._transaction.wait()
            self._hung = self._hung or isinstance(self._transaction.error, HungError)
            if self._transaction.error is None:
                self._count_commit(self._transaction)
        self.shards.clear()
        # The producer first: its open transaction blocks the workers that take over.
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
                )  # otherwise its destructor would wait forever for its threads
            raise
        return producer

    # Assignment of partitions

    def _assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Take over shards with their state; reading continues at the position in the state."""
        if self._closing:
            # The group may assign partitions while the consumer leaves: do not read them.
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
        # The broker answers only when no transaction on these offsets is open; a dead worker's one lasts up to a lease.
        # This thread must ask: the client blocks other threads during a callback.
        committed = self._consumer.committed(places, timeout=lease + 2 * _ASK)
        for place in committed:
            if place.error is not None:
                raise KafkaException(place.error)
        saved = self._job.state.load({place.partition: place.offset for place in committed}, lease)
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
            self._transaction.wait()  # commit while the partitions are still ours
        for place in partitions:
            self.shards.pop(place.partition, None)

    # Transactions

    def _read(self) -> dict[int, _Input]:
        with pause_gc():
            messages = self._consumer.consume(self._settings.batch, self._settings.linger)
            if self._failure is not None:
                raise self._failure
            return self._split_by_partition(messages)

    def _split_by_partition(self, messages: list[Message]) -> dict[int, _Input]:
        # Use map instead of loops: the Python work per message limits a worker's throughput.
        if events := list(filter(Message.error, messages)):
            for message in events:
                self._handle_event(message)
            messages = list(filterfalse(Message.error, messages))
        partitions = np.fromiter(map(Message.partition, messages), np.int64, len(messages))
        offsets = np.fromiter(map(Message.offset, messages), np.int64, len(messages))
        values = list(map(Message.value, messages))
        batches: dict[int, _Input] = {}
        for partition, owned in self.shards.items():
            selected = partitions == partition
            if not selected.any():
                continue
            self._liveness.note_activity(partition)
            selected &= offsets >= owned.position
            if selected.any():
                batches[partition] = offsets[selected], list(compress(values, selected.tolist()))
        return batches

    def _handle_event(self, message: Message) -> None:
        """Handle an event that is not a record: the end of a partition, or an error."""
        error = message.error()
        if error is None:
            return
        if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - a public constant
            self._liveness.note_activity(int(message.partition() or 0), int(message.offset() or 0))
            return
        LOG.warning("reading: %s", error.name())
        if error.fatal():
            raise KafkaException(error)

    def _await_commit(self, ahead: Sequence[ShardBatch] = ()) -> bool:
        """Wait for the current transaction; return False if it and all later batches must be repeated."""
        transaction, self._transaction = self._transaction, None
        if transaction is None:
            return True
        try:
            transaction.finish()
        except KafkaException as error:
            if not error.args[0].txn_requires_abort() or self._failures >= _REWINDS:
                raise
            LOG.info("a transaction is repeated after %s", error.args[0].name())
            self._failures += 1
            retry_call(
                lambda: self._producer.abort_transaction(CALL_TIMEOUT), "abort_transaction", self._settings.lease
            )
            self._rewind({part.partition for part in (*transaction.parts, *ahead)})
            return False
        self._failures = 0
        self._count_commit(transaction)
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

    def _membership(self, start: float) -> object:
        """Return the group membership, with which the broker refuses commits of a worker that lost its partitions.

        A consumer that was removed from the group has an empty membership, which the broker would accept: refuse it
        here.
        """
        member = self._consumer.consumer_group_metadata()
        if not self._consumer.memberid() or time.monotonic() - start > self._settings.lease:
            raise SessionLostError("no longer in the group")
        return member

    def _rewind(self, partitions: Iterable[int]) -> None:
        """Discard uncommitted work: reload the state and continue reading from there."""
        owned = [number for number in partitions if number in self.shards]
        self._take_over(owned)
        for number in owned:
            at = TopicPartition(self._job.source.topic, number, self.shards[number].position)
            try:
                call_with_deadline(partial(self._consumer.seek, at), "seek")
            except HungError as error:
                raise SessionLostError(str(error)) from None  # the producer works and can be closed

    def _release(self, partition: int, offsets: npt.NDArray[np.int64], values: list[bytes | None]) -> ShardBatch:
        owned = self.shards[partition]
        batch = owned.shard.reader.objects(values)
        if batch.rejected:
            place = f"{self._job.source.topic}/{partition}"
            self._job.store_dead_letters(
                [(f"{place}/{offsets[row]}", reason, payload) for row, reason, payload in batch.rejected]
            )
        if (placement := self._job.partition_check) is not None:
            placement.check(partition, batch.table.column(placement.person))
        released = owned.shard.take(batch, offsets[batch.rows].astype(np.uint64))
        owned.position = int(offsets[-1]) + 1
        owned.journal_records += released.records
        # Write a snapshot when the journal has grown long.
        short = owned.journal_records < self._settings.snapshot_every or not owned.shard.snapshot_cheaper
        journal = released.journal if short else None
        codebook_lines, owned.codebook_sent = [] if owned.codebook_sent else [owned.shard.codebook().rstrip()], True
        part = ShardBatch(
            partition,
            owned.position,
            released.records,
            len(batch.rejected),
            codebook_lines,
            released.lines,
            is_snapshot=journal is None,
        )
        if journal is None:
            part.state, owned.journal_records = state_messages("snapshot", owned.shard.snapshot(), owned.position), 0
        else:
            part.state = state_messages("journal", journal, owned.position)
        return part


def producer_settings(sink: Address, settings: Settings, name: str) -> dict[str, Any]:
    """Return the producer settings: transactions under a fixed name."""
    return {
        **sink.client,
        "transactional.id": name,
        "transaction.timeout.ms": int(settings.lease * 1000),
        "linger.ms": 2,
        "compression.type": "lz4",
        # A whole transaction must fit: a full queue in the middle could change the order of lines.
        "queue.buffering.max.messages": _LINES_PER_RECORD * settings.batch + _QUEUE,
        **settings.client,
    }


def consumer_settings(source: Address, settings: Settings) -> dict[str, Any]:
    """Return the consumer settings: committed records only, as a member of the group."""
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
        # Read ahead, and fetch as soon as there is room: the default pause of one second halves the throughput.
        "queued.min.messages": max(100_000, 5 * settings.batch),
        "fetch.queue.backoff.ms": 5,
        **settings.client,
    }
