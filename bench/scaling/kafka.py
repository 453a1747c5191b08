"""Kafka topic to topic: records per second of one and of two workers, each a separate process, and their limits.

python -m bench.scaling.kafka SOURCE SINK FOLDER GROUP NUMBER WORKERS bare|worker      one worker
"""

from __future__ import annotations

import contextlib
import cProfile
import json
import os
import pstats
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def kafka(folder: Path, workers: list[int], records: int) -> list[dict[str, Any]]:
    """Return figures per number of workers on one topic of two partitions, each with those of a bare client loop."""
    with _broker(folder, records) as broker:
        figures = []
        for count in workers:
            figure = {"workers": count, "shards": _SHARDS, "records": records}
            for kind in ("bare", "worker"):
                busy = _busy(broker)
                rates = _rates(_run(folder, broker.address, count, kind), busy)
                figure |= rates if kind == "worker" else {"client_alone": rates}
            figures.append(figure | {"rate_of_client_alone": _share(figure)})
            print(json.dumps(figures[-1]), flush=True)
        figures[0] |= {"profile": _profiled(folder, broker.address)}
        return figures


def limited(folder: Path, share: float, rounds: int, records: int) -> dict[str, Any]:
    """Compare one worker with two in turn, each limited to a share of a core, so that the machine is not the limit."""
    with _broker(folder, records) as broker:
        figures: dict[int, list[dict[str, Any]]] = {1: [], 2: []}
        for at in range(rounds):
            for count, known in figures.items():
                place = folder / f"round-{at}"
                place.mkdir(exist_ok=True)
                busy = _busy(broker)
                known.append(_rates(_run(place, broker.address, count, "worker", share), busy))
                print(json.dumps({"workers": count} | known[-1]), flush=True)
    rate = {count: median(one["records_per_second"] or 0 for one in known) for count, known in figures.items()}
    return {
        "cores_per_worker": share,
        "records": records,
        "one_worker": figures[1],
        "two_workers": figures[2],
        "times_one_worker": round(rate[2] / (rate[1] or 1), 2),
    }


@contextlib.contextmanager
def _broker(folder: Path, records: int) -> Iterator[Any]:
    """Start a broker with a full topic."""
    import services

    (folder / "broker").mkdir()
    # As in production: replicas keep what a machine loses.
    broker = services.Broker(folder / "broker", flushing=False)
    broker.start()
    try:
        _fill(broker.address, records)
        yield broker
    finally:
        broker.stop()


_GROUPS = Path("/sys/fs/cgroup/cpu")
_PERIOD = 20_000
"""Microseconds: short, so that a worker does not run at full speed for long."""


@contextlib.contextmanager
def _at_most(share: float | None, workers: list[subprocess.Popen[bytes]]) -> Iterator[None]:
    """Limit processes to a share of a core each; needs permission to create a cpu control group (version 1)."""
    groups = [_GROUPS / f"reticent-bench-{worker.pid}" for worker in workers if share is not None]
    for group, worker in zip(groups, workers, strict=bool(groups)):
        group.mkdir()
        (group / "cpu.cfs_period_us").write_text(str(_PERIOD))
        (group / "cpu.cfs_quota_us").write_text(str(int(_PERIOD * (share or 1))))
        (group / "cgroup.procs").write_text(str(worker.pid))
    try:
        yield
    finally:
        for worker in workers:
            worker.wait(300)
        for group in groups:
            group.rmdir()


def _share(figure: dict[str, Any]) -> float:
    return round((figure["records_per_second"] or 0) / (figure["client_alone"]["records_per_second"] or 1), 2)


def _busy(broker: Any) -> Callable[[], float]:
    """Return a function for the processor seconds that the broker has used since now."""
    place = Path(f"/proc/{broker.process}/stat")

    def used() -> float:
        fields = place.read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    before = used()
    return lambda: used() - before


_SHARDS = 2
_SOURCE = "in"


def _fill(address: str, records: int) -> None:
    import stream_feed
    from confluent_kafka import Producer

    _make(address, _SOURCE)
    producer = Producer({"bootstrap.servers": address, "queue.buffering.max.messages": 4_000_000, "linger.ms": 50})
    for record in stream_feed.records(records):
        value = json.dumps(record).encode()
        producer.produce(_SOURCE, value, key=record["person"])
    assert producer.flush(300) == 0


def _make(address: str, topic: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(topic, _SHARDS, 1)])[topic].result(30)


def _run(folder: Path, address: str, count: int, kind: str, share: float | None = None) -> list[list[list[float]]]:
    """Return the batches of each worker: clock, processor time, records."""
    name = f"{folder.name}-{kind}-{count}"
    urls = [f"kafka://{address}/{_SOURCE}", f"kafka://{address}/{name}"]
    place = folder / f"{kind}-{count}"
    place.mkdir()
    if kind == "bare":
        _make(address, name)
    command = [sys.executable, "-m", "bench.scaling.kafka", *urls, str(place), name]
    started = [subprocess.Popen([*command, str(at), str(count), kind]) for at in range(count)]
    with _at_most(share, started):
        while sum(1 for _ in place.glob("*.ready")) < count:  # start them together
            time.sleep(0.05)
        (place / "go").touch()
    if any(worker.returncode for worker in started):
        raise RuntimeError("a worker failed")
    return [json.loads((place / f"{at}.json").read_text()) for at in range(count)]


