"""A transaction on its way: sent and committed by a thread of its own, while the session reads and places the next batch.

The session alone decides what is in a transaction, and begins the next one only when this one has ended. So the broker sees what it
would see without the thread: one transaction after the other, each of lines, state and positions that belong together.
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
    """What a transaction does for one shard.

    Attributes:
        partition: the number of the shard.
        position: the next input offset behind it.
        records: how many are released.
        dead: how many are set aside.
        told: the codebook, where the partition has none yet.
        lines: what is published.
        state: values and headers of the entries of the state topic.
        whole: whether they are a snapshot.
        first: where the snapshot begins, once the broker has told.
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
        """Learns where the snapshot begins."""
        if error is None and not self.snapshot_start:
            self.snapshot_start = int(message.offset() or 0)


@dataclass(frozen=True)
class Route:
    """From which topic records come, where lines and state go, and how long a transaction may last."""

    source: str
    sink: str
    state: str
    lease: float


class Transaction:
    """Begins, sends and commits at once; `end` waits for it and raises what went wrong.

    The session must not touch the producer before the end; by `member`, its place in the group, the broker refuses one that has
    lost its partitions.
    """

    def __init__(self, producer: Producer, route: Route, parts: Sequence[ShardBatch], member: Any) -> None:
        self.parts = parts
        self.error: BaseException | None = None
        self._producer, self._route, self._member = producer, route, member
        self._thread = threading.Thread(target=self._work, name="reticent-flight", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Returns when nothing is on its way any more; every step has a deadline."""
        self._thread.join()

    def finish(self) -> None:
        """Returns when everything is committed."""
        self.wait()
        if self.error is not None:
            raise self.error

    def _work(self) -> None:
        try:
            self._transact()
        except BaseException as error:  # noqa: BLE001 - raised again by the one who waits
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
    """Hands lines to the client, a message each."""
    messages: list[dict[str, Any]] = [{"value": line} for line in lines]
    if producer.produce_batch(topic, messages, partition=partition) < len(messages):
        raise SessionLostError("the brokers take nothing")


def _send(producer: Producer, topic: str, value: bytes, part: ShardBatch, headers: Headers) -> None:
    end, told = time.monotonic() + _ASK, part.note_delivery if part.is_snapshot else None
    while True:
        try:
            producer.produce(topic, value=value, partition=part.partition, headers=headers, on_delivery=told)
        except BufferError:
            producer.poll(0.05)
            if time.monotonic() > end:
                raise SessionLostError("the brokers take nothing") from None
        else:
            return
