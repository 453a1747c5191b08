"""What holds of a table, whoever made it: the largest k, l and the least t that its classes show, nothing taken on trust."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from reticent.audit import measures
from reticent.audit.groups import histograms, numbered

if TYPE_CHECKING:
    import pyarrow as pa

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
        whole = np.array(list(groups.totals().values()))
        varied = measures.entropy_l(groups, Fraction(1))[0].min()
        far = measures.distance(groups, whole, np.arange(len(whole)), measures.equal_parts(len(whole)), Fraction(1))[
            0
        ].max()
        shown |= {f"l of '{name}'": int(groups.distinct().min()), f"entropy l of '{name}'": round(float(varied), 6)}
        shown[f"t of '{name}'"] = round(float(far), 6)
    return shown
