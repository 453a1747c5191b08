"""A worker whose client has lost the brokers without a word goes on; one that has nothing to do is left in peace."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import stream_feed
from kafka_relay import Relay
from kafka_topics import Topics

from reticent.connectors.kafka import Settings, liveness, run_kafka, session
from reticent.store import Store

LIMIT = 120.0
SILENCE = 2.0


@pytest.fixture
def watched(monkeypatch):
    """Watches that soon ask; what they have asked about, and the sessions that were opened."""
    asked, sessions = [], []
    opened = session.Session._open_producer

    class Impatient(liveness.LivenessCheck):
        def __init__(self, consumer, topic, _) -> None:
            super().__init__(consumer, topic, SILENCE)

        def _check_end(self, partition, position, **more) -> None:
            super()._check_end(partition, position, **more)
            asked.append(partition)

    def open_(self, name):
        sessions.append(name)
        return opened(self, name)

    monkeypatch.setattr(session, "LivenessCheck", Impatient)
    monkeypatch.setattr(session.Session, "_open_producer", open_)
    return asked, sessions


@pytest.fixture
def relay(kafka):
    made = Relay(kafka.relayed, kafka.behind)
    yield made
    made.close()


def test_an_answer_that_names_no_broker_does_not_silence_a_worker(kafka, relay, watched, tmp_path):
    """As a broker answers that has just been started: librdkafka then forgets the cluster and never asks again."""
    topics, wanted, done = Topics(kafka, 2), stream_feed.policy(tmp_path), threading.Event()
    source, sink = topics.relayed(topics.source), topics.relayed(topics.sink)
    settings = Settings(batch=50, linger=0.02, session=3.0, client={"topic.metadata.refresh.interval.ms": 500})

    def work() -> int:
        with Store.open(tmp_path / "store.db") as store:
            going = lambda _: not done.is_set()  # noqa: E731 - short
            return run_kafka(source, sink, wanted, store, settings=settings, keep_running=going).published

    with ThreadPoolExecutor(1) as pool:
        worker = pool.submit(work)
        try:
            topics.send(stream_feed.records(200))
            topics.wait(200, LIMIT)
            relay.tell_nobody(2, LIMIT)  # its consumer and its producer
            topics.send(stream_feed.records(200, 200))
            topics.wait(400, LIMIT)
        finally:
            done.set()
        assert worker.result(LIMIT) == 400
    assert len(watched[1]) > 1
    topics.check(wanted, tmp_path)


def test_a_worker_that_has_nothing_to_do_keeps_its_session(kafka, watched, tmp_path):
    """Ends of transactions are offsets without a record, and what stands behind an open transaction is not to be read yet."""
    from confluent_kafka import Producer

    topics, wanted = Topics(kafka, 2), stream_feed.policy(tmp_path)
    asked, sessions = watched
    producer = Producer({"bootstrap.servers": kafka.address, "transactional.id": topics.source})
    producer.init_transactions(30)
    producer.begin_transaction()
    topics.send(stream_feed.records(100), producer=producer)
    producer.commit_transaction(30)
    producer.begin_transaction()
    producer.produce(topics.source, b"{}", partition=0)
    producer.flush(30)

    def going(_) -> bool:
        return not {0, 1} <= {number for number in range(2) if asked.count(number) >= 3}

    with Store.open(tmp_path / "store.db") as store:
        source, sink = topics.url(topics.source), topics.url(topics.sink)
        settings = Settings(batch=50, linger=0.02, session=3.0)
        assert run_kafka(source, sink, wanted, store, settings=settings, keep_running=going).published == 100
    assert len(sessions) == 1
    producer.abort_transaction(30)
    topics.check(wanted, tmp_path)
