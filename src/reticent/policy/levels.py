"""Proposes at which level of its hierarchy each quasi-identifier is published, so that hardly anybody stands alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from reticent.errors import DataError
from reticent.policy.hierarchy import ladder

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from reticent.policy.policy import Policy

    Steps = list[npt.NDArray[np.int64]]

ALONE = 0.02
"""Share of the records that may be the only one of their published combination."""


def propose_levels(table: pa.Table, policy: Policy) -> dict[str, int]:
    """Levels of the quasi-identifiers: the column with the most nodes goes up first, until few combinations are unique.

    Where somebody lives says less of an illness than age and sex do, so codes of places are the first to become `*`.

    Args:
        table: a sample of the data.
        policy: roles and hierarchies.
    """
    steps = {name: nodes for name in policy.quasi if (nodes := _steps(table.column(name), policy, name))}
    levels = dict.fromkeys(steps, 0)
    while _alone([steps[name][level] for name, level in levels.items()], table.num_rows) > ALONE:
        # A column is left out, by `*`, only where all others are as coarse as they can be.
        ways = [[name for name, level in levels.items() if level + short < len(steps[name])] for short in (2, 1)]
        ways.insert(1, [name for name in ways[1] if _is_place(policy, name)])
        rising = next(filter(None, ways), None)
        if rising is None:
            break
        levels[max(rising, key=lambda name: int(steps[name][levels[name]].max(initial=0)))] += 1
    return levels


def _is_place(policy: Policy, name: str) -> bool:
    hierarchy = policy.columns[name].hierarchy
    return hierarchy is not None and hierarchy.kind == "prefix"


def _steps(column: pa.ChunkedArray, policy: Policy, name: str) -> Steps:
    """Per level the node of every record; none where the column does not fit its hierarchy."""
    whole = column.combine_chunks()
    values = pc.unique(whole)
    codes = pc.index_in(whole, value_set=values).to_numpy(zero_copy_only=False).astype(np.int64)
    try:
        rungs = ladder(policy.columns[name].hierarchy, values, column=name, base=policy.base)
    except DataError:
        return []
    return [table[codes].astype(np.int64) for table in rungs.tables]


def _alone(nodes: Steps, size: int) -> float:
    key = np.zeros(size, dtype=np.int64)
    for column in nodes:
        _, key = np.unique(key * (int(column.max(initial=0)) + 1) + column, return_inverse=True)
        key = key.reshape(-1)
    return float((np.bincount(key)[key] == 1).mean()) if size else 0.0
