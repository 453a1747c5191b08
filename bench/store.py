"""Store: durable commits per second, and the cost of one: a released batch, a change of state and the position.

And the cost of the store's integrity checks for a stream: the same feed with and without digests, rollback marker and
ledger, and encrypted, in turn, in one run.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow.csv as pacsv

from bench.streams import _policy, _write_prior
from reticent.connectors.stream import Stream
from reticent.datasets import feed
from reticent.publication.population import Population
from reticent.store import Store
from reticent.store.integrity import Seal
from reticent.store.keys import FILE, new_key
from reticent.store.rollback_marker import RollbackMarker

RECORD = 200  # bytes


def run(quick: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002
    """Return steps and records per second on SQLite for batches of 1, 100 and 10,000, and a snapshot of 50 MB."""
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "store.db") as store:
        store.register("bench", policy_hash="bench")
        with store.lock("bench"):
            figures = {f"batch_{size}": _steps(store, size, 20 if quick else 400) for size in (1, 100, 10_000)}
            figures["snapshot_50mb_seconds"] = _snapshot(store, (1 if quick else 50) << 20)
    return figures | {"proof": _proof(20_000 if quick else 300_000, 1 if quick else 4)}


def _proof(records: int, rounds: int) -> dict[str, float]:
    """Return processor time per record from CSV to NDJSON with a durable store, and the share of the checks."""
    best = dict.fromkeys(("bare", "proved", "encrypted"), float("inf"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_prior(folder)
        pacsv.write_csv(feed.generate(records, seed=1), folder / "feed.csv")
        new_key(folder / "key")
        for number in range(rounds):
            for way in best:
                with _as(way, folder):
                    best[way] = min(best[way], _stream(folder, f"{way}_{number}") / records * 1e6)
    ratios = {f"{way}_over_bare": best[way] / best["bare"] for way in ("proved", "encrypted")}
    return {f"{way}_cpu_us_per_record": cost for way, cost in best.items()} | ratios


def _as(way: str, folder: Path) -> ExitStack:
    """Prepare a store without digests, rollback marker and ledger; as it is; or encrypted."""
    stack = ExitStack()
    if way == "encrypted":
        stack.enter_context(mock.patch.dict("os.environ", {FILE: str(folder / "key")}))
    if way == "bare":
        nobody = np.zeros(0, dtype=np.uint64)
        stack.enter_context(mock.patch.object(Seal, "digest", return_value=b""))
        stack.enter_context(mock.patch.object(Store, "population_key", bytes(32)))
        stack.enter_context(mock.patch.object(RollbackMarker, "note"))
        stack.enter_context(mock.patch.object(Population, "of", return_value=nobody))
        stack.enter_context(mock.patch.object(Population, "record"))
    return stack


def _stream(folder: Path, name: str) -> float:
    start = time.process_time()
    with Stream(_policy(folder), store=folder / f"{name}.db") as running:
        running.run(str(folder / "feed.csv"), str(folder / f"{name}.ndjson"))
    return time.process_time() - start


def _steps(store: Store, size: int, steps: int) -> dict[str, float]:
    payload = np.random.default_rng(size).bytes(size * RECORD)
    with store.transaction() as tx:
        tx.put_snapshot("bench", b"")
    times = []
    for step in range(steps if size < 1000 else max(steps // 4, 5)):
        start = time.perf_counter()
        with store.transaction() as tx:
            tx.put_outbox("bench", "stream", payload, position=str(step))
            tx.append_delta("bench", payload[: size * 20])
        times.append(time.perf_counter() - start)
    rate = 1 / np.mean(times)
    return {
        "steps_per_second": float(rate),
        "records_per_second": float(rate * size),
        "median_ms": float(np.median(times) * 1000),
        "p99_ms": float(np.quantile(times, 0.99) * 1000),
    }


def _snapshot(store: Store, size: int) -> float:
    payload = np.random.default_rng(0).bytes(size)
    start = time.perf_counter()
    with store.transaction() as tx:
        tx.put_snapshot("bench", payload)
    return time.perf_counter() - start
