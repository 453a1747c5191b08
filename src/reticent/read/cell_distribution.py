"""Estimates how values are distributed inside the coarse cells of a column, from all of its cells; for point estimates.

Guarantee (to the recipient): none; the bounds do not use this distribution.

An interval from Mondrian is the tightest of its class: at least one record has its lower end and one its upper end. The
other values lie between these ends and follow the distribution of the whole column, which is found by maximum likelihood
in a few steps from an even distribution. For columns with a long tail, such as costs, an even distribution would put
several times too many records into the tail.

Not covered: dependence between columns inside a class, and fixed intervals such as [40, 60), whose ends may not occur.

Cost: linear in the number of distinct cells for each step.

Reference: B. W. Turnbull, The empirical distribution function with arbitrarily grouped, censored and truncated data, JRSS B 38, 1976.

Differences from the paper: the ends of an interval are observed, not censored; otherwise values would concentrate where
    intervals overlap. A few steps instead of the limit, which is a comb of single values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reticent.arrays import Floats, Int64s
from reticent.read.cells import Extent

_STEPS = 8
"""Steps from the even distribution: enough for most of the gain, before single values dominate."""


@dataclass(frozen=True, repr=False)
class CellDistribution:
    """The distribution of a column's values on the number line.

    Attributes:
        places: starts of the pieces of the line, ascending; a value covers the segment from itself to `step` above.
        below: share of the records below each place.
        step: length of the segment of one value.
        ends: for each cell, the share of its records that is known to be at either end.
    """

    places: Floats
    below: Floats
    step: float
    ends: dict[Extent, float]

    def share(self, cell: Extent, asked: Extent) -> float | None:
        """Return the share of a cell's records in a segment; None if the distribution does not cover the cell."""
        end = self.ends.get(cell)
        if end is None:
            return None
        bottom, top = cell.low, cell.high + self.step
        low = asked.low + self.step * asked.open_low
        high = asked.high + self.step * asked.closed
        ranks = np.interp(np.clip([bottom, low, high, top], bottom, top), self.places, self.below)
        whole, inside = ranks[3] - ranks[0], max(ranks[2] - ranks[1], 0.0)
        hits = sum(low <= value < high for value in (cell.low, cell.high))
        return float(end * hits + (1 - 2 * end) * (inside / whole if whole > 0 else 0.5))


def fit_distribution(
    cells: Sequence[Extent], counts: Int64s, classes: Int64s, *, tight: Sequence[bool], whole: bool
) -> CellDistribution:
    """Fit the distribution of values to the distinct cells with their records and classes; ignore cells that are not tight.

    Args:
        cells: the distinct cells, including single values.
        counts: number of records of each cell.
        classes: number of classes with each cell.
        tight: whether at least one record of each class has the lower end, and one the upper end.
        whole: whether the values are whole numbers.
    """
    known = [at for at, cell in enumerate(cells) if tight[at] or cell.low == cell.high]
    low, high = (np.array([getattr(cells[at], end) for at in known]) for end in ("low", "high"))
    records, ends = counts[known].astype(np.float64), np.minimum(classes[known], counts[known] / 2)
    step = 1.0 if whole else _step(np.concatenate([low, high]))
    places = np.unique(np.concatenate([low, low + step, high, high + step]))
    first, last, top = (np.searchsorted(places, value) for value in (low, high, high + step))
    observed = np.bincount(np.append(first, last), np.append(ends, ends), len(places)).astype(np.float64)
    below = _cumulative_shares(np.diff(places), observed[:-1], (first, top, records - 2 * ends))
    shares = zip(known, (ends / np.maximum(records, 1)).tolist(), strict=True)
    return CellDistribution(places, below, step, {cells[at]: share for at, share in shares})


def _step(ends: Floats) -> float:
    """Return the segment length of one value in a column of fractions: far less than the gap between two values."""
    gaps = np.diff(np.unique(ends))
    return float(max(1e-3 * gaps.min(initial=1.0), 4 * np.spacing(np.abs(ends).max(initial=1.0))))


def _cumulative_shares(even: Floats, observed: Floats, inside: tuple[Int64s, Int64s, Floats]) -> Floats:
    """Return the share of records below each place after a few steps; `inside` are records between two places."""
    first, top, records = inside
    mass = even / max(even.sum(), 1e-300)
    for _ in range(_STEPS):
        below = np.append(0.0, np.cumsum(mass))
        part = records / np.maximum(below[top] - below[first], 1e-300)
        size = len(mass) + 1
        mass = observed + mass * np.cumsum(np.bincount(first, part, size) - np.bincount(top, part, size))[:-1]
        mass = np.maximum(mass, 0.0) / max(mass.sum(), 1e-300)
    return np.append(0.0, np.cumsum(mass))
