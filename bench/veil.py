"""The veil's core: processor time per record, on codes, one thread, best of five runs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from reticent._core import veil

SHAPES = (
    {"values": 139, "l": 10, "rows": 64},
    {"values": 139, "l": 3, "rows": 64},
    {"values": 1673, "l": 10, "rows": 21},
)
ORDERS = 64


def run(quick: bool = False) -> list[dict[str, Any]]:  # noqa: FBT001, FBT002
    """Return microseconds per record of first and later events, by size of the parameter set."""
    return [shape | _measure(**shape, n=20_000 if quick else 200_000) for shape in SHAPES]


def _measure(values: int, l: int, rows: int, n: int) -> dict[str, float]:
    rng = np.random.default_rng(1)
    core = _veil(rng, values, l, rows)
    persons = rng.integers(0, 2**63, n).astype(np.uint64)
    row, first, later = (rng.integers(0, top, n) for top in (rows, values, values))
    events = persons, row.astype(np.uint32), first.astype(np.int32)
    memories, later = core.begin(*events).memories, later.astype(np.int32)
    return {
        "candidates_us": _best(lambda: core.candidates(*events), n),
        "begin_us": _best(lambda: core.begin(*events), n),
        "visit_us": _best(lambda: core.step(persons, memories, later, kind="visit"), n),
        "correction_us": _best(lambda: core.step(persons, memories, later, kind="correction"), n),
    }


def _veil(rng: np.random.Generator, values: int, l: int, rows: int) -> veil.Veil:
    counts = rng.integers(1, 1000, (rows, values)).astype(np.uint64)
    stay = np.full(values, veil.SLOT_LENGTH * 6 // 10, np.uint64)
    parents = (np.arange(values) // 8).astype(np.uint32)
    return veil.Veil(
        key=bytes(32),
        l=l,
        segments=veil.segments_of_counts(counts, l=l),
        permutations=veil.random_permutations(values, count=ORDERS, seed=bytes(32)),
        kernel=veil.Kernel.from_stays(stay, within=veil.SLOT_LENGTH // 2, parents=parents),
    )


def _best(work: Callable[[], object], n: int) -> float:
    times = []
    for _ in range(5):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return round(min(times) / n * 1e6, 3)


if __name__ == "__main__":
    print(json.dumps(run(), indent=1))
