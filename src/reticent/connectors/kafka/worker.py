"""One worker of a consumer group: reads records, places them, publishes; read-process-write in one transaction.

Guarantee: the published lines, the state of the shard and the input position become visible together or not at all, so
    that a reader with `isolation.level=read_committed` sees every record once, in one group, whatever dies. A batch that
    is computed again gives the same lines, because every choice is a function of (key of the stream, shard, offset): even
    one who reads uncommitted data never sees a record in two groups. A worker that lost a partition cannot commit for it:
    the broker compares the group's generation.
Not covered: sinks read without `read_committed` see lines twice; topics whose offsets start anew under the same name.
Cost: a transaction per batch, about ten milliseconds; 28 bytes of journal per record.
Reference: Kafka improvement proposals 98 and 447.
Differences from them: none.
"""

from __future__ import annotations

import logging
import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent.connectors.kafka.state import Headers, Saved, StateTopic, entries
from reticent.connectors.shards import Form, Record, Shard
from reticent.errors import ConnectorError, ReticentError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from confluent_kafka import Consumer, Message, Producer, TopicPartition

    from reticent.connectors.kafka.address import Address
    from reticent.engine.rng import Rng
    from reticent.policy import Policy

LOG = logging.getLogger(__name__)
_ASK = 10.0


@dataclass(frozen=True)
class Settings:
    """How a worker works.

    Attributes:
        group: the consumer group; its workers share the partitions.
        batch: records per transaction at most.
        linger: seconds to wait for a fuller batch; the longest that a record waits.
        snapshot_every: records of a shard between two snapshots of its state.
        session: seconds after which a silent worker loses its partitions.
        patience: seconds of failing brokers after which the worker gives up.
    """

    group: str = "reticent"
    batch: int = 5_000
    linger: float = 0.05
    snapshot_every: int = 100_000
    session: float = 10.0
    patience: float = 120.0
    client: Mapping[str, Any] = field(default_factory=dict)


_Input = tuple[int, bytes]
"""Offset and value of a message."""


@dataclass
class _Held:
    """A shard that this worker has: where it reads next, and how much of its journal lies behind its snapshot."""

    shard: Shard
    position: int
    journaled: int = 0


DeadLetter = tuple[str, str, bytes]
"""Position, reason and payload of a record that cannot be released."""


