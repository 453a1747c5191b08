"""Synthetic data: time and memory to generate and write it."""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reticent.datasets import files


def run(quick: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002
    """Return seconds for a million rows of each kind to CSV, and for five million hospital rows."""
    rows = 20_000 if quick else 1_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        jobs: dict[str, Callable[[], object]] = {
            "hospital": lambda: files.write_hospital(folder / "hospital.csv", rows, 1),
            "census_evolving": lambda: files.write_census(folder / "evolving.csv", rows, 1),
            "census_m_distinct": lambda: files.write_census(folder / "m.csv", rows, 1, layout="m-distinct"),
            "feed": lambda: files.write_feed(folder / "feed.csv", rows, 1),
            "series_five_releases": lambda: files.write_series(folder / "series", rows // 5, 1),
            "hospital_five_times": lambda: files.write_hospital(folder / "large.csv", 5 * rows, 1),
        }
        seconds = {kind: _seconds(job) for kind, job in jobs.items()}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {"rows": rows, "seconds": seconds, "peak_memory_mb": peak}


def _seconds(job: Callable[[], object]) -> float:
    start = time.perf_counter()
    job()
    return round(time.perf_counter() - start, 3)
