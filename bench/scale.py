"""Scale-out: Spark tables against the number of rows, Kafka per number of shards, Spark streams, bytes of state.

`python -m bench.scale` alone prints the figures; the services are those of the tests (scripts/install-kafka).
"""

from __future__ import annotations

import cProfile
import json
import pstats
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "services"))

TABLE_POLICY = {
    "version": 1,
    "columns": {
        "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20, 40]}},
        "sex": "quasi",
        "marital": "quasi",
        "education": {"role": "quasi", "hierarchy": {"intervals": [4, 8]}},
        "illness": "sensitive",
    },
    "privacy": {"k": 10, "l": 3, "t": 0.3, "suppression": 0.02},
}
_SIZES = {"age": 80, "sex": 2, "marital": 7, "education": 16, "illness": 12}


def write_rows(path: Path, rows: int, seed: int = 1) -> None:
    """Skewed synthetic rows as Parquet, a million at a time."""
    rng = np.random.default_rng(seed)
    shares = {name: (w := 1 / np.arange(1, n + 1) ** 1.1) / w.sum() for name, n in _SIZES.items()}
    with pq.ParquetWriter(path, pa.schema([(name, pa.int32()) for name in _SIZES])) as out:
        for first in range(0, rows, 1_000_000):
            n = min(1_000_000, rows - first)
            columns = {
                name: pa.array(np.searchsorted(np.cumsum(share), rng.random(n)).clip(0, len(share) - 1).astype("i4"))
                for name, share in shares.items()
            }
            out.write_table(pa.table(columns))


def tables(spark: Any, folder: Path, sizes: list[int], *, compare: int) -> list[dict[str, Any]]:
    """Seconds of a release on Spark, written to Parquet, against rows; equal to one machine up to `compare` rows."""
    from reticent import Policy, anonymize
    from reticent.connectors.spark import release

    policy, figures = Policy.from_dict(TABLE_POLICY), []
    for rows in sizes:
        path = folder / f"{rows}.parquet"
        write_rows(path, rows)
        began = time.perf_counter()
        made = release(spark.read.parquet(str(path)), policy)
        checked = time.perf_counter() - began
        made.frame.write.mode("overwrite").parquet(str(folder / "out"))
        figure: dict[str, Any] = {
            "rows": rows,
            "seconds_search_and_verify": round(checked, 2),
            "seconds_in_all": round(time.perf_counter() - began, 2),
            "combinations": made.explain["combinations"],
            "loss": made.metrics["loss"],
            "suppressed": made.counts.suppressed,
        }
        if rows <= compare:
            began = time.perf_counter()
            local = anonymize(pq.read_table(path), policy, seed=1)
            figure["seconds_one_machine"] = round(time.perf_counter() - began, 2)
            figure["equal"] = counted(pq.read_table(folder / "out")) == counted(local.tables["data"])
        path.unlink()
        print(json.dumps(figure), flush=True)
        figures.append(figure)
    return figures


def generated(spark: Any, sizes: list[int]) -> list[dict[str, Any]]:
    """Seconds to search and verify a release of rows that Spark makes itself, in a driver of 2 GB."""
    from pyspark.sql import functions as F  # noqa: N812

    from reticent import Policy
    from reticent.connectors.spark import release

    policy, figures = Policy.from_dict(TABLE_POLICY), []
    for rows in sizes:
        frame = spark.range(rows)
        for salt, (name, size) in enumerate(_SIZES.items()):
            share = F.pmod(F.xxhash64("id", F.lit(salt)), F.lit(1 << 20)) / (1 << 20)
            frame = frame.withColumn(name, F.floor(F.pow(share, 2) * size).cast("int"))
        began = time.perf_counter()
        made = release(frame.drop("id"), policy)
        seconds = time.perf_counter() - began
        figure = {"rows": rows, "seconds_search_and_verify": round(seconds, 1), "loss": made.metrics["loss"]}
        figure |= {"suppressed": made.counts.suppressed, "rows_in": made.counts.rows_in}
        print(json.dumps(figure), flush=True)
        figures.append(figure)
    return figures


def counted(table: pa.Table) -> list[tuple[Any, ...]]:
    """Every distinct published row with its count."""
    names = sorted(table.column_names)
    found = table.select(names).group_by(names).aggregate([([], "count_all")])
    return sorted(zip(*(found.column(name).to_pylist() for name in [*names, "count_all"]), strict=True), key=repr)


