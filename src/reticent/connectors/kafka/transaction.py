"""A transaction that a thread sends and commits while the session handles the next batch.

Only the session decides what is in a transaction, and it starts the next one after this one has ended. So the broker
sees one transaction after the other, each with lines, state and positions that belong together.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from confluent_kafka import Message, Producer, TopicPartition

from reticent.connectors.kafka.client import CALL_TIMEOUT, SessionLostError, call_with_deadline, retry_call
from reticent.connectors.kafka.state import Headers

if TYPE_CHECKING:
    from collections.abc import Sequence


_ASK = 10.0


@dataclass(repr=False)
class ShardBatch:
    """The content of a transaction for one shard.

    Attributes:
        partition: the number of the shard.
        position: the next input offset.
        records: number of released records.
        dead: number of rejected records.
        codebook_lines: the codebook, if the partition has none yet.
        lines: the published lines.
        state: values and headers of the messages for the state topic.
        is_snapshot: whether the state is a snapshot.
        snapshot_start: offset of the snapshot, once the broker has reported it.
    """

    partition: int
    position: int
    records: int = 0
    dead: int = 0
    codebook_lines: list[bytes] = field(default_factory=list)
    lines: bytes = b""
    state: list[tuple[bytes, Headers]] = field(default_factory=list)
    is_snapshot: bool = False
    snapshot_start: int = 0

    def note_delivery(self, error: object, message: Message) -> None:
        """Record the offset at which the snapshot begins."""
        if error is None and not self.snapshot_start:
            self.snapshot_start = int(message.offset() or 0)


@dataclass(frozen=True)
class Route:
    """Source, sink and state topics, and the maximum duration of a transaction in seconds."""

    source: str
    sink: str
    state: str
    lease: float


class Transaction:
    """Begins, sends and commits in a thread; `finish` waits for the end and raises its error.

    The session must not use the producer before the end. With `member`, the group membership, the broker refuses a
    session that has lost its partitions.
    """

    def __init__(self, producer: Producer, route: Route, parts: Sequence[ShardBatch], member: Any) -> None:
        self.parts = parts
        self.error: BaseException | None = None
        self._producer, self._route, self._member = producer, route, member
        self._thread = threading.Thread(target=self._work, name="reticent-transaction", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait until the transaction has ended; every step has a deadline."""
        self._thread.join()

    def finish(self) -> None:
        """Wait until everything is committed; raise the error if it failed."""
        self.wait()
        if self.error is not None:
            raise self.error

    def _work(self) -> None:
        try:
            self._transact()
        except BaseException as error:  # noqa: BLE001 - raised again in the waiting thread
            self.error = error

    def _transact(self) -> None:
        producer, route = self._producer, self._route
        call_with_deadline(producer.begin_transaction, "begin_transaction")
        for part in self.parts:
            send_all(producer, route.sink, part.codebook_lines + part.lines.splitlines(), part.partition)
            for value, headers in part.state:
                _send(producer, route.state, value, part, headers)
        positions = [TopicPartition(route.source, part.partition, part.position) for part in self.parts]
        offsets = "send_offsets_to_transaction"
        retry_call(
            lambda: producer.send_offsets_to_transaction(positions, self._member, CALL_TIMEOUT), offsets, route.lease
        )
        retry_call(lambda: producer.commit_transaction(CALL_TIMEOUT), "commit_transaction", route.lease)


def send_all(producer: Producer, topic: str, lines: list[bytes], partition: int) -> None:
    """Send lines, one message each."""
    messages: list[dict[str, Any]] = [{"value": line} for line in lines]
    if producer.produce_batch(topic, messages, partition=partition) < len(messages):
        raise SessionLostError("the brokers accept no messages")


def _send(producer: Producer, topic: str, value: bytes, part: ShardBatch, headers: Headers) -> None:
    end, on_delivery = time.monotonic() + _ASK, part.note_delivery if part.is_snapshot else None
    while True:
        try:
            producer.produce(topic, value=value, partition=part.partition, headers=headers, on_delivery=on_delivery)
        except BufferError:
            producer.poll(0.05)
            if time.monotonic() > end:
                raise SessionLostError("the brokers accept no messages") from None
        else:
            return
