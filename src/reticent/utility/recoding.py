"""Recoding: the original and published values of one attribute, per record, in the form that the measures need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from reticent.arrays import Floats, Int32s, Int64s
from reticent.utility.measures import interval_loss, node_loss

if TYPE_CHECKING:
    from reticent.policy.hierarchy import HierarchyLevels


@dataclass(frozen=True, repr=False)
class Recoding:
    """One attribute before and after generalization; arrays have one entry per record (or distinct combination).

    Attributes:
        source: the code of the original value.
        node: the number of the published value; equal numbers mean equal published values.
        share: leaves below the published value / leaves of the hierarchy.
        ncp: the information loss of the cell by equation (3) or (4), 0 to 1.
        size: the number of leaves of the hierarchy.
        level: the level of generalization; None if published values are not nodes of a hierarchy.
        height: the highest level of the hierarchy.
    """

    source: Int32s
    node: Int64s
    share: Floats
    ncp: Floats
    size: int
    level: Int64s | None
    height: int

    @classmethod
    def from_levels(cls, codes: Int32s, hierarchy: HierarchyLevels, levels: int | Int64s) -> Self:
        """Return a full-domain recoding (one level) or a local recoding (one level per record)."""
        level = np.broadcast_to(np.asarray(levels, dtype=np.int64), codes.shape)
        starts = np.cumsum([0, *(len(leaves) for leaves in hierarchy.leaves)], dtype=np.int64)
        shares = np.concatenate(hierarchy.leaves) / hierarchy.size
        losses = np.concatenate([_cell_loss(hierarchy, step) for step in range(len(hierarchy.leaves))])
        nodes = (
            hierarchy.node_ids[levels][codes] if isinstance(levels, int) else np.stack(hierarchy.node_ids)[level, codes]
        )
        node = starts[level] + nodes
        return cls(codes, node, shares[node], losses[node], hierarchy.size, level, hierarchy.height)


def _cell_loss(hierarchy: HierarchyLevels, level: int) -> Floats:
    """Return equation (4) for numeric attributes, by the values that a node covers; equation (3) for the others."""
    table, leaves = hierarchy.node_ids[level], hierarchy.leaves[level]
    if hierarchy.numeric is None:
        return node_loss(leaves, hierarchy.size)
    known = np.isfinite(hierarchy.numeric)
    low, high = np.full(len(leaves), np.inf), np.full(len(leaves), -np.inf)
    np.minimum.at(low, table[known], hierarchy.numeric[known])
    np.maximum.at(high, table[known], hierarchy.numeric[known])
    if not known.any():
        return node_loss(leaves, hierarchy.size)
    empty = low > high  # a node with only missing values has span 0
    loss = interval_loss(np.where(empty, 0, low), np.where(empty, 0, high), float(low.min()), float(high.max()))
    return np.where(level == hierarchy.height, 1.0, loss) if len(table) > 1 else loss