def shard_cost(folder: Path, records: int) -> dict[str, Any]:
    """One shard without a broker: records per second, where the time goes, bytes of state."""
    import stream_feed

    from reticent import Rng
    from reticent.connectors.shards import Shard, sharded

    policy = sharded(stream_feed.policy(folder))
    values = [json.dumps(record).encode() for record in stream_feed.records(records)]
    shard = Shard(policy, Rng.from_seed(1), 0)
    profile = cProfile.Profile()
    began, cpu = time.perf_counter(), time.process_time()
    for first in range(0, records, 5000):
        shard.take([r for v in values[first : first + 5000] if not isinstance(r := shard.form.read(v), str)])
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    other = Shard(policy, Rng.from_seed(1), 0)
    profile.enable()
    for first in range(0, min(records, 20_000), 5000):
        other.take([r for v in values[first : first + 5000] if not isinstance(r := shard.form.read(v), str)])
    profile.disable()
    metrics, snapshot = shard.publisher.metrics(), shard.snapshot()
    empty = len(Shard(policy, Rng.from_seed(1), 0).snapshot())
    return {
        "records": records,
        "records_per_second": round(records / seconds),
        "records_per_cpu_second": round(records / cpu),
        "open_groups": metrics["open_groups"],
        "snapshot_bytes": len(snapshot),
        "snapshot_bytes_empty": empty,
        "state_bytes_per_open_group": round((len(snapshot) - empty) / max(1, metrics["open_groups"]), 1),
        "journal_bytes_per_record": 28,
        "profile": hottest(profile),
    }


def phases(folder: Path, records: int) -> dict[str, Any]:
    """Where the processor time of a shard goes, in shares, and how long a takeover replays."""
    import stream_feed

    from reticent import Rng
    from reticent.connectors.shards import Shard, sharded

    policy = sharded(stream_feed.policy(folder))
    values = [json.dumps(record).encode() for record in stream_feed.records(records)]
    shard, twin = Shard(policy, Rng.from_seed(1), 0), Shard(policy, Rng.from_seed(1), 0)
    spent, journal = dict.fromkeys(("parse", "columns_and_hashes", "place", "lines"), 0.0), []
    for first in range(0, records, 5000):
        marks = [time.process_time()]
        told = [shard.form.read(value) for value in values[first : first + 5000]]
        marks.append(time.process_time())
        read = shard.publisher.read(shard._table(told))  # type: ignore[arg-type]  # noqa: SLF001 - its steps one by one
        marks.append(time.process_time())
        placed = shard.publisher.place(read)
        marks.append(time.process_time())
        shard._lines(told, read, placed)  # type: ignore[arg-type]  # noqa: SLF001
        marks.append(time.process_time())
        journal.append(read.to_bytes())
        for name, a, b in zip(spent, marks, marks[1:], strict=False):
            spent[name] += b - a
    began = time.process_time()
    for entry in journal:
        twin.replay(entry)
    replayed = time.process_time() - began
    total = sum(spent.values())
    return {
        "shares_of_time": {name: round(seconds / total, 3) for name, seconds in spent.items()},
        "replayed_records_per_cpu_second": round(records / replayed),
        "snapshot_bytes_by_l": {l: state_bytes(folder, l, values) for l in (2, 4, 8)},
    }


def state_bytes(folder: Path, l: int, values: list[bytes]) -> dict[str, Any]:
    """The size of a shard's snapshot and the open groups in it."""
    import stream_feed

    from reticent import Rng
    from reticent.connectors.shards import Shard, sharded

    shard = Shard(sharded(stream_feed.policy(folder, l=l)), Rng.from_seed(1), 0)
    sizes = [(0, len(shard.snapshot()))]
    for first in range(0, 20_000, 5000):
        shard.take([r for v in values[first : first + 5000] if not isinstance(r := shard.form.read(v), str)])
        sizes.append((int(shard.publisher.metrics()["open_groups"]), len(shard.snapshot())))
    slope = np.polyfit(*zip(*sizes, strict=True), 1)[0]
    return {"open_groups": sizes[-1][0], "bytes": sizes[-1][1], "bytes_per_open_group": round(float(slope), 1)}


