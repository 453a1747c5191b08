"""Which of the published values a raw value is: its own label, the nearest node's, or that of all others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from reticent.audit.groups import codes
from reticent.audit.spellings import same
from reticent.errors import DataError
from reticent.policy.hierarchy import ladder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reticent.audit.arrays import Codes
    from reticent.policy import Policy

MISSING, OTHER = "(missing)", "other"


def truths_of(domain: Sequence[str | None], column: pa.ChunkedArray, policy: Policy, name: str) -> Codes:
    """The place of each record's value in the domain: its own label, the nearest node's, or that of all others; else -1."""
    code, values = codes(column)
    places = {label: place for place, label in enumerate(domain)}
    if policy.columns[name].normalise:
        places |= {same(label): place for place, label in enumerate(domain) if label is not None}
        values = tuple(None if value is None or not same(value) else same(value) for value in values)
    truths = np.full(max(1, len(values)), -1, dtype=np.int64)
    for at, (value, path) in enumerate(zip(values, _paths(policy, name, values), strict=True)):
        own = [value] if value is not None else [None, MISSING]
        names = [*own, *(n for node in path for n in (f"{node}, {OTHER}", node)), OTHER]
        truths[at] = next((places[name] for name in names if name in places), -1)
    return truths[code]


def _paths(policy: Policy, name: str, values: Sequence[str | None]) -> list[list[str]]:
    """The nodes above each value, the nearest first; none where the hierarchy does not know it."""
    spec = policy.columns[name].hierarchy
    if spec is None:
        return [[] for _ in values]
    try:
        rungs = ladder(spec, pa.array(values, pa.string()), column=name, base=policy.base)
    except DataError:
        return [[]] if len(values) == 1 else [path for value in values for path in _paths(policy, name, [value])]
    names = [labels.to_pylist() for labels in rungs.labels[1:-1]]
    nodes = [
        [words[table[at]] for words, table in zip(names, rungs.tables[1:-1], strict=True)] for at in range(len(values))
    ]
    return [[str(node) for node in path if node is not None] for path in nodes]
