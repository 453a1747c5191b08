"""Evolving tables: six methods on the census, and single changes to a million records."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.datasets import census
from reticent.engine import publisher
from reticent.engine.rng import Rng
from reticent.reproduce.evolving import Census, Scale, Study, policy
from reticent.stateful import EvolvingTable

L = 10


def seconds(work: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def methods(*, quick: bool) -> dict[str, Any]:
    """Delete 10 %, one record after the other, as in a table that changes all day."""
    full = 57_700 if quick else 577_000
    study = Study(Scale(l=L), Census(full, 1))

    def deletion(method: str, n: int, *, each: bool = True) -> float:
        return study.deletion(method, n, each=each) / 1000

    small = (2_885, 5_770) if quick else (5_770, 14_425, 28_850, 57_700)
    figures: dict[str, Any] = {"records": full, "l": L, "deleted": "10%, one by one"}
    for method in ("indexed", "encc", "enc"):
        figures[method] = deletion(method, full)
    figures["growth"] = {
        method: {n: deletion(method, n) for n in sizes}
        for method, sizes in (("enc", small), ("eac", small), ("red", small[:2]))
    }
    growth = figures["growth"]
    figures["ratios"] = {
        "encc / indexed": figures["encc"] / figures["indexed"],
        "enc / encc": figures["enc"] / figures["encc"],
        **{f"{s} / enc at {n}": t / growth["enc"][n] for s in ("red", "eac") for n, t in growth[s].items()},
    }
    figures["one batch"] = {s: deletion(s, full, each=False) for s in ("indexed", "encc", "red")}
    return figures


def veil_and_indexed(*, quick: bool) -> dict[str, Any]:
    """Compare the veil with indexed through the whole engine: the same 10 % deleted and inserted."""
    n = 57_700 if quick else 577_000
    table = census.generate(n + n // 10, seed=1)
    gone = pa.array(np.random.default_rng(2).permutation(n)[: n // 10])
    figures: dict[str, Any] = {"records": n}
    for method in ("indexed", "veil"):
        engine = publisher(policy(method, L), "evolving", method, rng=Rng.fresh())
        load, _ = seconds(lambda engine=engine: engine.insert(table.slice(0, n)))
        publish, _ = seconds(engine.cut)
        ids = table.column("person_id").take(gone)
        delete, _ = seconds(lambda engine=engine, ids=ids: engine.delete(ids))
        insert, _ = seconds(lambda engine=engine: engine.insert(table.slice(n)))
        figures[method] = {"load": load, "publish": publish, "delete 10%": delete, "insert 10%": insert}
    figures["veil / indexed"] = {k: figures["veil"][k] / figures["indexed"][k] for k in ("delete 10%", "insert 10%")}
    return figures


def singles(*, quick: bool) -> dict[str, Any]:
    """Insert and delete one record at a time in a million, in memory and durably."""
    n, times = (50_000, 200) if quick else (1_000_000, 1_000)
    table = census.generate(n + times, seed=3)
    rows = [table.slice(n + i, 1) for i in range(times)]
    ids = [[x] for x in table.column("person_id").slice(0, times).to_pylist()]
    figures: dict[str, Any] = {"records": n, "times": times}
    for method in ("indexed", "veil"):
        engine = publisher(policy(method, L), "evolving", method, rng=Rng.fresh())
        engine.insert(table.slice(0, n))
        engine.cut()
        figures[f"{method} in memory"] = latencies(engine, rows, ids)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "store.db"
        EvolvingTable.create(place, policy("veil", L))
        with EvolvingTable.open(place) as durable:
            figures["load a durable table, s"] = seconds(lambda: durable.insert(table.slice(0, n)))[0]
            durable.publish(Path(folder) / "r", format="parquet")
            figures["veil durable"] = latencies(durable, rows, ids)
        figures["open a durable table, s"], table_open = seconds(lambda: EvolvingTable.open(place).__enter__())
        figures["disk flush alone"] = flushes(Path(folder) / "flush", times)
        figures["bytes per record"] = place.stat().st_size / len(table_open.engine.records)
    return figures


def flushes(path: Path, times: int) -> dict[str, float]:
    """Return the time the disk takes to make 4 kB durable, in the same place at the same time."""
    with path.open("wb") as file:
        took = []
        for _ in range(times):
            file.write(bytes(4096))
            file.flush()
            took.append(seconds(lambda: os.fdatasync(file.fileno()))[0])
    return {f"p{p}, ms": float(np.percentile(took, p) * 1000) for p in (50, 99)}


def latencies(engine: Any, rows: list[pa.Table], ids: list[list[str]]) -> dict[str, float]:
    """Return wall time and processor time; the latter is less affected by other work on the machine."""
    figures = {}
    for name, work, items in (("insert", engine.insert, rows), ("delete", engine.delete, ids)):
        took = np.array([_both(work, item) for item in items]) * 1000
        for p in (50, 99):
            figures[f"{name} p{p}, ms"] = float(np.percentile(took[:, 0], p))
            figures[f"{name} p{p}, processor ms"] = float(np.percentile(took[:, 1], p))
    return figures


def _both(work: Any, item: Any) -> tuple[float, float]:
    wall, processor = time.perf_counter(), time.process_time()
    work(item)
    return time.perf_counter() - wall, time.process_time() - processor


def run(quick: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002 - the runner's contract
    """Return all figures; the seed of the data is fixed, the keys are new."""
    return {
        "methods": methods(quick=quick),
        "veil and indexed": veil_and_indexed(quick=quick),
        "single changes": singles(quick=quick),
    }
