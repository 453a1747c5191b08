"""What else could be released: the neighbours of a node of the lattice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from reticent.encode import encode_table
from reticent.policy import Policy
from reticent.policy.hierarchy import ladder
from reticent.utility.classes import packed


def neighbours(table: pa.Table, policy: Policy, levels: dict[str, int]) -> list[dict[str, Any]]:
    """All nodes one step from the one that was released, judged by k and the suppression allowed."""
    encoded = encode_table(table, list(policy.quasi))
    rungs = {
        name: ladder(policy.columns[name].hierarchy, encoded.dictionaries[name].values, column=name, base=policy.base)
        for name in policy.quasi
    }
    choices = []
    for name in policy.quasi:
        for step in (-1, 1):
            level = levels[name] + step
            if not 0 <= level <= rungs[name].height:
                continue
            at = {**levels, name: level}
            nodes = [rungs[other].tables[at[other]][encoded.codes[other]] for other in policy.quasi]
            key = packed([(part.astype(np.int64), int(part.max()) + 1) for part in nodes])
            sizes = np.unique(key, return_counts=True)[1]
            small = int(sizes[sizes < (policy.privacy.k or 1)].sum())
            fits = small <= policy.privacy.may_suppress(table.num_rows)
            choices.append({"column": name, "finer": step < 0, "small": small, "rows": table.num_rows, "fits": fits})
    return choices
