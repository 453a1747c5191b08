"""Durable commits per second, and what one costs: a step stores a released batch, a change of state and the position."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from reticent.store import Store

RECORD = 200  # bytes


def run(quick: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002
    """Steps and records per second on SQLite for batches of 1, 100 and 10,000 records, and a snapshot of 50 MB."""
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "store.db") as store:
        store.register("bench", policy_hash="bench")
        with store.lock("bench"):
            figures = {f"batch_{size}": _steps(store, size, 20 if quick else 400) for size in (1, 100, 10_000)}
            figures["snapshot_50mb_seconds"] = _snapshot(store, (1 if quick else 50) << 20)
    return figures


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
