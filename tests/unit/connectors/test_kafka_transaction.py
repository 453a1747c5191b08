"""An open transaction: a failure takes back all later records too, and only a commit counts."""

from __future__ import annotations

import gc
import threading
from types import SimpleNamespace

import pytest

from reticent.connectors.kafka import client, session, transaction
from reticent.connectors.kafka.worker import Worker

confluent = pytest.importorskip("confluent_kafka")
ROUTE = transaction.Route("in", "out", "state", 1.0)


class Producer:
    """Takes everything, and commits when it may; or fails as it is told to."""

    def __init__(self, error: Exception | None = None) -> None:
        self.may, self.calls, self._error = threading.Event(), [], error

    def begin_transaction(self) -> None:
        self.calls.append("begin")

    def produce_batch(self, topic, messages, partition) -> int:
        self.calls += [(topic, partition, message["value"]) for message in messages]
        return len(messages)

    def produce(self, topic, *, value, partition, headers, on_delivery) -> None:
        assert headers
        assert on_delivery is None
        self.calls.append((topic, partition, value))

    def send_offsets_to_transaction(self, positions, member, _) -> None:
        self.calls.append(([(at.topic, at.partition, at.offset) for at in positions], member))

    def commit_transaction(self, _) -> None:
        self.may.wait(5)
        if self._error is not None:
            raise self._error
        self.calls.append("commit")

    def abort_transaction(self, _) -> None:
        self.calls.append("abort")


def part(partition: int, position: int) -> transaction.ShardBatch:
    return transaction.ShardBatch(partition, position, 2, lines=b"a\nb\n", state=[(b"j", [("kind", b"journal")])])


def session_with(*shards: int) -> session.Session:
    """A session with shards that have read ahead of what is committed."""
    made = session.Session.__new__(session.Session)
    made._settings, made._totals, made._failures, made._transaction = session.Settings(), session.Totals(), 0, None
    made.shards = {shard: session.OwnedShard(SimpleNamespace(), position=9, committed=3) for shard in shards}
    made._rewound = []
    made._rewind = lambda partitions: made._rewound.extend(sorted(partitions))
    return made


def overtaken() -> Exception:
    return confluent.KafkaException(
        confluent.KafkaError(confluent.KafkaError.ILLEGAL_GENERATION, txn_requires_abort=True)
    )


def test_lines_state_and_positions_go_in_one_transaction():
    producer = Producer()
    producer.may.set()
    one = transaction.Transaction(producer, ROUTE, [part(0, 5), part(1, 7)], "member")
    one.finish()
    lines = [
        ("out", 0, b"a"),
        ("out", 0, b"b"),
        ("state", 0, b"j"),
        ("out", 1, b"a"),
        ("out", 1, b"b"),
        ("state", 1, b"j"),
    ]
    assert producer.calls == ["begin", *lines, ([("in", 0, 5), ("in", 1, 7)], "member"), "commit"]


def test_records_after_a_failed_transaction_are_read_again():
    made, producer = session_with(0, 1), Producer(overtaken())
    producer.may.set()
    made._producer, made._transaction = producer, transaction.Transaction(producer, ROUTE, [part(0, 5)], "member")
    assert not made._await_commit([part(1, 7)])
    assert producer.calls[-1] == "abort"
    assert made._rewound == [0, 1]
    assert made._totals.published == 0


def test_positions_are_those_of_the_last_commit():
    worker, made, producer = Worker.__new__(Worker), session_with(0), Producer()
    worker._session, made._producer = made, producer
    made._transaction = transaction.Transaction(producer, ROUTE, [part(0, 5)], "member")
    assert worker.positions() == {0: 3}
    producer.may.set()
    made.finish()
    assert worker.positions() == {0: 5}
    assert made._totals.published == 2


def test_a_partition_is_revoked_after_its_transaction():
    made, producer = session_with(0, 1), Producer()
    made._transaction = transaction.Transaction(producer, ROUTE, [part(0, 5)], "member")
    threading.Timer(0.2, producer.may.set).start()
    made._revoke(None, [SimpleNamespace(partition=0)])
    assert producer.calls[-1] == "commit"
    assert set(made.shards) == {1}


def test_the_collector_is_as_it_was():
    with client.pause_gc():
        assert not gc.isenabled()
        with client.pause_gc():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