def hottest(profile: cProfile.Profile, most: int = 8) -> list[dict[str, Any]]:
    """The functions that take the time, by their own seconds."""
    stats = pstats.Stats(profile)
    total = sum(row[2] for row in stats.stats.values()) or 1.0  # type: ignore[attr-defined]
    rows = sorted(stats.stats.items(), key=lambda item: -item[1][2])[:most]  # type: ignore[attr-defined]
    return [{"what": f"{Path(k[0]).name}:{k[2]}", "share": round(v[2] / total, 3)} for k, v in rows]


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
    broker = services.Broker(folder / "broker")
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
            clock = _Clock()
            profile = cProfile.Profile()
            settings = Settings(batch=5000, group=f"bench-{count}")
            with Store.open(folder / f"{count}.db") as store:
                policy = stream_feed.policy(folder)
                cpu = time.process_time()
                done = run_kafka(*urls, policy, store, settings=settings, until_end=True, going=clock)
                cpu = time.process_time() - cpu
                again = Settings(batch=5000, group=f"profile-{count}")
                aside = f"kafka://{broker.address}/aside-{count}"
                profile.enable()
                run_kafka(urls[0], aside, policy, store, settings=again, until_end=True)
                profile.disable()
            figure = {
                "shards": count,
                "workers": 1,
                "records": done.published,
                "records_per_second": round(clock.rate()),
                "records_per_second_per_shard": round(clock.rate() / count),
                "records_per_cpu_second": round(done.published / cpu),
                "profile": hottest(profile),
            }
            print(json.dumps(figure), flush=True)
            figures.append(figure)
    finally:
        broker.stop()
    return figures


class _Clock:
    """Times the batches of a worker, without the time it takes to join its group."""

    def __init__(self) -> None:
        self._marks: list[tuple[float, int]] = []

    def __call__(self, worker: Any) -> bool:
        if worker.positions() and (not self._marks or worker.published > self._marks[-1][1]):
            self._marks.append((time.perf_counter(), worker.published))
        return True

    def rate(self) -> float:
        (began, first), (ended, last) = self._marks[0], self._marks[-1]
        return (last - first) / max(ended - began, 1e-9)


def spark_stream(spark: Any, folder: Path, shards: list[int], records: int) -> list[dict[str, Any]]:
    """Structured Streaming from files to files: records per second and seconds per micro-batch."""
    import spark_driver
    import stream_feed

    figures = []
    for count in shards:
        place = folder / f"stream-{count}"
        (place / "in").mkdir(parents=True)
        parts = 6
        for part in range(parts):
            rows = stream_feed.records(records // parts, part * (records // parts))
            (place / "in" / f"{part}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
        began = time.perf_counter()
        spark_driver.run(spark, place, count)
        seconds = time.perf_counter() - began
        figure = {
            "shards": count,
            "records": records // parts * parts,
            "records_per_second": round(records / seconds),
            "seconds_per_micro_batch": round(seconds / (parts / 2), 2),
        }
        print(json.dumps(figure), flush=True)
        figures.append(figure)
    return figures


def run(quick: bool = False, largest: int = 10_000_000, parts: tuple[str, ...] = ()) -> dict[str, Any]:  # noqa: FBT001, FBT002 - the runner's contract
    """All figures, or those of some parts; `quick` keeps to small sizes."""
    import services

    sizes = [100_000] if quick else [size for size in (1_000_000, 10_000_000, 100_000_000) if size <= largest]
    shards = [1] if quick else [1, 2, 4]
    out: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if not parts or "shard" in parts:
            out["shard"] = shard_cost(folder, 20_000 if quick else 200_000)
            out["shard"] |= phases(folder, 20_000 if quick else 100_000)
        if not parts or "kafka" in parts:
            out["kafka"] = kafka(folder, [1, 2, 4], 4_000 if quick else 60_000)
        if "generated" in parts:
            spark = services.spark_session(folder / "spark", memory="2g", brief=False)
            try:
                out["spark_generated"] = generated(spark, sizes)
            finally:
                spark.stop()
        if not parts or "spark" in parts:
            spark = services.spark_session(folder / "spark", memory="2g", brief=False)
            try:
                out["spark_tables"] = tables(spark, folder, sizes, compare=10_000_000)
                out["spark_streams"] = spark_stream(spark, folder, shards, 3_000 if quick else 60_000)
            finally:
                spark.stop()
    return out


if __name__ == "__main__":
    large = 100_000_000 if "--large" in sys.argv else 10_000_000
    wanted = tuple(word for word in sys.argv[1:] if not word.startswith("-"))
    print(json.dumps(run(quick="--quick" in sys.argv, largest=large, parts=wanted)))
