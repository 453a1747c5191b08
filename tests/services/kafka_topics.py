"""Topics of the tests: what is put into one, and what a reader of committed data finds in another."""

from __future__ import annotations

import json
import time
import uuid
import zlib
from pathlib import Path

import orjson
import stream_feed

SILENCE = 15.0
"""Seconds after which a reader is replaced: one whose broker was started again may have lost it for good."""


class Topics:
    """Fresh topics on the broker, and what a reader of committed data finds in them."""

    def __init__(self, broker, partitions: int) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic

        self.broker, name = broker, uuid.uuid4().hex[:8]
        self.source, self.sink = f"in-{name}", f"out-{name}"
        self.partitions = partitions
        self._admin = AdminClient({"bootstrap.servers": broker.address})
        topics = [NewTopic(self.source, partitions, 1), NewTopic(self.sink, partitions, 1)]
        for made in self._admin.create_topics(topics).values():
            made.result(30)
        self.given: dict[int, list[dict]] = {}
        self._counter, self._count, self._heard = None, 0, 0.0
        self._places = dict.fromkeys(range(partitions), 0)

    def url(self, topic: str) -> str:
        return f"kafka://{self.broker.address}/{topic}"

    def relayed(self, topic: str) -> str:
        return f"kafka://127.0.0.1:{self.broker.relayed}/{topic}"

    def grow(self, partitions: int) -> None:
        from confluent_kafka.admin import NewPartitions

        topics = [NewPartitions(topic, partitions) for topic in (self.source, self.sink)]
        for made in self._admin.create_partitions(topics).values():
            made.result(30)
        self.partitions = partitions

    def send(self, records: list[dict], junk: tuple[bytes, ...] = (), producer=None) -> None:
        from confluent_kafka import Producer

        producer = producer or Producer({"bootstrap.servers": self.broker.address})
        for record in records:
            shard = zlib.crc32(record["person"].encode()) % self.partitions
            producer.produce(self.source, orjson.dumps(record), key=record["person"])
            self.given.setdefault(shard, []).append(record)
        for line in junk:
            producer.produce(self.source, line, partition=0)
        assert producer.flush(60) == 0

    def read(self, topic: str | None = None) -> dict[int, list[dict]]:
        """The committed lines of every partition."""
        from confluent_kafka import KafkaError

        places = dict.fromkeys(range(self.partitions), 0)
        found, ended, heard, consumer = {}, set(), time.monotonic(), self._reader(topic or self.sink, places)
        while len(ended) < self.partitions:
            if time.monotonic() - heard > SILENCE:
                heard, consumer = time.monotonic(), self._reader(topic or self.sink, places)
            for message in consumer.consume(500, 0.1):
                heard = time.monotonic()
                if message.error() is None:
                    found.setdefault(message.partition(), []).append(json.loads(message.value()))
                    places[message.partition()] = message.offset() + 1
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    ended.add(message.partition())
        consumer.close()
        return found

    def check(self, wanted, folder: Path) -> None:
        published = self.read()
        assert published.keys() == self.given.keys()
        for shard, given in self.given.items():
            stream_feed.check(published[shard], given, wanted, folder, shard)

    def published(self) -> int:
        """How many records a reader of committed data has seen by now."""
        if self._counter is None or time.monotonic() - self._heard > SILENCE:
            self._heard, self._counter = time.monotonic(), self._reader(self.sink, self._places)
        for message in self._counter.consume(100, 0.1):
            if message.error() is None:
                self._heard, self._places[message.partition()] = time.monotonic(), message.offset() + 1
                self._count += b'"type":"record"' in message.value()
        return self._count

    def wait(self, count: int, seconds: float) -> None:
        """Until so many records are published."""
        end = time.monotonic() + seconds
        while self.published() < count:
            assert time.monotonic() < end, "the worker does not get on"

    def _reader(self, topic: str, places: dict[int, int]):
        from confluent_kafka import Consumer, TopicPartition

        settings = {"bootstrap.servers": self.broker.address, "group.id": uuid.uuid4().hex}
        settings |= {"auto.offset.reset": "earliest", "isolation.level": "read_committed", "enable.partition.eof": True}
        consumer = Consumer(settings)
        consumer.assign([TopicPartition(topic, number, at) for number, at in places.items()])
        return consumer
