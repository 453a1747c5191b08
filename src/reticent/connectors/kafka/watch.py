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

from reticent.connectors.kafka.client import STEP, SessionLostError, within

_LOOKS = 4
"""Looks in the time after which silence is asked about."""


@dataclass
class Ear:
    """What is heard of a partition: when last, and how far the client has read, also where nothing is for us to see."""

    heard: float
    end: int = 0


class Watch:
    """Looks after the consumer of a session, between two batches; after `silence` seconds without a word the brokers are asked."""

    def __init__(self, consumer: Consumer, topic: str, silence: float) -> None:
        self._consumer, self._topic, self._silence = consumer, topic, silence
        self._looked = self._member = time.monotonic()
        self._ears: dict[int, Ear] = {}
        self._spare = Ear(self._looked)
        self.well = False
        """Whether the brokers have answered, and nothing is left that does not come."""

    def take(self, partitions: Iterable[int]) -> None:
        """Begins to listen to partitions, anew where they are known."""
        self._ears |= {number: Ear(time.monotonic()) for number in partitions}

    def hear(self, partition: int, end: int = 0) -> None:
        """Something has come of a partition: a record, or word that there is none before an offset."""
        if ear := self._ears.get(partition):
            ear.heard, ear.end = time.monotonic(), max(ear.end, end)

    def look(self, positions: Mapping[int, int]) -> None:
        """Asks where nothing was heard for long; `positions` are the next offsets to read.

        Raises:
            SessionLostError: the clients are of no use any more.
        """
        now = time.monotonic()
        if now - self._looked < self._silence / _LOOKS:
            return
        self._looked = now
        if self._consumer.memberid():
            self._member = now
        elif now - self._member > self._silence:
            raise SessionLostError(f"no place in the group for {self._silence:.0f} s")
        listened = {number: self._ears.setdefault(number, Ear(now)) for number in positions} or {0: self._spare}
        for number, ear in listened.items():
            if now - ear.heard > self._silence:
                self._ask(number, max(ear.end, positions.get(number, 0)), spare=not positions)
                ear.heard, self.well = time.monotonic(), True

    def _ask(self, partition: int, position: int, *, spare: bool) -> None:
        place = TopicPartition(self._topic, partition)
        _, end = within(lambda: self._consumer.get_watermark_offsets(place, timeout=STEP), "asking for the end")
        if end > position and not spare:
            raise SessionLostError(f"records of shard {partition} do not come for {self._silence:.0f} s")
