"""Range count queries on a release, and how far their answers are off.

A query asks how many records lie in a range of every quasi-identifier and of the sensitive values. A group answers with its records (counterfeits excluded) times
the chance that a record spread evenly over the group's ranges and values lies inside.

Cost: O(queries * groups), native, thousands at once.
Reference: F. Li, S. Zhou, "Challenging more updates", 2008, section VI-C.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reticent import _core
from reticent.engine.series.grouping import Grouping

Grid = npt.NDArray[np.int32]


@dataclass(frozen=True, repr=False)
class Queries:
    """Closed ranges, one row per query, one column per attribute, the sensitive one last."""

    low: Grid
    high: Grid

    @classmethod
    def draw(cls, sizes: list[int], theta: float, n: int, rng: np.random.Generator) -> Queries:
        """Random queries that cover the share `theta` of every domain; `sizes` are the domains' sizes."""
        width = np.maximum(1, np.round(theta * np.array(sizes))).astype(np.int64)
        low = np.stack([rng.integers(0, size - w + 1, n) for size, w in zip(sizes, width, strict=True)], axis=1)
        return cls(np.ascontiguousarray(low, dtype=np.int32), np.ascontiguousarray(low + width - 1, dtype=np.int32))

    def count(self, records: Grid) -> npt.NDArray[np.int64]:
        """The true answers; `records` has one column per attribute, the sensitive one last."""
        return _core.series.count(self.low, self.high, np.ascontiguousarray(records, dtype=np.int32))

    def estimate(self, grouping: Grouping, positions: Grid) -> npt.NDArray[np.float64]:
        """The answers a reader of the release gets; `positions` are the quasi-identifiers of the table's rows."""
        shown, starts = positions[grouping.donor], grouping.offsets[:-1]
        records = np.diff(grouping.offsets) - grouping.counterfeits
        return _core.series.estimate(
            self.low,
            self.high,
            low=np.ascontiguousarray(np.minimum.reduceat(shown, starts, axis=0), dtype=np.int32),
            high=np.ascontiguousarray(np.maximum.reduceat(shown, starts, axis=0), dtype=np.int32),
            records=records.astype(np.int32),
            groups=(grouping.offsets, grouping.value),
        )


def errors(estimate: npt.NDArray[np.float64], truth: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The paper's error |R* - R| / R*, R* being the estimate; 0 where both are 0, infinite where only the estimate is."""
    off = np.abs(estimate - truth)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = off / estimate
    return np.where(off == 0, 0.0, found)