class Worker:
    """Reads from one topic, writes to another; `run` works until it is told to stop."""

    def __init__(
        self,
        route: tuple[Address, Address, StateTopic],
        policy: Policy,
        rng: Rng,
        settings: Settings,
        bury: Callable[[list[DeadLetter]], None],
    ) -> None:
        self._source, self._sink, self._state = route
        self._policy, self._rng, self._settings, self._bury = policy, rng, settings, bury
        self._form = Form(policy)
        self._shards: dict[int, _Held] = {}
        self._failure: ReticentError | None = None
        self.published = 0
        self.dead = 0

    @property
    def shards(self) -> dict[int, Shard]:
        """The shards this worker has now."""
        return {number: held.shard for number, held in self._shards.items()}

    def run(self, going: Callable[[Worker], bool]) -> None:
        """Works while `going` says so; starts afresh after a failure of the brokers, gives up when it lasts."""
        from confluent_kafka import KafkaException

        failing: float | None = None
        while True:
            done = self.published
            try:
                self._session(going)
            except KafkaException as error:
                now = time.monotonic()
                failing = now if failing is None or self.published > done else failing
                if now - failing > self._settings.patience:
                    raise ConnectorError(
                        f"The brokers have not taken a batch for {self._settings.patience:.0f} s "
                        f"({error.args[0].name()}).",
                        hint="Check them and start again; nothing is lost.",
                    ) from None
                LOG.warning("starting afresh after %s", error.args[0].name())
            else:
                return

    @property
    def _lease(self) -> float:
        """Seconds a transaction may last: then the broker ends it, and insisting on it would only hold readers up."""
        return max(10.0, self._settings.session)

    def positions(self) -> dict[int, int]:
        """The next input offset of every shard this worker has."""
        return {number: held.position for number, held in self._shards.items()}

    def _session(self, going: Callable[[Worker], bool]) -> None:
        """One consumer and one producer, until the end or the first failure."""
        producer, consumer = self._producer(), self._consumer()
        try:
            consumer.subscribe(
                [self._source.topic], on_assign=self._assign, on_revoke=self._revoke, on_lost=self._revoke
            )
            while going(self):
                messages = consumer.consume(self._settings.batch, self._settings.linger)
                if self._failure is not None:
                    raise self._failure
                batches = self._sorted(messages)
                if batches:
                    self._transact(producer, consumer, batches)
        finally:
            self._shards.clear()
            consumer.close()

    def _producer(self) -> Producer:
        from confluent_kafka import Producer

        producer = Producer(
            {
                **self._sink.client,
                "transactional.id": f"reticent-{self._settings.group}-{uuid.uuid4()}",
                "transaction.timeout.ms": int(self._lease * 1000),
                "linger.ms": 2,
                "compression.type": "lz4",
                **self._settings.client,
            }
        )
        producer.init_transactions(self._settings.patience)
        return producer

    def _consumer(self) -> Consumer:
        from confluent_kafka import Consumer

        return Consumer(
            {
                **self._source.client,
                "group.id": self._settings.group,
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "partition.assignment.strategy": "cooperative-sticky",
                "session.timeout.ms": int(self._settings.session * 1000),
                "heartbeat.interval.ms": int(self._settings.session * 250),
                "topic.metadata.refresh.interval.ms": 10_000,
                **self._settings.client,
            }
        )

    # Partitions come and go

    def _assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Takes shards over with their state; reading goes on where the state says."""
        try:
            self._state.prepare(self._source, self._sink)
            for known in consumer.committed(partitions, timeout=_ASK * 3):
                held = self._take_over(known.partition, known.offset)
                self._shards[known.partition] = held
                at = next(p for p in partitions if p.partition == known.partition)
                at.offset = held.position
        except ReticentError as error:
            self._failure = error
            return
        consumer.incremental_assign(partitions)

    def _take_over(self, partition: int, committed: int) -> _Held:
        saved: Saved = self._state.load(partition, committed)
        shard = Shard(self._policy, self._rng, partition, saved.snapshot)
        before = shard.rows
        for entry in saved.journal:
            shard.replay(entry)
        LOG.info("shard %d taken over at offset %s", partition, saved.position or 0)
        return _Held(shard, saved.position or 0, shard.rows - before)

    def _revoke(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        for gone in partitions:
            self._shards.pop(gone.partition, None)

    # One transaction

    def _sorted(self, messages: list[Message]) -> dict[int, list[_Input]]:
        batches: dict[int, list[_Input]] = {}
        for message in messages:
            error = message.error()
            if error is not None:
                LOG.warning("reading: %s", error.name())
                continue
            partition, offset = int(message.partition() or 0), int(message.offset() or 0)
            held = self._shards.get(partition)
            if held is not None and offset >= held.position:
                batches.setdefault(partition, []).append((offset, bytes(message.value() or b"")))
        return batches

    def _transact(self, producer: Producer, consumer: Consumer, batches: dict[int, list[_Input]]) -> None:
        from confluent_kafka import KafkaException, TopicPartition

        producer.begin_transaction()
        try:
            prunes: list[_Prune] = []
            for partition, messages in batches.items():
                prunes += self._release(producer, partition, messages)
            positions = [TopicPartition(self._source.topic, p, self._shards[p].position) for p in batches]
            metadata = consumer.consumer_group_metadata()
            _insist(lambda: producer.send_offsets_to_transaction(positions, metadata, _ASK), self._lease)
            _insist(lambda: producer.commit_transaction(_ASK), self._lease)
        except BaseException as error:
            # The state in memory is ahead of what is committed: it is thrown away with the session.
            if not isinstance(error, KafkaException) or error.args[0].txn_requires_abort():
                _abort(producer)
            raise
        for prune in prunes:
            self._state.prune(prune.partition, prune.first)

    def _release(self, producer: Producer, partition: int, messages: list[_Input]) -> list[_Prune]:
        held = self._shards[partition]
        records: list[Record] = []
        offsets: list[int] = []
        bad: list[DeadLetter] = []
        for offset, value in messages:
            record = self._form.read(value)
            if isinstance(record, str):
                bad.append((f"{self._source.topic}/{partition}/{offset}", record, value))
            else:
                records.append(record)
                offsets.append(offset)
        if bad:
            self._bury(bad)
            self.dead += len(bad)
        taken = held.shard.take(records, np.array(offsets, dtype=np.uint64))
        held.position = messages[-1][0] + 1
        held.journaled += len(records)
        for line in taken.lines:
            _send(producer, self._sink.topic, line, partition)
        self.published += len(records)
        if held.journaled < self._settings.snapshot_every:
            for value, headers in entries("journal", taken.journal, held.position):
                _send(producer, self._state.address.topic, value, partition, headers)
            return []
        prune = _Prune(partition)
        for value, headers in entries("snapshot", held.shard.snapshot(), held.position):
            _send(producer, self._state.address.topic, value, partition, headers, prune.delivered)
        held.journaled = 0
        return [prune]


@dataclass
class _Prune:
    """Where a snapshot begins, once the broker has told."""

    partition: int
    first: int = 0

    def delivered(self, error: object, message: Message) -> None:
        if error is None and not self.first:
            self.first = int(message.offset() or 0)


def _send(
    producer: Producer,
    topic: str,
    value: bytes,
    partition: int,
    headers: Headers | None = None,
    told: Callable[[object, Message], None] | None = None,
) -> None:
    while True:
        try:
            producer.produce(topic, value=value, partition=partition, headers=headers, on_delivery=told)
        except BufferError:
            producer.poll(0.05)
        else:
            return


def _insist(step: Callable[[], None], lease: float) -> None:
    """Repeats a step of a transaction while the broker asks to and the transaction lasts."""
    from confluent_kafka import KafkaException

    end = time.monotonic() + lease
    while True:
        try:
            step()
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > end:
                raise
        else:
            return


def _abort(producer: Producer) -> None:
    from confluent_kafka import KafkaException

    try:
        producer.abort_transaction(_ASK)
    except KafkaException as error:
        LOG.warning("the transaction will be ended by the broker: %s", error.args[0].name())
