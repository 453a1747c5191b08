"""Calibrate the machine: figures are compared as ratios to these, measured in the same run."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from typing import Any

import numpy as np


def best(work: Callable[[], Any], times: int = 10) -> float:
    """Return the shortest of several runs, in seconds."""
    shortest = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        work()
        shortest = min(shortest, time.perf_counter() - start)
    return shortest


def yardstick() -> float:
    """Time `np.unique` with counts over 30,162 random 64-bit keys with about as many repeats as Adult."""
    keys = np.random.default_rng(1).integers(0, 20_000, 30_162).astype(np.int64) * 2_654_435_761
    return best(lambda: np.unique(keys, return_counts=True), 30)


def calibration() -> dict[str, Any]:
    """Return what is needed to compare machines."""
    big = np.random.default_rng(2).integers(0, 1 << 60, 2_000_000)
    return {
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "yardstick_seconds": yardstick(),
        "sort_2m_seconds": best(lambda: np.sort(big), 5),
        "copy_16mb_seconds": best(big.copy, 20),
    }
