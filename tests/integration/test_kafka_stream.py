"""Topic to topic on a real broker: every record once, whatever dies."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import odd_records
import pytest
import stream_feed
from kafka_topics import Topics

from reticent.errors import ConnectorError, StateError
from reticent.policy import Policy
from reticent.store import Store

SERVICES = Path(stream_feed.__file__).parent
LIMIT = 300.0
KILLS = int(os.environ.get("RETICENT_KILLS", "3"))


def work(topics: Topics, wanted, store, **more):
    from reticent.connectors.kafka import Settings, run_kafka

    settings = Settings(batch=50, linger=0.02, snapshot_every=120, session=3.0)
    source, sink = topics.url(topics.source), topics.url(topics.sink)
    return run_kafka(source, sink, wanted, store, settings=settings, until_end=True, **more)


def test_every_record_once_and_on_from_there(kafka, tmp_path):
    topics, wanted = Topics(kafka, 3), stream_feed.policy(tmp_path)
    junk = (b"{", b"[1]", b'{"person": null, "age": 1}', b'{"person": "x", "name": "y"}')
    topics.send(stream_feed.records(500), junk)
    with Store.open(tmp_path / "store.db") as store:
        first = work(topics, wanted, store)
        assert (first.published, first.dead_letters) == (500, 4)
        topics.check(wanted, tmp_path)
        assert work(topics, wanted, store).published == 0
        topics.send(stream_feed.records(400, 500), junk[:1])
        assert work(topics, wanted, store).published == 400
        topics.check(wanted, tmp_path)
        (name,) = store.publishers()
        letters = store.dead_letters(name)
        assert [letter.payload for letter in letters] == [*junk, junk[0]]
        assert all("null" not in letter.reason and "name" not in letter.reason.split() for letter in letters)


def test_two_workers_end_when_both_are_done(kafka, tmp_path):
    topics, wanted = Topics(kafka, 2), stream_feed.policy(tmp_path)
    topics.send(stream_feed.records(900))
    done: list[int] = []

    def worker() -> None:
        with Store.open(tmp_path / "store.db") as store:
            done.append(work(topics, wanted, store).published)

    threads = [threading.Thread(target=worker, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert sum(done) == 900, "a worker that has not all partitions does not end"
    topics.check(wanted, tmp_path)


def test_odd_records_give_the_lines_of_the_command_line(kafka, tmp_path):
    """A thousand records with everything that a parser could read in two ways: the same lines, the same refusals."""
    from reticent.connectors.stream import Stream

    (tmp_path / "prior.csv").write_text(odd_records.PRIOR)
    (tmp_path / "policy.json").write_text(json.dumps(odd_records.RULES))
    lines, bad = odd_records.lines()
    (tmp_path / "in.ndjson").write_text("\n".join(lines) + "\n")
    with Stream(tmp_path / "policy.json", store=tmp_path / "file.db", seed=5) as stream:
        stream.run(str(tmp_path / "in.ndjson"), str(tmp_path / "out.ndjson"))
        refused = [(int(letter.position), letter.reason) for letter in stream.dead_letters()]
    topics = Topics(kafka, 1)
    topics.send([], tuple(line.encode() for line in lines))
    with Store.open(tmp_path / "topic.db") as store:
        done = work(topics, Policy.load(tmp_path / "policy.json"), store, seed=5)
        (name,) = store.publishers()
        letters = store.dead_letters(name)
    assert (done.published, done.dead_letters) == (len(lines) - len(bad), len(bad))
    assert [(int(letter.position.rpartition("/")[2]), letter.reason) for letter in letters] == refused
    assert topics.read()[0][1:] == [json.loads(line) for line in (tmp_path / "out.ndjson").read_bytes().splitlines()]


def test_another_key_or_lost_state_is_refused(kafka, tmp_path, monkeypatch):
    from confluent_kafka.admin import AdminClient

    from reticent.connectors.kafka import state

    topics, wanted = Topics(kafka, 1), stream_feed.policy(tmp_path)
    topics.send(stream_feed.records(200))
    with Store.open(tmp_path / "store.db") as store:
        work(topics, wanted, store)
    topics.send(stream_feed.records(10, 200))
    with Store.open(tmp_path / "other.db") as other, pytest.raises(StateError, match="another key"):
        work(topics, wanted, other)
    admin = AdminClient({"bootstrap.servers": kafka.address})
    admin.delete_topics([f"{topics.sink}.reticent-state"])[f"{topics.sink}.reticent-state"].result(30)
    monkeypatch.setattr(state, "_WAIT", 3.0)
    with Store.open(tmp_path / "store.db") as store, pytest.raises((StateError, ConnectorError)):
        work(topics, wanted, store)
    assert sum(line["type"] == "record" for lines in topics.read().values() for line in lines) == 200


def test_added_shards_are_refused_where_persons_are_remembered(kafka, tmp_path):
    topics, wanted = Topics(kafka, 2), stream_feed.policy(tmp_path)
    topics.send(stream_feed.records(701))
    with Store.open(tmp_path / "store.db") as store:
        work(topics, wanted, store)
        topics.check(wanted, tmp_path)
        topics.grow(4)
        with pytest.raises(StateError, match="2 shards"):
            work(topics, wanted, store)


class Crew:
    """Worker processes that are killed and replaced."""

    def __init__(self, topics: Topics, folder: Path) -> None:
        self._command = [sys.executable, str(SERVICES / "kafka_worker.py"), topics.url(topics.source)]
        self._command += [topics.url(topics.sink), str(folder)]
        self._log, self.alive = (folder / "workers.log").open("ab"), []

    def hire(self) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(SERVICES)])}
        self.alive.append(subprocess.Popen(self._command, stdout=self._log, stderr=self._log, env=environment))

    def kill(self, place: int) -> None:
        worker = self.alive.pop(place)
        worker.send_signal(signal.SIGKILL)
        worker.wait()

    @contextlib.contextmanager
    def asleep(self, place: int):
        """A worker that stands still, as in a long pause of its machine, and does not know it when it wakes up."""
        self.alive[place].send_signal(signal.SIGSTOP)
        yield
        self.alive[place].send_signal(signal.SIGCONT)

    def dismiss(self) -> None:
        while self.alive:
            self.kill(0)
        self._log.close()


def until(topics: Topics, count: int, crew: Crew) -> None:
    """Waits for the output; the workers have to get on by themselves."""
    end = time.monotonic() + LIMIT
    while topics.published() < count:
        assert any(worker.poll() is None for worker in crew.alive), "every worker has died"
        if topics.broker.ill():
            topics.broker.kill()
            topics.broker.start()
        assert time.monotonic() < end, "the workers do not get on"


def test_kill_workers_and_broker_at_random_moments(kafka, tmp_path):
    seed = int(os.environ.get("RETICENT_SEED", "0")) or random.SystemRandom().randrange(1 << 30)
    print(f"seed {seed}")  # noqa: T201 - pytest shows it when the test fails
    dice = random.Random(seed)
    topics, wanted = Topics(kafka, 4), stream_feed.policy(tmp_path)
    crew, sent, at_work = Crew(topics, tmp_path), 0, 0
    try:
        crew.hire()
        crew.hire()
        for step in range(KILLS):
            topics.send(stream_feed.records(1200, sent))
            sent += 1200
            until(topics, sent - 1200 + dice.randrange(1, 900), crew)
            if step == 1:
                with crew.asleep(dice.randrange(2)):
                    until(topics, sent, crew)
            elif step % 5 == 2:
                kafka.kill()
                kafka.start()
            else:
                crew.kill(dice.randrange(2))
                at_work += topics.published() < sent
                if step == 0:
                    until(topics, sent, crew)  # one dies: the other takes its shards over, with their state
                crew.hire()
        until(topics, sent, crew)
    finally:
        crew.dismiss()
    print(f"{KILLS} rounds, {at_work} workers killed at work, {sent} records")  # noqa: T201 - for make stress
    topics.check(wanted, tmp_path)


class Odd:
    """A producer whose first call of a kind goes another way."""

    def __init__(self, producer, kind: str, instead: list) -> None:
        self._producer, self._kind, self._instead = producer, kind, instead

    def __getattr__(self, name: str):
        call = getattr(self._producer, name)
        return self._instead.pop() if name == self._kind and self._instead else call


@pytest.fixture
def odd(monkeypatch):
    """Makes the first call of a kind go another way; counts the sessions that a worker needs."""
    from reticent.connectors.kafka import client, session

    opened, sessions = session.Session._open_producer, []

    def make(kind: str, instead) -> list[str]:
        pending = [instead]

        def open_(self, name: str):
            sessions.append(name)
            return Odd(opened(self, name), kind, pending)

        monkeypatch.setattr(session.Session, "_open_producer", open_)
        monkeypatch.setattr(client, "_DEADLINE", 2.0)
        return sessions

    return make


@pytest.mark.parametrize("kind", ["send_offsets_to_transaction", "commit_transaction"])
def test_a_call_that_never_returns_is_survived(kafka, tmp_path, odd, kind):
    """As in librdkafka when a broker was lost: a new session, under the same name, ends what was left open."""
    topics, wanted, free = Topics(kafka, 2), stream_feed.policy(tmp_path), threading.Event()
    topics.send(stream_feed.records(120))
    sessions = odd(kind, lambda *_: free.wait())
    with Store.open(tmp_path / "store.db") as store:
        assert work(topics, wanted, store).published == 120
    assert len(sessions) == 2
    assert len(set(sessions)) == 1
    topics.check(wanted, tmp_path)
    free.set()


def test_a_transaction_that_a_rebalance_overtakes_is_repeated(kafka, tmp_path, odd):
    from confluent_kafka import KafkaError, KafkaException

    def overtaken(*_) -> None:
        raise KafkaException(KafkaError(KafkaError.ILLEGAL_GENERATION, txn_requires_abort=True))

    topics, wanted = Topics(kafka, 2), stream_feed.policy(tmp_path)
    topics.send(stream_feed.records(120))
    sessions = odd("send_offsets_to_transaction", overtaken)
    with Store.open(tmp_path / "store.db") as store:
        assert work(topics, wanted, store).published == 120
    assert len(sessions) == 1
    topics.check(wanted, tmp_path)


def test_from_the_command_line(kafka, tmp_path):
    from click.testing import CliRunner

    from reticent.cli import app

    topics, wanted = Topics(kafka, 1), stream_feed.policy(tmp_path)
    topics.send(stream_feed.records(50))
    (tmp_path / "policy.json").write_text(json.dumps(wanted.to_dict()))
    words = ["stream", topics.url(topics.source), "-p", str(tmp_path / "policy.json"), "--store"]
    words += [str(tmp_path / "store.db"), "--to", topics.url(topics.sink), "--until-end", "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout.strip().splitlines()[-1])
    assert (told["input"], told["published"], told["withheld"]) == (50, 50, 0)
    topics.check(wanted, tmp_path)
