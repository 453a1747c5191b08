"""The nodes above raw values, by the policy's hierarchy."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from reticent.arrays import Integers
from reticent.audit.groups import numbers
from reticent.errors import DataError
from reticent.policy import Policy
from reticent.policy.hierarchy import ladder

Levels = list[tuple[Integers, pa.Array]]


def levels(values: pa.Array, policy: Policy, column: str) -> Levels:
    """Level by level, from the values themselves to the root: the node of every value, by its place among the names of the level.

    A value that the hierarchy does not know is its own node on every level.
    """
    try:
        steps = ladder(policy.columns[column].hierarchy, values, column=column, base=policy.base)
    except DataError:  # one stranger spoils the lot: take the values one by one
        if len(values) == 1:
            return [(np.zeros(1, dtype=np.int64), values)]
        single = [levels(values.slice(at, 1), policy, column) for at in range(len(values))]
        paths = [[names[nodes[0]].as_py() for nodes, names in one] for one in single]
        height = max(map(len, paths), default=0)
        padded = [path + [path[0]] * (height - len(path)) for path in paths]
        return [numbers(pa.chunked_array([pa.array(level, pa.string())])) for level in zip(*padded, strict=True)]
    return list(zip(steps.tables, (names.cast(pa.string()) for names in steps.labels), strict=True))
