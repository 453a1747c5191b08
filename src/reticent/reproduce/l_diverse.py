"""Baseline: l-diversity anew for each release, as if the others did not exist.

Guarantee: every group of one release holds at least l distinct values, against a reader who sees that release alone.
Not covered: a second release. Two of them together disclose most values (see `docs/reproduce/m-distinct.md`); `series: {method: l-diversity}` is the same promise with better cuts; this is the paper's scale.
Cost: O(n log n) in the native core.
Reference: A. Machanavajjhala et al., "l-diversity: privacy beyond k-anonymity", ICDE 2006; cuts as in K. LeFevre et al., "Mondrian", ICDE 2006.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from reticent import _core
from reticent.engine.series.grouping import Grouping
from reticent.errors import GuaranteeError


def l_diverse(values: npt.NDArray[np.int32], where: npt.NDArray[np.float32], *, l: int) -> Grouping:
    """Groups of at least l distinct values, near in their quasi-identifiers; values may repeat inside a group."""
    cuts = _core.series.l_diverse(values, where, l=l)
    if not cuts.count:
        raise GuaranteeError(f"The table has fewer than {l} values; nothing was published.", hint="Lower l.")
    group = cuts.groups
    order = np.lexsort((values, group)).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(group))]).astype(np.int64)
    return Grouping(offsets, order, values[order], order, np.zeros(len(values), dtype=np.uint8))
