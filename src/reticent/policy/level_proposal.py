"""Proposes the hierarchy level at which each quasi-identifier is published, so that few records are unique."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from reticent.arrays import Int64s
from reticent.errors import DataError
from reticent.policy.cells import encode_cells
from reticent.policy.column_patterns import is_age_or_sex
from reticent.policy.hierarchy import build_levels
from reticent.policy.policy import Policy

NodesByLevel = list[Int64s]

MAX_UNIQUE_SHARE = 0.02
"""Largest share of records with a unique published combination."""
_FEW_NODES = 5
"""Number of nodes below which other columns are generalized first."""


def propose_levels(table: pa.Table, policy: Policy) -> dict[str, int]:
    """Raise the levels of quasi-identifiers, the column with the most nodes first, until few combinations are unique.

    A place discloses less about an illness than age and sex. So codes of places become `*` first, then columns with many
    values and no level below `*`; ages and sexes become `*` last. Finally, columns go down again where possible, ages and
    sexes first.
    """
    nodes_by_level = {
        name: nodes for name in policy.quasi if (nodes := _nodes_by_level(table.column(name), policy, name))
    }
    levels = dict.fromkeys(nodes_by_level, 0)
    while _unique_share(_current_nodes(nodes_by_level, levels), table.num_rows) > MAX_UNIQUE_SHARE:
        rising = next(filter(None, _iter_candidates(nodes_by_level, levels, policy)), None)
        if rising is None:
            break
        levels[max(rising, key=lambda name: _node_count(nodes_by_level[name][levels[name]]))] += 1
    for name in sorted(levels, key=lambda name: not is_age_or_sex(name)):
        while (
            levels[name]
            and _unique_share(_current_nodes(nodes_by_level, levels | {name: levels[name] - 1}), table.num_rows)
            <= MAX_UNIQUE_SHARE
        ):
            levels[name] -= 1
    return levels


def _current_nodes(nodes_by_level: dict[str, NodesByLevel], levels: dict[str, int]) -> NodesByLevel:
    return [nodes_by_level[name][level] for name, level in levels.items()]


def _iter_candidates(
    nodes_by_level: dict[str, NodesByLevel], levels: dict[str, int], policy: Policy
) -> Iterator[list[str]]:
    """Yield columns that may go up by one level, cheapest first; no column becomes `*` before all others are coarse."""
    nodes = {name: list(map(_node_count, nodes_by_level[name][level:])) for name, level in levels.items()}
    above = {name: sizes[1:] for name, sizes in nodes.items() if len(sizes) > 1}
    age_or_sex = set(filter(is_age_or_sex, above))
    yield [name for name, sizes in above.items() if sizes[0] >= _FEW_NODES]
    hierarchies = {name: policy.columns[name].hierarchy for name in above}
    yield [name for name, spec in hierarchies.items() if spec is not None and spec.kind == "prefix"]  # places
    yield [name for name, sizes in above.items() if len(sizes) == 1 and nodes[name][0] > _FEW_NODES**2]
    yield [name for name, sizes in above.items() if len(sizes) > 1 and name not in age_or_sex]
    yield [
        name
        for name, sizes in above.items()
        if len(sizes) == 1 and nodes[name][0] > _FEW_NODES and name not in age_or_sex
    ]
    yield [name for name, sizes in above.items() if len(sizes) > 1]
    yield [name for name in above if name not in age_or_sex]
    yield list(above)


def _node_count(nodes: Int64s) -> int:
    return int(nodes.max(initial=0)) + 1


def _nodes_by_level(column: pa.ChunkedArray, policy: Policy, name: str) -> NodesByLevel:
    """Return the node of every record per level; an empty list if the column does not fit its hierarchy."""
    codes, values = encode_cells(column)
    try:
        levels = build_levels(policy.columns[name].hierarchy, values, column=name, base=policy.base)
    except DataError:
        return []
    return [table[codes].astype(np.int64) for table in levels.node_ids]


def _unique_share(nodes: NodesByLevel, size: int) -> float:
    key = np.zeros(size, dtype=np.int64)
    for column in nodes:
        _, key = np.unique(key * _node_count(column) + column, return_inverse=True)
        key = key.reshape(-1)
    return float((np.bincount(key)[key] == 1).mean()) if size else 0.0
