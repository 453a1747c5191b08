"""Run `reticent stream kafka://broker/topic --to kafka://broker/topic`."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from reticent.connectors.kafka.address import Address
from reticent.connectors.kafka.metrics import Metrics
from reticent.connectors.kafka.partition_check import PartitionCheck
from reticent.connectors.kafka.state import StateTopic, topic_partitions
from reticent.connectors.kafka.worker import DeadLetter, Job, Settings, Worker
from reticent.connectors.shards import check_shards, claim_population, pin_shards
from reticent.engine.stream.base import stream_class
from reticent.policy import Policy
from reticent.publication.stream import StreamPublication
from reticent.publication.stream_publication import keys_of
from reticent.store import Store

_LOCK = 30.0
_PAUSE, _ASK = 1.0, 5.0


@dataclass(frozen=True)
class Summary:
    """Result of a worker: published and rejected records, duration, and the claims of the stream."""

    published: int
    dead_letters: int
    seconds: float
    claims: Mapping[str, Any] = field(default_factory=dict)
    shared: bool = False
    """Whether the stream started although its store has other publications."""


def run_kafka(  # noqa: PLR0913 - the options of a command
    source_url: str,
    sink_url: str,
    policy: Policy,
    store: Store,
    *,
    settings: Settings | None = None,
    until_end: bool = False,
    keep_running: Callable[[Worker], bool] | None = None,
    seed: int | None = None,
    metrics: str | None = None,
) -> Summary:
    """Release a stream from topic to topic until stopped; run up to one worker per partition.

    Args:
        source_url: the topic of records, one JSON object per message, keyed by person; the veil refuses other keys.
        sink_url: the topic of published lines; created if it does not exist. The private state is in a topic of the
            same name with the suffix `.reticent-state`.
        policy: the policy of the stream.
        store: contains the secret key and the dead letters; all workers of a stream share it.
        settings: settings of the worker.
        until_end: stop when every record present at the start has been published, by this worker or others of its
            group.
        keep_running: called before every batch; False ends the run. SIGTERM and SIGINT end it too.
        seed: used instead of the store's key, for tests only.
        metrics: HOST:PORT where this worker serves its metrics.
    """
    source, sink = Address.parse(source_url), Address.parse(sink_url)
    settings = settings or Settings()
    check_shards(policy)
    name = f"kafka {source.topic} {settings.group}"
    store.register(name, policy_hash=policy.hash)
    rng = keys_of(policy, store, name, seed=seed)
    shared = claim_population(policy, store, name, allow_republication=settings.allow_republication)
    state = StateTopic(Address(sink.brokers, f"{sink.topic}.reticent-state", sink.settings))
    state.prepare(source, sink)
    pin = partial(pin_shards, policy, store, name)
    pin(state.shards)
    remembers = policy.person is not None and stream_class(policy.stream.method).remembers_persons
    placement = PartitionCheck(store, name, str(policy.person), state.shards) if remembers else None
    worker = Worker(
        Job(source, sink, state, policy, rng, settings, partial(store_dead_letters, store, name), pin, placement)
    )
    start = time.monotonic()
    goal = _EndOffsets(source, settings.group) if until_end else None
    with _catch_signals() as stopped, Metrics(metrics) if metrics else contextlib.nullcontext() as exporter:

        def should_continue(worker: Worker) -> bool:
            if exporter is not None:
                exporter.update(worker)
            if stopped() or (keep_running is not None and not keep_running(worker)):
                return False
            return goal is None or not goal.is_reached(worker)

        worker.run(should_continue)
    claims = StreamPublication(policy, rng=rng).engine.guarantee.claims
    return Summary(worker.published, worker.dead, time.monotonic() - start, claims, shared=shared)


def store_dead_letters(store: Store, name: str, bad: list[DeadLetter]) -> None:
    """Store each dead letter once, however often its batch is repeated."""
    with store.lock(name, wait=_LOCK), store.transaction() as tx:
        for position, reason, payload in bad:
            if tx.get(name, "buried", position) is None:
                tx.put_dead_letter(name, position, reason, payload)
                tx.put(name, "buried", position, b"1")


class _EndOffsets:
    """The end offsets at the start, and whether the group has released everything before them."""

    def __init__(self, source: Address, group: str) -> None:
        self._source, self._group, self._asked_at = source, group, 0.0
        self._ends = end_offsets(source)

    def is_reached(self, worker: Worker) -> bool:
        """Return whether nothing is left; asks the broker about other workers at most once a second."""
        positions = worker.positions()
        if any(at < self._ends.get(number, 0) for number, at in positions.items()):
            return False
        others = [number for number in self._ends if number not in positions]
        if not others:
            return True
        if time.monotonic() - self._asked_at < _PAUSE:
            return False
        self._asked_at = time.monotonic()
        return self._is_committed(others)

    def _is_committed(self, partitions: list[int]) -> bool:
        consumer = Consumer({**self._source.client, "group.id": self._group, "enable.auto.commit": False})
        try:
            places = [TopicPartition(self._source.topic, number) for number in partitions]
            offsets = consumer.committed(places, timeout=_ASK)
        except KafkaException:
            return False
        finally:
            consumer.close()
        return all(place.error is None and place.offset >= self._ends[place.partition] for place in offsets)


def end_offsets(source: Address) -> dict[int, int]:
    """Return the current end offset of every partition of the source that has records."""
    partitions = topic_partitions(AdminClient(source.client), source.topic)
    consumer = Consumer({**source.client, "group.id": "reticent-ends"})
    try:
        marks = {p: consumer.get_watermark_offsets(TopicPartition(source.topic, p), timeout=30) for p in partitions}
    finally:
        consumer.close()
    return {p: high for p, (low, high) in marks.items() if high > low}


@contextlib.contextmanager
def _catch_signals() -> Iterator[Callable[[], bool]]:
    """Let SIGTERM and SIGINT end the run after the current batch; has an effect in the main thread only."""
    received: list[int] = []
    handlers = {}
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            handlers[number] = signal.signal(number, lambda caught, _: received.append(caught))
    except ValueError:  # not the main thread
        handlers = {}
    try:
        yield lambda: bool(received)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
