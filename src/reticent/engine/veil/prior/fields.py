"""The fields and values that a prior is counted by: published fields at their published and coarser levels, and the domain.

The domain is the finest antichain of the value hierarchy that the past supports. A parent replaces its rare codes. Where some
children of a node are frequent, the others are merged into "node, other"; if that is rare too, it is merged further up, at last
into "other". Without a hierarchy every rare value becomes "other", even a single one: its name alone would disclose that
somebody had it. "other" always exists, so that every value, also a new one, has a place.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from reticent.arrays import Bools, Int32s, Int64s, Integers
from reticent.engine.veil.domain import MISSING, OTHER, Domain
from reticent.errors import PolicyError
from reticent.policy import Policy
from reticent.policy.cells import encode_cells
from reticent.policy.hierarchy import ROOT, HierarchyLevels, build_levels


@dataclass(frozen=True, repr=False)
class Field:
    """One published column.

    Attributes:
        name: the name of the column.
        codes: per record, its published node.
        levels: per level from the published one up to the last below `*`: published node -> node of that level.
        labels: per such level: node -> label.
    """

    name: str
    codes: Int32s
    levels: tuple[Int32s, ...]
    labels: tuple[tuple[str, ...], ...]

    @property
    def size(self) -> int:
        """Number of published nodes."""
        return len(self.levels[0]) if self.levels else 1

    def matches(self, label: str) -> Bools:
        """Return for each published node whether it is the node with this label or lies below it, on any level."""
        if label == ROOT:
            return np.ones(self.size, dtype=bool)
        out = np.zeros(self.size, dtype=bool)
        for nodes, labels in zip(self.levels, self.labels, strict=True):
            out |= np.isin(nodes, [node for node, name in enumerate(labels) if name == label])
        return out

    def coarser(self) -> Field:
        """Return the field published one level higher; it has no levels where that is `*`."""
        if len(self.levels) < 2:
            return Field(self.name, np.zeros_like(self.codes), (), ())
        _, first = np.unique(self.levels[1], return_index=True)
        levels = tuple(nodes[first] for nodes in self.levels[1:])
        return Field(self.name, self.levels[1][self.codes], levels, self.labels[1:])

    def take(self, at: Integers) -> Field:
        """Return the field of the records at the given positions."""
        return Field(self.name, self.codes[at], self.levels, self.labels)


def published_fields(table: pa.Table, policy: Policy, columns: Sequence[str]) -> dict[str, Field]:
    """Return the fields of a table at the levels at which the policy publishes them."""
    return {name: _field(table.column(name), policy, name) for name in columns}


def label_texts(labels: pa.Array) -> tuple[str, ...]:
    """Return labels as text, as a release writes them."""
    return tuple(MISSING if label is None else label for label in labels.cast(pa.string()).to_pylist())


def _field(column: pa.ChunkedArray, policy: Policy, name: str) -> Field:
    codes, values = encode_cells(column)
    hierarchy = build_levels(policy.columns[name].hierarchy, values, column=name, base=policy.base)
    lowest = min(policy.columns[name].level, hierarchy.height)
    at = hierarchy.node_ids[lowest]
    _, first = np.unique(at, return_index=True)
    levels = tuple(hierarchy.node_ids[level][first] for level in range(lowest, hierarchy.height))
    labels = tuple(label_texts(hierarchy.labels[level]) for level in range(lowest, hierarchy.height))
    return Field(name, at[codes], levels, labels)


def condition_columns(policy: Policy, by: Sequence[str] | None) -> Sequence[str] | None:
    """Return the columns to condition on; None: free choice, (): none, because members of a household share a draw.

    Raises:
        PolicyError: the policy names a household, and columns were asked for.
    """
    if policy.household is None:
        return by
    if by:
        raise PolicyError(
            "prior: a household and a prior by fields cannot be combined: members may be in different strata.",
            hint="Remove --by and prior.by, or remove prior.household.",
        )
    return ()


Node = tuple[int, str]
"""A node of the hierarchy: its level and its label."""


def choose_domain(
    values: pa.Array, counts: Int64s, policy: Policy, column: str, *, least: float, noise: float = 0.0
) -> Domain:
    """Return the finest antichain whose values have at least `least` records each, given the counts of the distinct values.

    A count below `noise` is noise; the noise of merged values adds up.
    """
    hierarchy = build_levels(policy.columns[column].hierarchy, values, column=column, base=policy.base)
    paths = _paths(hierarchy)
    labels: list[str] = [OTHER]
    split: set[Node] = set()  # nodes with a label of the domain below them
    unplaced = list(range(len(paths)))
    for level in range(hierarchy.height):
        frequent = _frequent_nodes(level, unplaced, paths, counts, (least, noise))
        labels += [f"{node[1]}, {OTHER}" if node in split else node[1] for node in frequent]
        split |= {above for path in paths if path[level] in frequent for above in path[level + 1 :]}
        unplaced = [code for code in unplaced if paths[code][level] not in frequent]
    return Domain(labels, policy, column)


def _frequent_nodes(
    level: int, unplaced: list[int], paths: list[list[Node]], counts: Int64s, thresholds: tuple[float, float]
) -> set[Node]:
    """Return the nodes of one level with enough records of values that have no place below them."""
    counts_by_node: Counter[Node] = Counter()
    parts: Counter[Node] = Counter()
    for code in unplaced:
        counts_by_node[paths[code][level]] += int(counts[code])
        parts[paths[code][level]] += 1
    least, noise = thresholds
    return {node for node, count in counts_by_node.items() if count >= max(least, noise * math.sqrt(parts[node]))}


def _paths(hierarchy: HierarchyLevels) -> list[list[Node]]:
    """Return for each value its nodes, from the value itself up to `*`."""
    labels = [label_texts(level) for level in hierarchy.labels]
    return [
        [(level, labels[level][table[code]]) for level, table in enumerate(hierarchy.node_ids)]
        for code in range(len(hierarchy.node_ids[0]))
    ]
