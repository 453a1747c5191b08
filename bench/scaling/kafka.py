"""Topic to topic through one worker: records per second for several numbers of shards, and what limits them."""

from __future__ import annotations

import cProfile
import json
import pstats
import time
from pathlib import Path
from typing import Any


def kafka(folder: Path, shards: list[int], records: int) -> list[dict[str, Any]]:
    """Topic to topic through one worker: records per second for several numbers of shards, and a profile."""
    import stream_feed
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    import services
    from reticent.connectors.kafka import Settings, run_kafka
    from reticent.connectors.shards import shard_of
    from reticent.store import Store

    (folder / "broker").mkdir()
    broker = services.Broker(
        folder / "broker", flushing=False
    )  # as brokers are run: replicas keep what a machine loses
    broker.start()
    figures = []
    try:
        admin = AdminClient({"bootstrap.servers": broker.address})
        for count in shards:
            names = [f"in-{count}", f"out-{count}"]
            for made in admin.create_topics([NewTopic(name, count, 1) for name in names]).values():
                made.result(30)
            producer = Producer({"bootstrap.servers": broker.address, "queue.buffering.max.messages": 2_000_000})
            for record in stream_feed.records(records):
                shard = shard_of(record["person"], count, b"k")
                producer.produce(names[0], json.dumps(record).encode(), partition=shard)
            producer.flush(120)
            urls = [f"kafka://{broker.address}/{name}" for name in names]
            settings = Settings(batch=min(5000, records // 8), group=f"bench-{count}")
            again = Settings(batch=settings.batch, group=f"profile-{count}")
            clock, profiled = _Clock(), _Clock(cProfile.Profile())
            with Store.open(folder / f"{count}.db") as store:
                policy = stream_feed.policy(folder)
                done = run_kafka(*urls, policy, store, settings=settings, until_end=True, going=clock)
                aside = f"kafka://{broker.address}/aside-{count}"
                run_kafka(urls[0], aside, policy, store, settings=again, until_end=True, going=profiled)
            figure = {"shards": count, "workers": 1, "records": done.published, **clock.figures(count)}
            figure |= profiled.profile_figures()
            print(json.dumps(figure), flush=True)
            figures.append(figure)
    finally:
        broker.stop()
    return figures


class _Clock:
    """Times the batches of a worker, without the time it takes to join its group; profiles it too if asked to."""

    def __init__(self, profile: cProfile.Profile | None = None) -> None:
        self._marks: list[tuple[float, float, int]] = []
        self._profile = profile

    def __call__(self, worker: Any) -> bool:
        if worker.positions() and (not self._marks or worker.published > self._marks[-1][2]):
            self._marks.append((time.perf_counter(), time.process_time(), worker.published))
            if self._profile is not None and len(self._marks) == 1:
                self._profile.enable()
        return True

    def figures(self, shards: int) -> dict[str, Any]:
        """Rates between the first batch and the last."""
        (began, before, first), (ended, after, last) = self._marks[0], self._marks[-1]
        seconds, cpu = max(ended - began, 1e-9), max(after - before, 1e-9)
        return {
            "records_per_second": round((last - first) / seconds),
            "records_per_second_per_shard": round((last - first) / seconds / shards),
            "records_per_cpu_second": round((last - first) / cpu),
            "cores_busy_in_the_worker": round(cpu / seconds, 2),
        }

    def profile_figures(self) -> dict[str, Any]:
        """The share of the time that the worker waits, for records and for its transactions, and its hottest functions."""
        assert self._profile is not None
        self._profile.disable()
        rows = hottest(self._profile, 1000)
        waits = {"for_records": "'consume'", "for_transactions": "SimpleQueue"}
        waiting = {name: round(sum(r["share"] for r in rows if word in r["what"]), 3) for name, word in waits.items()}
        return {"waiting": waiting, "profile": rows[:8]}


def hottest(profile: cProfile.Profile, most: int = 8) -> list[dict[str, Any]]:
    """The functions that take the time, by their own seconds."""
    stats = pstats.Stats(profile)
    total = sum(row[2] for row in stats.stats.values()) or 1.0  # type: ignore[attr-defined]
    rows = sorted(stats.stats.items(), key=lambda item: -item[1][2])[:most]  # type: ignore[attr-defined]
    return [{"what": f"{Path(k[0]).name}:{k[2]}", "share": round(v[2] / total, 3)} for k, v in rows]
