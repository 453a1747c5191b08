"""Which of the published values a raw value is: its own label, the nearest node's, or that of all others."""

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
    """The place of each record's value in the domain: its own label, the nearest node's, or that of all others; else -1."""
    code, values = codes(column)
    places = {label: place for place, label in enumerate(domain)}
    if policy.columns[name].normalize:
        places |= {canonical_text(label): place for place, label in enumerate(domain) if label is not None}
        values = tuple(
            None if value is None or not canonical_text(value) else canonical_text(value) for value in values
        )
    truths = np.full(max(1, len(values)), -1, dtype=np.int64)
    above = [(nodes, names.to_pylist()) for nodes, names in levels(pa.array(values, pa.string()), policy, name)[1:-1]]
    for at, value in enumerate(values):
        own = [value] if value is not None else [None, MISSING]
        path = dict.fromkeys(names[nodes[at]] for nodes, names in above)  # nearest first; a stranger is his own
        names = [*own, *(n for node in path if node is not None for n in (f"{node}, {OTHER}", node)), OTHER]
        truths[at] = next((places[name] for name in names if name in places), -1)
    return truths[code]
