"""What holds of a table, whoever made it: the largest k, l and the least t that its classes show, nothing taken on trust."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reticent.audit.groups import histograms, numbered

if TYPE_CHECKING:
    import pyarrow as pa

    from reticent.audit.groups import Groups
    from reticent.policy import Policy


def figures(data: pa.Table, policy: Policy) -> dict[str, float]:
    """Classes, the records that are alone, k, and per sensitive column distinct l, entropy l and t with equal distances."""
    rows, size = numbered(data, [name for name in policy.quasi if name in data.column_names])
    if not data.num_rows:
        return {}
    sizes = np.bincount(rows, minlength=size)
    shown: dict[str, float] = {"k": int(sizes.min()), "classes": size, "alone": int((sizes == 1).sum())}
    open_rows, open_size = numbered(
        data, [name for name in (*policy.quasi, *policy.plain) if name in data.column_names]
    )
    shown["alone_with_plain"] = int((np.bincount(open_rows, minlength=open_size) == 1).sum())
    for name in (name for name in policy.sensitive if name in data.column_names):
        groups = histograms(rows, size, data[name])
        shown |= {f"l of '{name}'": int(groups.distinct().min()), f"entropy l of '{name}'": _entropy_l(groups)}
        shown[f"t of '{name}'"] = _closeness(groups)
    return shown


def _entropy_l(groups: Groups) -> float:
    """The exponential of the least entropy of a class: its effective number of values."""
    share = groups.count / groups.sizes()[groups.group]
    entropy = np.bincount(groups.group, weights=-share * np.log(share), minlength=groups.size)
    return round(float(np.exp(entropy.min())), 6)


def _closeness(groups: Groups) -> float:
    """The largest total variation distance of a class from the whole table."""
    whole = np.array(list(groups.totals().values()), dtype=np.float64)
    whole /= whole.sum()
    worst = 0.0
    for _, block in groups.matrices(len(whole), np.arange(len(whole))):
        worst = max(worst, float(np.abs(block - whole).sum(axis=1).max()) / 2)
    return round(worst, 6)
