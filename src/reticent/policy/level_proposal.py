"""Proposes at which level of its hierarchy each quasi-identifier is published, so that hardly anybody stands alone."""

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
"""Share of the records that may be the only one of their published combination."""
_FEW_NODES = 5
"""Nodes below which a column says little: others go up before it does."""


def propose_levels(table: pa.Table, policy: Policy) -> dict[str, int]:
    """Levels of the quasi-identifiers: the column with the most nodes goes up first, until few combinations are unique.

    Where somebody lives says less of an illness than age and sex do: codes of places are the first to become `*`, then columns that
    have many values and nothing between them and `*`; ages and sexes are the last. What others made room for comes down again, they first.
    """
    steps = {name: nodes for name in policy.quasi if (nodes := _nodes_by_level(table.column(name), policy, name))}
    levels = dict.fromkeys(steps, 0)
    while _unique_share(_current_nodes(steps, levels), table.num_rows) > MAX_UNIQUE_SHARE:
        rising = next(filter(None, _iter_candidates(steps, levels, policy)), None)
        if rising is None:
            break
        levels[max(rising, key=lambda name: _node_count(steps[name][levels[name]]))] += 1
    for name in sorted(levels, key=lambda name: not is_age_or_sex(name)):
        while (
            levels[name]
            and _unique_share(_current_nodes(steps, levels | {name: levels[name] - 1}), table.num_rows)
            <= MAX_UNIQUE_SHARE
        ):
            levels[name] -= 1
    return levels


def _current_nodes(steps: dict[str, NodesByLevel], levels: dict[str, int]) -> NodesByLevel:
    return [steps[name][level] for name, level in levels.items()]


def _iter_candidates(steps: dict[str, NodesByLevel], levels: dict[str, int], policy: Policy) -> Iterator[list[str]]:
    """Columns that may go up by one level, what costs least first; no column is left out, by `*`, before all others are coarse."""
    nodes = {name: list(map(_node_count, steps[name][level:])) for name, level in levels.items()}
    above = {name: sizes[1:] for name, sizes in nodes.items() if len(sizes) > 1}
    telling = set(filter(is_age_or_sex, above))
    yield [name for name, sizes in above.items() if sizes[0] >= _FEW_NODES]
    hierarchies = {name: policy.columns[name].hierarchy for name in above}
    yield [name for name, spec in hierarchies.items() if spec is not None and spec.kind == "prefix"]  # places
    yield [name for name, sizes in above.items() if len(sizes) == 1 and nodes[name][0] > _FEW_NODES**2]
    yield [name for name, sizes in above.items() if len(sizes) > 1 and name not in telling]
    yield [
        name for name, sizes in above.items() if len(sizes) == 1 and nodes[name][0] > _FEW_NODES and name not in telling
    ]
    yield [name for name, sizes in above.items() if len(sizes) > 1]
    yield [name for name in above if name not in telling]
    yield list(above)


def _node_count(nodes: Int64s) -> int:
    return int(nodes.max(initial=0)) + 1


def _nodes_by_level(column: pa.ChunkedArray, policy: Policy, name: str) -> NodesByLevel:
    """Per level the node of every record; none where the column does not fit its hierarchy."""
    codes, values = encode_cells(column)
    try:
        rungs = build_levels(policy.columns[name].hierarchy, values, column=name, base=policy.base)
    except DataError:
        return []
    return [table[codes].astype(np.int64) for table in rungs.node_ids]


def _unique_share(nodes: NodesByLevel, size: int) -> float:
    key = np.zeros(size, dtype=np.int64)
    for column in nodes:
        _, key = np.unique(key * _node_count(column) + column, return_inverse=True)
        key = key.reshape(-1)
    return float((np.bincount(key)[key] == 1).mean()) if size else 0.0
