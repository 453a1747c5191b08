"""How a session treats silence of the broker."""

from __future__ import annotations

import pytest

from reticent.connectors.kafka import liveness
from reticent.connectors.kafka.client import SessionLostError
from reticent.connectors.kafka.worker import Worker

pytest.importorskip("confluent_kafka")


class Consumer:
    """A client with, or without, a place in its group and brokers that answer."""

    def __init__(self, *, member: str = "m1", end: int = 0) -> None:
        self.member, self.end, self.asked = member, end, []

    def memberid(self) -> str:
        return self.member

    def get_watermark_offsets(self, place, timeout) -> tuple[int, int]:
        assert timeout
        self.asked.append(place.partition)
        return 0, self.end


@pytest.fixture
def clock(monkeypatch):
    """Time that passes when it is told to."""
    now = [100.0]
    monkeypatch.setattr(liveness.time, "monotonic", lambda: now[0])

    def pass_(seconds: float) -> None:
        now[0] += seconds

    return pass_


def liveness_check(consumer: Consumer, *partitions: int) -> liveness.LivenessCheck:
    made = liveness.LivenessCheck(consumer, "in", 10.0)
    made.track(partitions)
    return made


def test_missing_records_end_a_session(clock):
    made = liveness_check(Consumer(end=8), 0)
    clock(11)
    with pytest.raises(SessionLostError, match="shard 0"):
        made.check({0: 7})
    assert not made.is_healthy


def test_a_partition_that_is_read_to_its_end_is_not_checked(clock):
    consumer = Consumer(end=8)
    made = liveness_check(consumer, 0, 1)
    for _ in range(9):
        clock(3)
        made.note_activity(1)  # records come of this one: nobody needs to ask
        made.note_activity(0, end=8) if not consumer.asked else None  # offset 7 is the end of a transaction
        consumer.asked.append(-1)
        made.check({0: 7, 1: 3})
    assert made.is_healthy
    assert set(consumer.asked) == {0, -1}


def test_records_that_were_taken_back_are_expected_again(clock):
    made = liveness_check(Consumer(end=8), 0)
    made.note_activity(0, end=8)
    made.track([0])
    clock(11)
    with pytest.raises(SessionLostError, match="have not arrived"):
        made.check({0: 5})


def test_a_consumer_that_stays_out_of_its_group_ends_a_session(clock):
    consumer = Consumer(member="")
    made = liveness_check(consumer)
    clock(9)
    made.check({})
    consumer.member = "m2"
    clock(3)
    made.check({})
    consumer.member = ""
    clock(9)
    made.check({})
    clock(3)
    with pytest.raises(SessionLostError, match="no place"):
        made.check({})


def test_a_worker_without_a_shard_asks_whether_anybody_is_there(clock):
    consumer = Consumer(end=8)
    made = liveness_check(consumer)
    clock(11)
    made.check({})
    assert consumer.asked == [0]
    assert made.is_healthy


@pytest.mark.parametrize("well", [False, True])
def test_patience_begins_anew_when_the_brokers_have_answered(monkeypatch, well):
    """A failure now and then, in weeks without a record, is no reason to give up."""
    from reticent.connectors.kafka import worker as module
    from reticent.connectors.kafka.session import Settings
    from reticent.errors import ConnectorError

    now, rounds = [0.0], []
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(module.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    worker = Worker(type("Job", (), {"settings": Settings(patience=100.0)}))

    def fail(_) -> None:
        rounds.append(now[0])
        now[0], worker._is_healthy = now[0] + 60, well
        raise SessionLostError("gone")

    monkeypatch.setattr(worker, "_work", fail)
    if well:
        worker.run(lambda _: len(rounds) < 9)
        assert len(rounds) == 9
    else:
        with pytest.raises(ConnectorError, match="100 s"):
            worker.run(lambda _: len(rounds) < 9)
