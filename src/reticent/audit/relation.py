"""A sparse relation between two numbered sets, such as values and the labels they may hide behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, repr=False)
class Relation:
    """Pairs that hold, as sorted numbers: row times width plus column."""

    keys: NDArray[np.int64]
    height: int
    width: int

    @classmethod
    def of(cls, pairs: NDArray[np.int64], height: int, width: int) -> Relation:
        """The relation of some pairs, one in each row."""
        return cls(np.unique(pairs[:, 0] * max(1, width) + pairs[:, 1]), height, width)

    def holds(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of some pairs hold."""
        if not len(self.keys):
            return np.zeros(len(rows), dtype=np.bool_)
        keys = rows * max(1, self.width) + columns
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.asarray(self.keys[at] == keys)

    def block(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Some rows, dense."""
        dense = np.zeros((len(rows), self.width), dtype=np.bool_)
        starts = np.searchsorted(self.keys, rows * max(1, self.width))
        ends = np.searchsorted(self.keys, (rows + 1) * max(1, self.width))
        for at, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
            dense[at, self.keys[start:end] % max(1, self.width)] = True
        return dense
