"""Recipients: coverage of the intervals, their width relative to the channel bound, and the error of group shares."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.reading import releases
from bench.reading.bounds import PersonEvents, groups_bound, persons_bound, veil_bound
from bench.reading.queries import LIFT, Query, queries
from bench.reading.releases import Opened
from bench.reading.worlds import World, worlds
from reticent.read.question import Question
from reticent.read.shape.groups import Grouped
from reticent.read.shape.labels import codes
from reticent.read.shape.veil import Veiled
from reticent.read.where import match_all

BOUNDED = 5
"""The bound is computed for one query in so many: it costs more than all answers together."""
METHODS: dict[str, Callable[[World, int, Path], Opened]] = {
    "veil": releases.veil,
    "anatomy": releases.anatomy,
    "delay-free": releases.delay_free,
    "generalized": releases.generalized,
}


def run(quick: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002 - the runner's contract
    """Return coverage, width and error by data set and method; a regression on draws; time for a million records."""
    seeds, number, n = ((1,), 40, 6_000) if quick else ((1, 2, 3), 140, 15_000)
    lines: dict[str, list[dict[str, float]]] = {}
    for seed in seeds:
        for world in worlds(n, seed):
            for name, publish in METHODS.items():
                with tempfile.TemporaryDirectory() as folder:
                    opened = publish(world, seed, Path(folder))
                lines.setdefault(f"{world.name}, {name}", []).extend(_ask(opened, world, number, seed))
    from bench.reading.regression import regression

    return {
        "counts": {key: _summary(rows) for key, rows in lines.items()},
        "regression": regression(quick=quick),
        "million": _million(50_000 if quick else 1_000_000),
    }


def _ask(opened: Opened, world: World, number: int, seed: int) -> list[dict[str, float]]:
    rng = np.random.default_rng(seed)
    asked = queries(opened.true_records, world.fields, world.hidden, number, rng)
    return [_line(opened, world, query, bounded=at % BOUNDED == 0) for at, query in enumerate(asked)]


def _line(opened: Opened, world: World, query: Query, *, bounded: bool) -> dict[str, float]:
    received = opened.received
    answer = received.count(query.values, query.where)
    target = np.isin(np.array(received.values), query.values).astype(float)
    bound = _bound(opened, world, query, target) if bounded else np.nan
    shares = _shares(received, query, target)
    return {
        "holds": float(answer.low <= query.count <= answer.high),
        "width": (answer.high - answer.low) / max(2 * 1.96 * np.sqrt(bound), 1e-9) if bound > 0 else np.nan,
        "error": abs(answer.estimate - query.count) / query.count,
        "smooth": abs(received.count(query.values, query.where, smooth=True).estimate - query.count) / query.count,
        "shares": abs(shares - query.count) / query.count,
        "best": 0.6745 * np.sqrt(bound) / query.count,
        "lifted": float(max(query.lift, 1 / max(query.lift, 1e-9)) >= LIFT),
    }


def _bound(opened: Opened, world: World, query: Query, target: np.ndarray) -> float:
    shape, true_values = opened.received.shape, codes(opened.true_records[world.hidden], opened.received.values)
    if isinstance(shape, Veiled):
        return _veil_bound(shape, query.region, true_values, target)
    if isinstance(shape, Grouped):
        inside, totals = (np.bincount(part, minlength=len(target)) for part in (true_values[query.region], true_values))
        return groups_bound(shape.groups, inside, totals, target)
    return 0.0


def _veil_bound(shape: Veiled, region: np.ndarray, true_values: np.ndarray, target: np.ndarray) -> float:
    """Return the bound of the channel for first events; otherwise of persons, their first sets and the kernel."""
    rows, events, first = shape._strata, shape._events, shape._first_record  # noqa: SLF001
    region = region & (first >= 0)
    if not events[region].any():
        return veil_bound(shape.veil, rows[region], true_values[region], target)
    at = np.flatnonzero(region)
    at = at[np.lexsort((events[at], first[at]))]
    heads, starts = np.unique(first[at], return_index=True)
    parts = [tuple(part.tolist()) for part in np.split(events[at], starts[1:])]
    return persons_bound(shape.veil, shape._kernel_step, PersonEvents(rows[heads], true_values[heads], parts), target)  # noqa: SLF001


def _shares(received: Any, query: Query, target: np.ndarray) -> float:
    """Return the naive estimate: the share of the values among a record's candidates, or in its group."""
    shape = received.shape
    match = received._match(query.where)  # noqa: SLF001
    if isinstance(shape, Veiled):
        return float(target[shape._candidate_sets].mean(axis=1) @ match.share)  # noqa: SLF001
    if isinstance(shape, Grouped):
        groups, mine = shape.groups, shape._numbers[0]  # noqa: SLF001
        of_target = np.bincount(groups.groups, groups.counts * target[groups.values])
        return float((of_target / np.bincount(groups.groups, groups.counts))[mine] @ match.share)
    return np.nan


def _summary(rows: list[dict[str, float]]) -> dict[str, float]:
    table = {key: np.array([row[key] for row in rows]) for key in rows[0]}
    lifted = table["lifted"] > 0
    out = {"queries": len(rows), "holds": table["holds"].mean(), "error": np.median(table["error"])}
    if not np.isnan(table["width"]).all():
        out |= {
            "width_over_bound": np.nanmedian(table["width"]),
            "error_smooth": np.median(table["smooth"]),
            "error_smooth_where_lifted": np.median(table["smooth"][lifted]),
            "error_of_shares": np.median(table["shares"]),
            "best_possible": np.nanmedian(table["best"]),
            "error_where_lifted": np.median(table["error"][lifted]),
            "error_of_shares_where_lifted": np.median(table["shares"][lifted]),
        }
    return {key: round(float(value), 3) for key, value in out.items()}


def _million(n: int) -> dict[str, float]:
    """Return processor seconds to count by ten groups, with a new channel."""
    world = worlds(20_000, 1)[0]
    shape = releases.veil(world, 1, Path()).received.shape
    assert isinstance(shape, Veiled)
    rng = np.random.default_rng(1)
    at = rng.integers(shape.table.num_rows, size=n)
    large = Veiled(shape.table.drop_columns(["person"]).take(at), shape.metadata, shape.candidates)
    target = np.eye(len(large.domain))[0]
    question = Question(target, match_all(n), rng.integers(10, size=n), 10, 0.95)
    start = time.process_time()
    large.counts(question)
    return {"records": n, "seconds": round(time.process_time() - start, 2)}
