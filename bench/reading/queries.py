"""Random queries: one to three values, one or two conditions; in half of them, the values are frequent or rare."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from bench.reading.worlds import OTHER

LEAST = 200
"""Least number of records in a region."""
FEWEST = 10
"""Least true count of an answer."""
LIFT = 1.5
"""A condition is associated with the value if it makes the value this many times more frequent, or rarer."""


@dataclass(frozen=True)
class Query:
    """A query, its region in the true records, and the true count."""

    values: list[str]
    where: list[str]
    region: np.ndarray
    count: int
    lift: float


def queries(
    table: pa.Table, fields: tuple[str, ...], hidden: str, number: int, rng: np.random.Generator
) -> list[Query]:
    cells = {name: np.array(table[name].to_pylist()) for name in fields}
    coded = np.unique(np.array(table[hidden].to_pylist()), return_inverse=True)
    out: list[Query] = []
    while len(out) < number:
        query = _query(cells, coded, rng)
        lifted = max(query.lift, 1 / max(query.lift, 1e-9)) >= LIFT
        if query.region.sum() >= LEAST and query.count >= FEWEST and (lifted or len(out) % 2):
            out.append(query)
    return out


def _query(cells: dict[str, np.ndarray], coded: tuple[np.ndarray, np.ndarray], rng: np.random.Generator) -> Query:
    labels, codes = coded
    where, region = [], np.ones(len(codes), dtype=bool)
    for name in rng.choice(list(cells), size=rng.integers(1, 3), replace=False):
        text, flags = _condition(str(name), cells[str(name)], rng)
        where.append(text)
        region &= flags
    drawn = set(rng.choice(codes, size=rng.integers(1, 4)).tolist())
    chosen = np.isin(np.arange(len(labels)), sorted(drawn)) & (labels != OTHER)
    mine = chosen[codes]
    lift = mine[region].mean() / max(mine.mean(), 1e-12) if region.any() and mine.any() else 1.0
    return Query(labels[chosen].tolist(), where, region, int((mine & region).sum()), float(lift))


def _condition(name: str, cells: np.ndarray, rng: np.random.Generator) -> tuple[str, np.ndarray]:
    if cells.dtype.kind not in "iu":
        value = str(rng.choice(cells))
        return f"{name}={value}", cells == value
    low, high = sorted(int(x) for x in rng.choice(cells, size=2))
    if rng.random() < 0.5:
        return f"{name}>={high}", cells >= high
    return f"{name} in {low}..{high}", (cells >= low) & (cells <= high)
