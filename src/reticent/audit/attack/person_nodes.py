"""The hierarchy nodes of each person, on every level of every published field.

The levels of a field nest, so its nodes occur in few patterns; a person has one pattern per field. Node weights are
summed once per pattern, not once per person.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from scipy.sparse import block_diag, csr_array

from reticent.arrays import Bools, Floats, Int64s
from reticent.policy import Policy
from reticent.verify.groups import codes
from reticent.verify.labels.coverage import levels

NODE_LIMIT = 300  # levels with more nodes are skipped: the model cannot learn them
_BINS = 20


@dataclass(frozen=True, repr=False)
class PersonNodes:
    """A matrix of persons x nodes, stored as patterns.

    Attributes:
        patterns: persons x blocks, the pattern of each person in each block of levels.
        nodes: patterns x nodes, 1 for every node of a pattern.
    """

    patterns: Int64s
    nodes: csr_array

    def __getitem__(self, persons: Int64s | Bools) -> PersonNodes:
        return PersonNodes(self.patterns[persons], self.nodes)

    def pattern_matrix(self) -> csr_array:
        """Return the indicator matrix of persons x patterns."""
        size, blocks = self.patterns.shape
        ends = np.arange(0, size * blocks + 1, blocks)
        return csr_array((np.ones(size * blocks), self.patterns.ravel(), ends), (size, self.nodes.shape[0]))

    def __matmul__(self, weights: Floats) -> Floats:
        return np.asarray(self.pattern_matrix() @ (self.nodes @ weights))


def person_nodes(table: pa.Table, names: Sequence[str], policy: Policy, *, raw: bool) -> PersonNodes:
    """Return the nodes of every person; `raw` if the attacker knows the fields in more detail than published."""
    blocks = [(np.zeros(table.num_rows, dtype=np.int64), np.zeros((1, 1), dtype=np.int64))]
    for name in names:
        code, values = codes(table[name])
        steps = _levels(values, policy, name, 0 if raw else policy.columns[name].level)
        known = [nodes for nodes in steps if 1 < int(nodes.max(initial=-1)) + 1 <= NODE_LIMIT]
        blocks += [(pattern[code], nodes) for nodes, pattern in _patterns(known)]
    sizes = [len(nodes) for _, nodes in blocks]
    firsts = np.cumsum([0, *sizes[:-1]])
    patterns = np.stack([code + first for (code, _), first in zip(blocks, firsts, strict=True)], axis=1)
    return PersonNodes(patterns, csr_array(block_diag([_indicator_matrix(nodes) for _, nodes in blocks], format="csr")))


def _patterns(steps: list[Int64s]) -> list[tuple[Int64s, Int64s]]:
    """Return blocks of levels: the distinct patterns with their node per level, and the pattern of each value."""
    if not steps:
        return []
    nodes, pattern = np.unique(np.stack(steps, axis=1), axis=0, return_inverse=True)
    if len(nodes) > 2 * NODE_LIMIT and len(steps) > 1:  # levels that do not nest have too many combinations
        return [block for step in steps for block in _patterns([step])]
    return [(nodes, pattern.reshape(-1))]


def _indicator_matrix(nodes: Int64s) -> csr_array:
    """Return the matrix of patterns x nodes of all levels."""
    widths = nodes.max(axis=0) + 1
    at = nodes + np.cumsum([0, *widths[:-1]])
    return csr_array((np.ones(at.size), at.ravel(), np.arange(0, at.size + 1, at.shape[1])), (len(at), widths.sum()))


def _levels(values: tuple[str | None, ...], policy: Policy, name: str, level: int) -> list[Int64s]:
    """Return, per level, the node of every value."""
    if name in policy.columns and policy.columns[name].hierarchy is not None:
        steps = levels(pa.array(values, pa.string()), policy, name)[level:]
        return [np.unique(nodes, return_inverse=True)[1].reshape(-1) for nodes, _ in steps]
    return [np.arange(len(values)), *([_bin_numbers(values)] if len(values) > NODE_LIMIT else [])][level:]


def _bin_numbers(values: tuple[str | None, ...]) -> Int64s:
    """Bin many numbers without a hierarchy into twenty quantiles; one bin if they are not numbers."""
    try:
        numbers = np.array([float(value) if value is not None else -np.inf for value in values])
    except ValueError:
        return np.zeros(len(values), dtype=np.int64)
    rank = np.argsort(np.argsort(numbers, kind="stable"), kind="stable")
    return np.asarray(rank * _BINS // max(len(rank), 1))
