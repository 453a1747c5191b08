"""Detect a session that silently lost the brokers.

If a freshly started broker answers with an empty broker list, librdkafka forgets the cluster and sends no more requests
(its issue 5301). The consumer then has no place in the group, or keeps its partitions and gets nothing; both look like
an idle topic. So a silent session asks the brokers. Without an answer, or if records exist that do not arrive, the
session is lost and new clients continue from the committed offsets.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka import Consumer, TopicPartition

from reticent.connectors.kafka.client import CALL_TIMEOUT, SessionLostError, call_with_deadline

_CHECKS = 4
"""Number of checks within the allowed silence."""


@dataclass
class PartitionActivity:
    """Activity of a partition: the time of the last message, and how far the client has read."""

    last_seen: float
    end: int = 0


class LivenessCheck:
    """Checks the consumer of a session between batches; asks the brokers after `silence` seconds without activity."""

    def __init__(self, consumer: Consumer, topic: str, silence: float) -> None:
        self._consumer, self._topic, self._silence = consumer, topic, silence
        self._checked_at = self._member = time.monotonic()
        self._activity: dict[int, PartitionActivity] = {}
        self._spare = PartitionActivity(self._checked_at)
        self.is_healthy = False
        """Whether the brokers have answered and no record is overdue."""

    def track(self, partitions: Iterable[int]) -> None:
        """Start to track partitions, or restart for known ones."""
        self._activity |= {number: PartitionActivity(time.monotonic()) for number in partitions}

    def note_activity(self, partition: int, end: int = 0) -> None:
        """Record activity of a partition: a record, or the notice that there is none before an offset."""
        if activity := self._activity.get(partition):
            activity.last_seen, activity.end = time.monotonic(), max(activity.end, end)

    def check(self, positions: Mapping[int, int]) -> None:
        """Ask the brokers about silent partitions; `positions` are the next offsets to read.

        Raises:
            SessionLostError: the clients have lost the brokers.
        """
        now = time.monotonic()
        if now - self._checked_at < self._silence / _CHECKS:
            return
        self._checked_at = now
        if self._consumer.memberid():
            self._member = now
        elif now - self._member > self._silence:
            raise SessionLostError(f"no place in the group for {self._silence:.0f} s")
        tracked = {number: self._activity.setdefault(number, PartitionActivity(now)) for number in positions} or {
            0: self._spare
        }
        for number, activity in tracked.items():
            if now - activity.last_seen > self._silence:
                self._check_end(number, max(activity.end, positions.get(number, 0)), spare=not positions)
                activity.last_seen, self.is_healthy = time.monotonic(), True

    def _check_end(self, partition: int, position: int, *, spare: bool) -> None:
        place = TopicPartition(self._topic, partition)
        _, end = call_with_deadline(
            lambda: self._consumer.get_watermark_offsets(place, timeout=CALL_TIMEOUT), "asking for the end"
        )
        if end > position and not spare:
            raise SessionLostError(f"records of shard {partition} have not arrived for {self._silence:.0f} s")
