"""Map raw values to the published domain: the value itself, its nearest node, or "other"."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from reticent.arrays import Int64s
from reticent.policy import Policy
from reticent.verify.groups import codes
from reticent.verify.labels.coverage import levels
from reticent.verify.variants import canonical_text

MISSING, OTHER = "(missing)", "other"


def true_value_codes(domain: Sequence[str | None], column: pa.ChunkedArray, policy: Policy, name: str) -> Int64s:
    """Return the domain code of each record's value: the value itself, its nearest node, or "other"; else -1."""
    code, values = codes(column)
    places = {label: place for place, label in enumerate(domain)}
    if policy.columns[name].normalize:
        places |= {canonical_text(label): place for place, label in enumerate(domain) if label is not None}
        values = tuple(
            None if value is None or not canonical_text(value) else canonical_text(value) for value in values
        )
    true_codes = np.full(max(1, len(values)), -1, dtype=np.int64)
    above = [(nodes, names.to_pylist()) for nodes, names in levels(pa.array(values, pa.string()), policy, name)[1:-1]]
    for at, value in enumerate(values):
        own = [value] if value is not None else [None, MISSING]
        path = dict.fromkeys(
            names[nodes[at]] for nodes, names in above
        )  # nearest first; an unknown value is its own node
        names = [*own, *(n for node in path if node is not None for n in (f"{node}, {OTHER}", node)), OTHER]
        true_codes[at] = next((places[name] for name in names if name in places), -1)
    return true_codes[code]
