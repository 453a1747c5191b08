"""The state of shards in a separate topic: partition p has the state of shard p.

The state is a snapshot in chunks and one journal entry per committed batch. An entry is written in the transaction that
publishes the batch and moves the input position, so the three always agree. A new snapshot deletes everything before
it. The topic is private: it contains the key of the stream.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from reticent.connectors.kafka.address import Address
from reticent.connectors.kafka.client import HungError, call_with_deadline
from reticent.errors import ConnectorError, StateError

LOG = logging.getLogger(__name__)
CHUNK = 700_000
"""Bytes of a snapshot per message, below the brokers' default limit."""
_WAIT = 30.0
_LEASE = 10.0
Headers = list[tuple[str, str | bytes | None]]


@dataclass
class SavedState:
    """The content of a state partition: a snapshot, the journal since then, and the next input offset."""

    snapshot: bytes | None = None
    journal: list[bytes] = field(default_factory=list)
    position: int | None = None
    empty: bool = True


class StateTopic:
    """Reads and prunes the state of shards."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.shards = 0
        self._admin: Any = None

    def prepare(self, source: Address, sink: Address) -> None:
        """Make sure that the sink and state topics have one partition per shard."""
        admin = AdminClient(source.client)
        shards = len(topic_partitions(admin, source.topic))
        if not shards:
            raise ConnectorError(f"{source!r} does not exist.", hint="Create the topic, then start again.")
        sink_admin = AdminClient(sink.client)
        no_retention_limit = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
        for topic, config in ((sink.topic, {}), (self.address.topic, no_retention_limit)):
            known = len(topic_partitions(sink_admin, topic))
            if not known:
                topics = sink_admin.create_topics([NewTopic(topic, shards, -1, config=config)], operation_timeout=_WAIT)
                _await_request(topics[topic], "TOPIC_ALREADY_EXISTS")
            elif known < shards and topic == self.address.topic:
                topics = sink_admin.create_partitions([NewPartitions(topic, shards)], operation_timeout=_WAIT)
                _await_request(topics[topic], "INVALID_PARTITIONS")
            elif known < shards:
                raise ConnectorError(
                    f"{sink!r} has {known} partitions for {shards} shards.",
                    hint="Give the sink topic as many partitions as the source: each shard writes to its own.",
                )
        self.shards = shards

    def load(self, committed: Mapping[int, int], lease: float) -> dict[int, SavedState]:
        """Return the state of partitions at their committed input offsets (-1: none); wait for it, refuse an older one.

        The open transaction of a dead worker can hide the end of a partition for the length of a lease.
        """
        end = time.monotonic() + _WAIT + max(0.0, lease - _LEASE)
        while True:
            states = self._read(list(committed))
            behind = [number for number, saved in states.items() if (saved.position or 0) < committed[number]]
            if not behind:
                break
            if time.monotonic() > end:
                raise StateError(
                    f"The state of shard {behind[0]} ends before the committed offset {committed[behind[0]]}.",
                    hint="Restore the state topic or the group's offsets: one was lost or moved. "
                    "Without the state, Reticent would publish known persons as new.",
                )
        for number, saved in states.items():
            if 0 <= committed[number] < (saved.position or 0):
                LOG.warning("shard %d: offsets were moved back; published records are not published again", number)
        return states

    def _read(self, partitions: list[int]) -> dict[int, SavedState]:
        settings = {
            **self.address.client,
            "group.id": "reticent-state",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 20,
        }
        readers, open_ = {number: _PartitionReader() for number in partitions}, set(partitions)
        consumer = Consumer(settings)
        try:
            consumer.assign([TopicPartition(self.address.topic, number, OFFSET_BEGINNING) for number in partitions])
            end = time.monotonic() + 2 * _WAIT
            while open_:
                if time.monotonic() > end:
                    raise ConnectorError(
                        "The state topic cannot be read.", hint="Check the broker and the permissions."
                    )
                message = consumer.poll(1.0)
                error = message.error() if message is not None else None
                if message is None:
                    continue
                if error is None:
                    readers[int(message.partition() or 0)].read(message)
                elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - a public constant
                    open_.discard(int(message.partition() or 0))
                elif not error.retriable():
                    LOG.warning("reading the state: %s", error.name())
        finally:
            with contextlib.suppress(HungError):
                call_with_deadline(consumer.close, "closing the state consumer")
        return {number: reader.saved for number, reader in readers.items()}

    def drop_client(self) -> None:
        """Drop the admin client: a new session opens its own."""
        self._admin = None

    def prune(self, partition: int, offset: int) -> None:
        """Delete everything before a snapshot, in the background; a failure only costs disk space."""
        if self._admin is None:
            self._admin = AdminClient(self.address.client)
        self._admin.delete_records([TopicPartition(self.address.topic, partition, offset)])


class _PartitionReader:
    """Assembles a partition's messages; a snapshot counts once its last chunk has arrived."""

    def __init__(self) -> None:
        self.saved = SavedState()
        self._chunks: list[bytes] = []

    def read(self, message: Message) -> None:
        pairs: Any = message.headers()
        headers: dict[str, bytes] = dict(pairs or ())
        self.saved.empty = False
        value, number, total = message.value() or b"", int(headers["part"]), int(headers["of"])
        if headers["kind"] == b"journal":
            if value:
                self.saved.journal.append(value)
            self.saved.position = int(headers["next"])
            return
        self._chunks = [*self._chunks, value] if number else [value]
        if number + 1 == total and len(self._chunks) == total:
            self.saved = SavedState(b"".join(self._chunks), [], int(headers["next"]), empty=False)


def state_messages(kind: str, data: bytes, position: int) -> list[tuple[bytes, Headers]]:
    """Return the messages of a journal entry or a snapshot: values and headers."""
    parts = [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)] if kind == "snapshot" else [data]
    plain = {"kind": kind, "next": str(position), "of": str(len(parts))}
    return [
        (part, [(name, text.encode()) for name, text in {**plain, "part": str(number)}.items()])
        for number, part in enumerate(parts)
    ]


def topic_partitions(admin: object, topic: str) -> list[int]:
    """Return the partitions of a topic; none if it does not exist."""
    end = time.monotonic() + _WAIT
    while True:
        try:
            metadata = admin.list_topics(topic, timeout=10).topics.get(topic)  # type: ignore[attr-defined]
        except KafkaException as error:
            if time.monotonic() > end:
                raise ConnectorError(
                    f"The broker does not answer: {error.args[0].name()}.",
                    hint="Check the broker address and the network.",
                ) from None
            continue
        return sorted(metadata.partitions) if metadata is not None and metadata.error is None else []


def _await_request(future: object, harmless: str) -> None:
    """Wait for an administrative request; ignore the error `harmless`, which means that another worker was first."""
    try:
        future.result(_WAIT)  # type: ignore[attr-defined]
    except TimeoutError:
        raise ConnectorError("The broker did not create a topic in time.", hint="Check the broker.") from None
    except KafkaException as error:
        if error.args[0].name() != harmless:
            raise ConnectorError(
                f"A topic cannot be created: {error.args[0].name()}.", hint="Check the permissions."
            ) from None
