"""An attribute published at levels of its hierarchy: one level for all rows, or one per row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.arrays import Bools, Floats, Int32s, Int64s
from reticent.policy.hierarchy import HierarchyLevels
from reticent.utility.recoding import Recoding


@dataclass(frozen=True, repr=False)
class Levels:
    """The codes of an attribute, its hierarchy, and the level of each row."""

    hierarchy: HierarchyLevels
    codes: Int32s
    level: int | Int64s

    @property
    def uniform(self) -> bool:
        """Return whether all rows share one level."""
        return isinstance(self.level, int)

    def labels(self, rows: Int64s) -> pa.Array:
        """Return the labels to publish, as text if the levels differ between rows."""
        codes = self.codes[rows]
        if isinstance(self.level, int):
            return self.hierarchy.labels[self.level].take(pa.array(self.hierarchy.node_ids[self.level][codes]))
        level = self.level[rows]
        starts = np.cumsum([0, *(len(names) for names in self.hierarchy.labels)])
        nodes = np.zeros(len(codes), dtype=np.int64)
        for step, table in enumerate(self.hierarchy.node_ids):
            at = level == step
            nodes[at] = starts[step] + table[codes[at]]
        return pa.concat_arrays([names.cast(pa.string()) for names in self.hierarchy.labels]).take(pa.array(nodes))

    def exact_rows(self) -> Bools:
        """Return which rows keep their exact value."""
        return np.broadcast_to(np.asarray(self.level) == 0, len(self.codes))

    def match_share(self, asked: Floats) -> Floats:
        """Return per row the share of asked values (by code) among the values that its published cell covers."""
        level = np.broadcast_to(np.asarray(self.level), len(self.codes))
        chance = np.zeros(len(self.codes))
        for step, table in enumerate(self.hierarchy.node_ids):
            at = level == step
            share = np.bincount(table, weights=asked) / np.maximum(1, np.bincount(table))
            chance[at] = share[table[self.codes[at]]]
        return chance

    def mass(self, weights: Floats) -> Floats:
        """Return the weight of each value (by code); a row spreads its weight over the values of its published cell."""
        level = np.broadcast_to(np.asarray(self.level), len(self.codes))
        mass = np.zeros(len(self.hierarchy.node_ids[0]))
        for step, table in enumerate(self.hierarchy.node_ids):
            at = level == step
            size = np.maximum(1, np.bincount(table))
            nodes = np.bincount(table[self.codes[at]], weights=weights[at], minlength=len(size))
            mass += (nodes / size)[table]
        return mass

    def recoding_of(self, rows: Int64s) -> Recoding:
        """Return the recoding of some rows for the utility measures."""
        level = self.level if isinstance(self.level, int) else self.level[rows]
        return Recoding.from_levels(self.codes[rows], self.hierarchy, level)

    def summary(self, published: Bools) -> dict[str, Any]:
        """Return the level, or the number of published records per level."""
        height = self.hierarchy.height
        if isinstance(self.level, int):
            return {"level": self.level, "height": height}
        counts = np.bincount(self.level[published], minlength=height + 1)
        return {"records_per_level": counts.tolist(), "height": height}


def common_levels(hierarchy: HierarchyLevels, codes: Int32s, classes: Int64s) -> Int64s:
    """Return per row the lowest level at which its whole class shares a node."""
    count = int(classes.max()) + 1
    first = np.zeros(count, dtype=np.int64)
    first[classes] = np.arange(len(classes))
    levels = np.zeros(count, dtype=np.int64)
    for level, table in enumerate(hierarchy.node_ids[:-1]):
        nodes = table[codes]
        levels[classes[nodes != nodes[first[classes]]]] = level + 1
    return levels[classes]
