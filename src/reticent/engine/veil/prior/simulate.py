"""The veil's channel in a few lines of numpy: candidates as the engine would publish them, for measuring a prior."""

from __future__ import annotations

import numpy as np

from reticent.arrays import Int32s, Int64s, Integers, UInt64s
from reticent.engine.veil.prior.prior import ONE


def random_orders(values: int, rng: np.random.Generator, number: int = 64) -> Int64s:
    """Orders x values: random permutations of the codes."""
    return np.array([rng.permutation(values) for _ in range(number)])


def candidates(
    values: Integers, rows: Integers, stretches: UInt64s, orders: Integers, rng: np.random.Generator
) -> Int32s:
    """Records x l codes, unsorted.

    Args:
        values: the truth of each record.
        rows: its row of the prior.
        stretches: rows x values.
        orders: orders x values.
        rng: where the points and the orders come from.
    """
    lengths = stretches.astype(np.int64)
    whole = int(lengths[0].sum())
    out = np.empty((len(values), whole // ONE), dtype=np.int32)
    mine = rng.integers(len(orders), size=len(values))
    for number, order in enumerate(orders):
        at = np.flatnonzero(mine == number)
        ends = np.cumsum(lengths[:, order], axis=1)
        place = np.argsort(order)[values[at]]
        own = lengths[rows[at], values[at]]
        offset = (rng.random(len(at)) * own).astype(np.int64)
        free = rng.integers(ONE, size=len(at))
        start = np.where(own > 0, ends[rows[at], place] - own + offset, free) % ONE
        # All rows' lines one behind the other, so that one search serves them all.
        line = (ends + np.arange(len(ends))[:, None] * whole).ravel()
        points = (start + rows[at].astype(np.int64) * whole)[:, None] + np.arange(out.shape[1]) * ONE
        out[at] = order[np.searchsorted(line, points, side="right") % len(order)]
    return out
