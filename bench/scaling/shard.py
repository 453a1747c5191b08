"""One shard without a broker: records per second, where the time goes, bytes of state."""

from __future__ import annotations

import cProfile
import json
import pstats
import time
from pathlib import Path
from typing import Any

import numpy as np


def shard_cost(folder: Path, records: int) -> dict[str, Any]:
    """One shard without a broker: records per second, where the time goes, bytes of state."""
    import stream_feed

    from reticent.connectors.shards import Shard, sharded
    from reticent.engine.rng import Rng

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

    from reticent.connectors.shards import Shard, sharded
    from reticent.engine.rng import Rng

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

    from reticent.connectors.shards import Shard, sharded
    from reticent.engine.rng import Rng

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