def _rates(marks: list[list[list[float]]], broker: Callable[[], float]) -> dict[str, Any]:
    """Return records per second while all workers were active: from the last start to the first end."""
    if not all(marks):
        return {"records_per_second": None}  # one worker ended before the others had started
    began, ended = max(one[0][0] for one in marks), min(one[-1][0] for one in marks)
    done = busy = rate = cores = 0.0
    for one in marks:
        inside = [mark for mark in one if began <= mark[0] <= ended]
        clock, spent, records = (last - first for last, first in zip(inside[-1], inside[0], strict=True))
        done, busy = done + records, busy + spent
        # Only batches that begin and end within that time.
        rate, cores = rate + records / max(clock, 1e-9), cores + spent / max(clock, 1e-9)
    return {
        "records_per_second": round(rate),
        "records_per_cpu_second": round(done / max(busy, 1e-9)),
        "cores_busy_in_the_workers": round(cores, 2),
        "microseconds_per_record": round(1e6 * busy / max(done, 1), 2),
        "microseconds_of_broker": round(1e6 * broker() / max(1, sum(one[-1][2] for one in marks)), 2),
    }


def _profiled(folder: Path, address: str) -> list[dict[str, Any]]:
    """Return the slowest functions of one worker."""
    profile = cProfile.Profile()
    place = folder / "profiled"
    place.mkdir()
    profile.enable()
    work(f"kafka://{address}/{_SOURCE}", f"kafka://{address}/aside", place, "profile", 1)
    profile.disable()
    return hottest(profile)


def work(source: str, sink: str, folder: Path, group: str, workers: int) -> list[list[float]]:
    """Run one worker until its partitions are read; wait until it has its share of them."""
    import stream_feed

    from reticent.connectors.kafka import Settings, run_kafka
    from reticent.connectors.kafka.address import Address
    from reticent.connectors.kafka.run import end_offsets
    from reticent.store import Store

    goals, marks = end_offsets(Address.parse(source)), list[list[float]]()

    def going(worker: Any) -> bool:
        positions = worker.positions()
        if len(positions) == _SHARDS // workers and (not marks or worker.published > marks[-1][2]):
            marks.append([time.monotonic(), time.process_time(), worker.published])
        return not positions or any(at < goals[shard] for shard, at in positions.items())

    with Store.open(folder / "store.db") as store:
        run_kafka(source, sink, stream_feed.policy(folder), store, settings=Settings(group=group), keep_running=going)
    return marks


def bare(source: str, sink: str, group: str, number: int, workers: int) -> list[list[float]]:
    """Run the client alone: read like a worker and commit constant lines of the same size, without parsing records."""
    from confluent_kafka import Consumer, Message, Producer, TopicPartition

    from reticent.connectors.kafka.address import Address
    from reticent.connectors.kafka.client import pause_gc
    from reticent.connectors.kafka.run import end_offsets
    from reticent.connectors.kafka.session import Settings, consumer_settings, producer_settings
    from reticent.connectors.kafka.transaction import Route, ShardBatch, Transaction

    settings, origin, target = Settings(group=group), Address.parse(source), Address.parse(sink)
    producer = Producer(producer_settings(target, settings, f"{group}-{number}"))
    producer.init_transactions(10)
    consumer = Consumer(consumer_settings(origin, settings))
    mine = range(number, _SHARDS, workers)
    consumer.assign([TopicPartition(origin.topic, shard, 0) for shard in mine])
    route, goal = Route(origin.topic, target.topic, "", settings.lease), end_offsets(origin)
    flight, done, marks = None, dict.fromkeys(mine, 0), list[list[float]]()
    while any(done[shard] < goal[shard] for shard in mine):
        with pause_gc():
            messages = consumer.consume(settings.batch, settings.linger)
            read = Counter(map(Message.partition, messages))
            del messages
        if flight is not None:
            flight.finish()
        marks.append([time.monotonic(), time.process_time(), sum(done.values())])
        done = {shard: at + read[shard] for shard, at in done.items()}
        parts = [ShardBatch(shard, done[shard], lines=_LINE * size) for shard, size in read.items()]
        flight = Transaction(producer, route, parts, consumer.consumer_group_metadata()) if parts else None
    if flight is not None:
        flight.finish()
    marks.append([time.monotonic(), time.process_time(), sum(done.values())])
    consumer.close()
    return marks


_LINE = (
    b'{"type":"record","seq":123456,"quasi":{"age":44,"zip":"00091"},"plain":{"ward":123456},"row":0,"event":175,'
    b'"candidates":["angina","asthma","migraine","ulcer"]}\n'
)
"""As long as the lines of the feed."""


def hottest(profile: cProfile.Profile, most: int = 12) -> list[dict[str, Any]]:
    """Return the functions with the most time of their own."""
    stats = pstats.Stats(profile)
    total = sum(row[2] for row in stats.stats.values()) or 1.0  # type: ignore[attr-defined]
    rows = sorted(stats.stats.items(), key=lambda item: -item[1][2])[:most]  # type: ignore[attr-defined]
    return [{"what": f"{Path(k[0]).name}:{k[2]}", "share": round(v[2] / total, 3)} for k, v in rows]


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "services"))
    place = Path(sys.argv[3])
    (place / f"{sys.argv[5]}.ready").touch()
    while not (place / "go").exists():
        time.sleep(0.05)
    group, workers = sys.argv[4], int(sys.argv[6])
    if sys.argv[7] == "bare":
        batches = bare(sys.argv[1], sys.argv[2], group, int(sys.argv[5]), workers)
    else:
        batches = work(sys.argv[1], sys.argv[2], place, group, workers)
    (place / f"{sys.argv[5]}.json").write_text(json.dumps(batches))
