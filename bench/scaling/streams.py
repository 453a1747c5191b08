"""Structured Streaming from files to files: fixed cost of a micro-batch, rate beyond it, and profile."""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

_FILES = 2
"""Files of a micro-batch, as `spark_driver` reads them."""


def spark_streams(spark: Any, folder: Path, shards: list[int], sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """Return figures per number of shards; `sizes` are the sizes of micro-batches; the first one warms up."""
    figures = []
    for count in shards:
        place = folder / f"stream-{count}"
        small = tuple(size for size in sizes if size < max(sizes))
        small_batches, _ = _released(spark, place, count, small, 0)
        large, spent = _released(spark, place, count, sizes[len(small) :], sum(small))
        more = {
            "processor_microseconds_per_record_of_large_batches": spent,
            "milliseconds_of_our_code_alone": ours(place, count, max(sizes)),
        }
        figures.append(figure(count, small_batches[1:] + large) | more)
        print(json.dumps(figures[-1]), flush=True)
    return figures


def _released(
    spark: Any, place: Path, shards: int, sizes: tuple[int, ...], first: int
) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Return Spark's report on its micro-batches, and the processor time per record by process."""
    import spark_driver

    write_feed(place, sizes, first)
    before = processor_seconds()
    # JSON as in a topic, so that Spark need not parse and write it again.
    batches = [batch for batch in spark_driver.run(spark, place, shards, text=True) if batch["numInputRows"]]
    after = processor_seconds()
    return batches, {who: round(1e6 * (busy - before.get(who, 0.0)) / sum(sizes), 2) for who, busy in after.items()}


def processor_seconds() -> dict[str, float]:
    """Return processor seconds of this process, its Java child and the Python workers, ended ones included."""
    parents, busy, names = {}, {}, {}
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            name, _, rest = (place / "stat").read_text().rpartition(")")
            fields, number = rest.split(), int(place.name)
            parents[number], names[number] = int(fields[1]), "java" if name.endswith("(java") else "python workers"
            busy[number] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    out: dict[str, float] = {}
    for number, seconds in busy.items():
        above = number
        while above in parents and above != os.getpid():
            above = parents[above]
        if above == os.getpid():
            who = "driver" if number == above else names[number]
            out[who] = out.get(who, 0.0) + seconds
    return out


def write_feed(folder: Path, sizes: tuple[int, ...], first: int = 0) -> None:
    """Write files in the order of their times, in which Spark reads them."""
    import stream_feed

    (folder / "in").mkdir(parents=True, exist_ok=True)
    for batch, size in enumerate(sizes):
        for part in range(_FILES):
            rows = stream_feed.records(size // _FILES, first)
            first += len(rows)
            path = folder / "in" / f"{first}-{batch}-{part}.json"
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
            os.utime(path, (1_700_000_000 + first,) * 2)


def figure(shards: int, batches: list[dict[str, Any]]) -> dict[str, Any]:
    """Fit seconds per micro-batch as a line over its records; add mean milliseconds of the largest batches' parts."""
    records = np.array([batch["numInputRows"] for batch in batches], dtype=float)
    seconds = np.array([batch["durationMs"]["triggerExecution"] for batch in batches]) / 1000
    slope, fixed = np.polyfit(records, seconds, 1) if len(set(records)) > 1 else (0.0, float(seconds.mean()))
    large = [batch for batch in batches if batch["numInputRows"] == records.max()]
    rate = sum(batch["numInputRows"] for batch in large) / (
        sum(batch["durationMs"]["triggerExecution"] for batch in large) / 1000
    )
    return {
        "shards": shards,
        "records_of_large_batches": int(records.max()),
        "records_per_second": round(rate),
        "records_per_second_per_shard": round(rate / shards),
        "seconds_per_micro_batch_fixed": round(float(fixed), 2),
        "records_per_second_beyond_that": round(1 / slope) if slope > 0 else None,
        "milliseconds_of_large_batches": parts(large),
    }


def ours(folder: Path, shards: int, records: int) -> dict[str, int]:
    """Return processor milliseconds of our code in a large batch, summed over shards, outside Spark."""
    import pyarrow as pa
    import stream_feed

    from reticent.connectors.spark.streams import make_packer, process_shard, unpack_policy
    from reticent.engine.rng import Rng
    from reticent.policy.bundle import Bundle

    policy, values = stream_feed.policy(folder), [json.dumps(row) for row in stream_feed.records(records)]
    bundle, rng = Bundle.pack(policy).to_bytes(), Rng.from_seed(1)
    unpack_policy(bundle)
    batches = [pa.record_batch({"record": values[at : at + 10_000]}) for at in range(0, records, 10_000)]
    began = time.process_time()
    packed: dict[int, list[str | None]] = {number: [] for number in range(shards)}
    for batch in make_packer(bundle, shards, b"k" * 32)(iter(batches)):
        for number, chunk in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
            packed[number] += chunk
    chosen = time.process_time()
    for number, mine in packed.items():
        process_shard(bundle, rng, number, None, mine, 0)
    return {
        "choose_shards": round(1000 * (chosen - began)),
        "release": round(1000 * (time.process_time() - chosen)),
    }


def parts(batches: list[dict[str, Any]]) -> dict[str, int]:
    """Return mean milliseconds: wall time of the batch and its steps, and operator and state summed over tasks."""

    def mean(values: list[float]) -> int:
        return round(sum(values) / max(1, len(values)))

    steps = {
        "batch": "triggerExecution",
        "planning": "queryPlanning",
        "running_and_writing": "addBatch",
        "write_ahead_log": "walCommit",
        "commit": "commitOffsets",
    }
    out = {name: mean([batch["durationMs"].get(key, 0) for batch in batches]) for name, key in steps.items()}
    states = [batch["stateOperators"][0] for batch in batches if batch["stateOperators"]]
    out["operator_over_tasks"] = mean([state["allUpdatesTimeMs"] for state in states])
    out["state_commit_over_tasks"] = mean([state["commitTimeMs"] for state in states])
    return out
