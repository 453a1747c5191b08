"""What the past is counted by: published fields at the published level and at every coarser one, and the values that a veil offers.

The values are the finest antichain of the value hierarchy that the past carries. Rare codes are replaced by their parent. Where some
children of a node are frequent and stay, the others stand together as "node, other"; what is still rare there goes further up, at last
to "other". Without a hierarchy every rare value becomes "other", also a single one: its name alone would tell that somebody had it.
"other" is always there, so that every value, new ones included, has a place.
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
        name: of the column.
        codes: per record, its published node.
        levels: per level, from the published one up to the last below `*`: published node -> node of that level.
        labels: per such level, node -> label.
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
        """Per published node, whether it is the node of this label or lies below it, on whatever level that is."""
        if label == ROOT:
            return np.ones(self.size, dtype=bool)
        out = np.zeros(self.size, dtype=bool)
        for nodes, labels in zip(self.levels, self.labels, strict=True):
            out |= np.isin(nodes, [node for node, name in enumerate(labels) if name == label])
        return out

    def coarser(self) -> Field:
        """The same field, published one level higher up; without levels where that is `*`."""
        if len(self.levels) < 2:
            return Field(self.name, np.zeros_like(self.codes), (), ())
        _, first = np.unique(self.levels[1], return_index=True)
        levels = tuple(nodes[first] for nodes in self.levels[1:])
        return Field(self.name, self.levels[1][self.codes], levels, self.labels[1:])

    def take(self, at: Integers) -> Field:
        """The same field of some of the records."""
        return Field(self.name, self.codes[at], self.levels, self.labels)


def published_fields(table: pa.Table, policy: Policy, columns: Sequence[str]) -> dict[str, Field]:
    """The fields of a table at the levels at which the policy publishes them."""
    return {name: _field(table.column(name), policy, name) for name in columns}


def label_texts(labels: pa.Array) -> tuple[str, ...]:
    """Labels as text, as a release writes them."""
    return tuple(MISSING if label is None else label for label in labels.cast(pa.string()).to_pylist())


def _field(column: pa.ChunkedArray, policy: Policy, name: str) -> Field:
    codes, values = encode_cells(column)
    rungs = build_levels(policy.columns[name].hierarchy, values, column=name, base=policy.base)
    lowest = min(policy.columns[name].level, rungs.height)
    at = rungs.node_ids[lowest]
    _, first = np.unique(at, return_index=True)
    levels = tuple(rungs.node_ids[level][first] for level in range(lowest, rungs.height))
    labels = tuple(label_texts(rungs.labels[level]) for level in range(lowest, rungs.height))
    return Field(name, at[codes], levels, labels)


def condition_columns(policy: Policy, by: Sequence[str] | None) -> Sequence[str] | None:
    """The columns to condition on, None for a free choice; none at all where relatives share a veil, as `House` asks for.

    Raises:
        PolicyError: the policy names a unit, and columns were asked for.
    """
    if policy.household is None:
        return by
    if by:
        raise PolicyError(
            "prior: a unit and fields do not go together: relatives stand in different rows.",
            hint="Leave --by and prior.by out, or take the unit out.",
        )
    return ()


Node = tuple[int, str]
"""A node of the hierarchy: its level and its label."""


def choose_domain(
    values: pa.Array, counts: Int64s, policy: Policy, column: str, *, least: float, noise: float = 0.0
) -> Domain:
    """The finest antichain whose values have at least so many records each, by the counts of the distinct values of the past.

    A count below `noise` is noise; the noises of values that stand together add up.
    """
    rungs = build_levels(policy.columns[column].hierarchy, values, column=column, base=policy.base)
    paths = _paths(rungs)
    labels: list[str] = [OTHER]
    parted: set[Node] = set()  # nodes with a value of their own below them
    waiting = list(range(len(paths)))
    for level in range(rungs.height):
        frequent = _frequent_nodes(level, waiting, paths, counts, (least, noise))
        labels += [f"{node[1]}, {OTHER}" if node in parted else node[1] for node in frequent]
        parted |= {above for path in paths if path[level] in frequent for above in path[level + 1 :]}
        waiting = [code for code in waiting if paths[code][level] not in frequent]
    return Domain(labels, policy, column)


def _frequent_nodes(
    level: int, waiting: list[int], paths: list[list[Node]], counts: Int64s, thresholds: tuple[float, float]
) -> set[Node]:
    """Nodes of one level that hold enough of what has no place below them."""
    held: Counter[Node] = Counter()
    parts: Counter[Node] = Counter()
    for code in waiting:
        held[paths[code][level]] += int(counts[code])
        parts[paths[code][level]] += 1
    least, noise = thresholds
    return {node for node, count in held.items() if count >= max(least, noise * math.sqrt(parts[node]))}


def _paths(rungs: HierarchyLevels) -> list[list[Node]]:
    """Per value, its nodes from the value itself up to `*`."""
    labels = [label_texts(level) for level in rungs.labels]
    return [
        [(level, labels[level][table[code]]) for level, table in enumerate(rungs.node_ids)]
        for code in range(len(rungs.node_ids[0]))
    ]
