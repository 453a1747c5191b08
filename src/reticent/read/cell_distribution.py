"""How the values of a column lie inside its coarse cells, by all cells of the column together; for the point estimate only.

Guarantee (to the recipient): none; the bounds do not look at it.

An interval that Mondrian publishes is the tightest of its class: one record at least has its lower end, one its upper end. These are values
as they are, and the others lie between them as the values of the whole column do: the distribution under which all that is
most likely is found step by step, from an even one. Where costs or stays have a long tail, an even spread puts several times
too many records into it; this one does not.

Not covered: columns that go together inside a class, and intervals that were fixed beforehand ([40, 60)), whose ends nobody needs to have.

Cost: for each step linear in the different cells.

Reference: B. W. Turnbull, The empirical distribution function with arbitrarily grouped, censored and truncated data, JRSS B 38, 1976.

Differences from the paper: the ends of an interval are observed, not censored: without them values gather where intervals overlap. A few
    steps instead of the limit, which is a comb of single values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reticent.arrays import Floats, Int64s
from reticent.read.cells import Extent

_STEPS = 8
"""From the even spread: most is won by then, and the comb has not begun."""


@dataclass(frozen=True, repr=False)
class CellDistribution:
    """The values of a column on a line.

    Attributes:
        places: where pieces of the line begin, ascending; a value takes the stretch from itself to `step` above.
        below: share of the records below each place.
        ends: of the records of each cell, the share that is known to stand at either end.
    """

    places: Floats
    below: Floats
    step: float
    ends: dict[Extent, float]

    def share(self, cell: Extent, asked: Extent) -> float | None:
        """Share of a cell's records that lie in an asked stretch; None where this says nothing of the cell."""
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
    """How the values lie, by the different cells with their records and classes; those that are not `tight` say nothing.

    Args:
        cells: the different cells, single values among them.
        counts: records of each.
        classes: classes that each is published for.
        tight: whether some record of each class has the lower end, and one the upper.
        whole: whether the values are whole numbers.
    """
    known = [at for at, cell in enumerate(cells) if tight[at] or cell.low == cell.high]
    low, high = (np.array([getattr(cells[at], end) for at in known]) for end in ("low", "high"))
    records, ends = counts[known].astype(np.float64), np.minimum(classes[known], counts[known] / 2)
    step = 1.0 if whole else _step(np.concatenate([low, high]))
    places = np.unique(np.concatenate([low, low + step, high, high + step]))
    first, last, top = (np.searchsorted(places, value) for value in (low, high, high + step))
    seen = np.bincount(np.append(first, last), np.append(ends, ends), len(places)).astype(np.float64)
    below = _cumulative_shares(np.diff(places), seen[:-1], (first, top, records - 2 * ends))
    shares = zip(known, (ends / np.maximum(records, 1)).tolist(), strict=True)
    return CellDistribution(places, below, step, {cells[at]: share for at, share in shares})


def _step(ends: Floats) -> float:
    """A stretch that holds one value of a column of fractions: far less than what lies between two of them."""
    gaps = np.diff(np.unique(ends))
    return float(max(1e-3 * gaps.min(initial=1.0), 4 * np.spacing(np.abs(ends).max(initial=1.0))))


def _cumulative_shares(even: Floats, seen: Floats, inside: tuple[Int64s, Int64s, Floats]) -> Floats:
    """Share of the records below each place, a few steps from the even spread: records that are seen, and those between two places."""
    first, top, records = inside
    mass = even / max(even.sum(), 1e-300)
    for _ in range(_STEPS):
        below = np.append(0.0, np.cumsum(mass))
        part = records / np.maximum(below[top] - below[first], 1e-300)
        size = len(mass) + 1
        mass = seen + mass * np.cumsum(np.bincount(first, part, size) - np.bincount(top, part, size))[:-1]
        mass = np.maximum(mass, 0.0) / max(mass.sum(), 1e-300)
    return np.append(0.0, np.cumsum(mass))
