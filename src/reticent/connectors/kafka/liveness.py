"""Whether a session still hears from the brokers: its client may have lost them for good, and does not say so.

An answer that names no broker, as one gives that has just been started, makes librdkafka forget all it knew of the cluster and ask
nobody any more (its report 5301). The consumer then has no place in the group, or keeps its partitions and gets nothing, while reading
from it looks as it does when there is nothing to read. So a session that hears nothing for a while asks; one that gets no answer, or
that learns of records which do not come, is lost, and new clients go on from what is committed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka import Consumer, TopicPartition

from reticent.connectors.kafka.client import CALL_TIMEOUT, SessionLostError, call_with_deadline

_CHECKS = 4
"""Looks in the time after which silence is asked about."""


@dataclass
class PartitionActivity:
    """What is heard of a partition: when last, and how far the client has read, also where nothing is for us to see."""

    last_seen: float
    end: int = 0


class LivenessCheck:
    """Looks after the consumer of a session, between two batches; after `silence` seconds without a word the brokers are asked."""

    def __init__(self, consumer: Consumer, topic: str, silence: float) -> None:
        self._consumer, self._topic, self._silence = consumer, topic, silence
        self._checked_at = self._member = time.monotonic()
        self._activity: dict[int, PartitionActivity] = {}
        self._spare = PartitionActivity(self._checked_at)
        self.is_healthy = False
        """Whether the brokers have answered, and nothing is left that does not come."""

    def track(self, partitions: Iterable[int]) -> None:
        """Begins to listen to partitions, anew where they are known."""
        self._activity |= {number: PartitionActivity(time.monotonic()) for number in partitions}

    def note_activity(self, partition: int, end: int = 0) -> None:
        """Something has come of a partition: a record, or word that there is none before an offset."""
        if ear := self._activity.get(partition):
            ear.last_seen, ear.end = time.monotonic(), max(ear.end, end)

    def check(self, positions: Mapping[int, int]) -> None:
        """Asks where nothing was heard for long; `positions` are the next offsets to read.

        Raises:
            SessionLostError: the clients are of no use any more.
        """
        now = time.monotonic()
        if now - self._checked_at < self._silence / _CHECKS:
            return
        self._checked_at = now
        if self._consumer.memberid():
            self._member = now
        elif now - self._member > self._silence:
            raise SessionLostError(f"no place in the group for {self._silence:.0f} s")
        listened = {number: self._activity.setdefault(number, PartitionActivity(now)) for number in positions} or {
            0: self._spare
        }
        for number, ear in listened.items():
            if now - ear.last_seen > self._silence:
                self._check_end(number, max(ear.end, positions.get(number, 0)), spare=not positions)
                ear.last_seen, self.is_healthy = time.monotonic(), True

    def _check_end(self, partition: int, position: int, *, spare: bool) -> None:
        place = TopicPartition(self._topic, partition)
        _, end = call_with_deadline(
            lambda: self._consumer.get_watermark_offsets(place, timeout=CALL_TIMEOUT), "asking for the end"
        )
        if end > position and not spare:
            raise SessionLostError(f"records of shard {partition} do not come for {self._silence:.0f} s")
