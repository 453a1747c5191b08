"""Series: cost of one release by size and m, and what the publisher adds to the core.

Figures are seconds for the second release of a synthetic census (the first gives everybody a past): 10 % left, 25 %
new, 25 % internal updates, update diameter 10. `core` is the three phases alone; `release` is the whole publisher on an
Arrow table: hashing persons, encoding, phases, risk of every person, gate, covers of the quasi-identifiers.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.engine import publisher
from reticent.engine.rng import Rng
from reticent.policy import Policy
from reticent.reproduce.census_series import SIZES, Series, Setting, census, diameter, snapshots

POLICY = {
    "version": 1,
    "person": "person",
    "columns": {
        "person": "identifier",
        "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20, 40]}},
        "gender": "quasi",
        "marital_status": "quasi",
        "education": "quasi",
        "occupation": {"role": "sensitive", "updates": {"diameter": 10}},
    },
    "series": {"method": "m-distinct", "m": 4, "max_risk": 0.5},
}


def setting(n: int, d: int = 10) -> Setting:
    """Return the setting for a second release of about n records."""
    first = n * 20 // 23
    return Setting(first=first, deleted=first // 10, inserted=first // 4, updated=first // 4, releases=2, diameter=d)


def core(pool: Any, n: int, m: int, d: int = 10) -> dict[str, float]:
    series = Series("m-distinct", m, diameter(d))
    first, second = snapshots(setting(n, d), pool)
    series.publish(first)
    start = time.perf_counter()
    grouping = series.publish(second)
    seconds = time.perf_counter() - start
    return {
        "records": len(second.values),
        "seconds": seconds,
        "microseconds_per_record": 1e6 * seconds / len(second.values),
        "counterfeits_per_group": float(grouping.counterfeits.mean()),
    }


def release(pool: Any, n: int) -> dict[str, float]:
    engine = publisher(Policy.from_dict(POLICY), "series", "m-distinct", rng=Rng.from_seed(1))
    seconds = 0.0
    for table in snapshots(setting(n), pool):
        columns = {"person": pa.array(table.persons).cast(pa.string())}
        columns |= {name: pa.array(table.quasi[:, i]) for i, name in enumerate(list(SIZES)[:4])}
        columns["occupation"] = pa.array(table.values).cast(pa.string())
        engine.push(pa.table(columns))
        start = time.perf_counter()
        (released,) = engine.cut()
        seconds = time.perf_counter() - start
    return {
        "records": released.records.input,
        "seconds": seconds,
        **{k: float(v) for k, v in released.metrics.items()},
    }


def queries(pool: Any, n: int, count: int) -> dict[str, float]:
    from reticent.reproduce.m_distinct import Queries, relative_errors  # `bench.compare_cases` has versions without it

    series = Series("m-distinct", 4, diameter(10))
    for table in snapshots(setting(n), pool):
        grouping = series.publish(table)
    asked = Queries.draw(list(SIZES.values()), 0.5, count, np.random.default_rng(1))
    start = time.perf_counter()
    estimate = asked.estimate(grouping, table.quasi)
    seconds = time.perf_counter() - start
    error = float(np.median(relative_errors(estimate, asked.count(table.records))))
    return {"queries": count, "groups": len(grouping), "seconds": seconds, "median_error": error}


def run(*, quick: bool = False) -> dict[str, Any]:
    """Return all figures; `quick` only shows that everything runs."""
    sizes = (2_000, 5_000) if quick else (20_000, 65_000, 200_000, 500_000)
    middle = sizes[1]
    pool = census(sizes[-1] * 3 // 2, 1)
    return {
        "release_m4_d10": release(pool, middle),
        "core_by_size_m4_d10": [core(pool, n, 4) for n in sizes],
        "core_by_m_d10": {m: core(pool, middle, m) for m in (2, 4, 6, 8)},
        "core_m8_d5": core(pool, middle, 8, 5),
        "queries": queries(pool, middle, 200 if quick else 10_000),
    }
