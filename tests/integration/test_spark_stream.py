"""Structured Streaming: every record once, also after a kill; the number of shards is pinned."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import orjson
import pytest
import spark_driver
import stream_feed

import services
from reticent.errors import StateError
from reticent.publication.stream import StreamPublication

SERVICES = Path(stream_feed.__file__).parent
LIMIT = 400.0
KILLS = int(os.environ.get("RETICENT_KILLS", "1"))


def feed(folder: Path, records: list[dict], files: int) -> None:
    (folder / "in").mkdir(exist_ok=True)
    for at in range(files):
        part = folder / "in" / f"{time.time_ns()}-{at}.json"
        text = "".join(orjson.dumps(record).decode() + "\n" for record in records[at::files])
        hidden = part.with_name(f".{part.name}")
        hidden.write_text(text)
        hidden.rename(part)


def published(folder: Path) -> dict[int, list[dict]]:
    """The lines of every shard, batch by batch."""
    found: dict[int, list[dict]] = {}
    for batch in sorted((folder / "out").glob("batch=*")):
        for shard in batch.glob("shard=*"):
            lines = found.setdefault(int(shard.name.removeprefix("shard=")), [])
            for part in sorted(shard.glob("*.txt")):
                lines += [json.loads(line) for line in part.read_text().splitlines()]
    return found


def check(folder: Path, given: list[dict]) -> dict[int, list[dict]]:
    of = {record["ward"]: record for record in given}
    found = published(folder)
    seen = 0
    for shard, lines in found.items():
        mine = [of[line["plain"]["ward"]] for line in lines if line["type"] == "record"]
        wanted = stream_feed.policy(folder)
        codebook = json.loads(StreamPublication(wanted).codebook())
        stream_feed.check([codebook, *lines], mine, wanted, folder, shard)
        seen += len(mine)
    assert seen == len(given), "a record is missing, or was published twice"
    everyone = {line["plain"]["ward"] for lines in found.values() for line in lines if line["type"] == "record"}
    assert everyone == of.keys()
    return found


def test_every_record_once_and_the_number_of_shards_is_pinned(spark, tmp_path):
    first = stream_feed.records(701)
    feed(tmp_path, first, 3)
    spark_driver.run(spark, tmp_path, 2)
    check(tmp_path, first)
    again = [dict(record, ward=record["ward"] + 701) for record in first]
    feed(tmp_path, again, 1)
    with pytest.raises(StateError, match="2 shards"):
        spark_driver.run(spark, tmp_path, 3)
    spark_driver.run(spark, tmp_path, 2)
    assert check(tmp_path, first + again).keys() == {0, 1}


def test_from_kafka_with_dead_letters(spark, kafka, tmp_path):
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    topic, given = f"in-{uuid.uuid4().hex[:8]}", stream_feed.records(200)
    admin = AdminClient({"bootstrap.servers": kafka.address})
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(30)
    producer = Producer({"bootstrap.servers": kafka.address})
    for record in given:
        producer.produce(topic, orjson.dumps(record), key=record["person"])
    producer.produce(topic, b"not JSON at all")
    assert producer.flush(60) == 0
    spark_driver.run(spark, tmp_path, 2, (kafka.address, topic))
    check(tmp_path, given)
    dead = [path.read_text() for path in tmp_path.glob("out.dead/batch=*/shard=*/*.txt")]
    assert dead == ["not JSON\tnot JSON at all\n"]


def test_kill_python_workers_at_random_moments(spark, tmp_path):
    """Single Python workers die in the middle of a batch; Spark gives their tasks to others."""
    seed = int(os.environ.get("RETICENT_SEED", "0")) or random.SystemRandom().randrange(1 << 30)
    print(f"seed {seed}")  # noqa: T201 - pytest shows it when the test fails
    dice, killed, most = random.Random(seed), set(), max(3, KILLS)
    given = stream_feed.records(400 * most)
    feed(tmp_path, given, 2 * most + 2)
    with ThreadPoolExecutor(1) as pool:
        query = pool.submit(spark_driver.run, spark, tmp_path, 3)
        while not query.done() and len(killed) < most:
            # A batch has begun beyond those in which a worker has been killed already.
            begun = len(list((tmp_path / "checkpoint" / "offsets").glob("[0-9]*")))
            workers = services.python_workers()
            if begun > len(killed) and workers:
                time.sleep(dice.random() / 2)
                victim = dice.choice(workers)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)
                    killed.add(victim)
            time.sleep(0.02)
        query.result(LIMIT)
    assert killed
    print(f"{len(killed)} Python workers killed, {len(given)} records")  # noqa: T201 - for make stress
    check(tmp_path, given)


def test_kill_the_driver_at_random_moments(spark, tmp_path):
    """The driver with its Java and Python workers dies; a new one ends the work from the checkpoint."""
    seed = int(os.environ.get("RETICENT_SEED", "0")) or random.SystemRandom().randrange(1 << 30)
    print(f"seed {seed}")  # noqa: T201 - pytest shows it when the test fails
    dice = random.Random(seed)
    given: list[dict] = []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(SERVICES)])}
    for _ in range(KILLS):
        more = stream_feed.records(1200, len(given))
        feed(tmp_path, more, 8)
        given += more
        with (tmp_path / "driver.log").open("ab") as log:
            driver = subprocess.Popen(
                [sys.executable, str(SERVICES / "spark_driver.py"), str(tmp_path), "3"],
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
            )
        there, end = len(list((tmp_path / "out").glob("batch=*"))), time.monotonic() + LIMIT
        goal = there + dice.randrange(1, 4)
        while len(list((tmp_path / "out").glob("batch=*"))) < goal and driver.poll() is None:
            assert time.monotonic() < end, (tmp_path / "driver.log").read_text()[-3000:]
            time.sleep(dice.random() / 20)
        assert driver.poll() is None, (tmp_path / "driver.log").read_text()[-3000:]
        os.killpg(driver.pid, signal.SIGKILL)  # the process group that this test has made
        driver.wait()
    spark_driver.run(spark, tmp_path, 3)
    print(f"{KILLS} drivers killed, {len(given)} records")  # noqa: T201 - for make stress
    check(tmp_path, given)
