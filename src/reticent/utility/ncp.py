"""Information loss of generalised records: equations (3) to (5) of the stream paper, also known as NCP.

A published value loses the share of the hierarchy's other leaves it covers (3), or the share of the domain's range its
interval spans (4); a record loses the mean over its quasi-identifiers (5), a suppressed record everything.

Cost: O(records) per attribute.
Reference: S. Kim, M. Sung, Y. Chung, "A framework to preserve the privacy of electronic health data streams", Journal
    of Biomedical Informatics 50, 2014, section 5.1.1; J. Xu et al., "Utility-based anonymization using local recoding",
    KDD 2006 (normalized certainty penalty); G. Loukides, J. Shao, "Capturing data usefulness and privacy protection in
    k-anonymisation", SAC 2007 (UM).
Differences from the paper: the interval of a numeric node spans the domain values it covers, so a single value loses 0
    and the root 1 whatever the borders printed in its label. (Xu et al. use |M_P|/|M| without the -1.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reticent.arrays import Bools, Floats, Int64s


def node_loss(leaves: Int64s, size: int) -> Floats:
    """Equation (3): (leaves below the node - 1) / (leaves of the tree - 1).

    >>> node_loss(np.array([1, 3, 5]), 5).tolist()
    [0.0, 0.5, 1.0]
    """
    return np.asarray((np.asarray(leaves, dtype=np.float64) - 1) / max(1, size - 1))


def interval_loss(low: Floats, high: Floats, bottom: float, top: float) -> Floats:
    """Equation (4): width of the interval / width of the domain; 0 for a domain of one value.

    >>> interval_loss(np.array([20.0]), np.array([30.0]), 0.0, 100.0).tolist()
    [0.1]
    """
    width = top - bottom
    spans = np.asarray(high, dtype=np.float64) - np.asarray(low, dtype=np.float64)
    return spans / width if width > 0 else np.zeros_like(spans)


def information_loss(cells: Sequence[Floats], counts: Int64s, suppressed: Bools) -> float:
    """Equation (5), averaged over the records; suppressed records lose 1."""
    per_record = sum(cells) / len(cells) if cells else np.zeros(len(counts))
    total = int(counts.sum())
    return float((np.where(suppressed, 1.0, per_record) * counts).sum() / total) if total else 0.0


def usefulness(cells: Sequence[Floats]) -> float:
    """UM: the mean over the classes of a release, each the mean loss of its cells; every record of a class is published alike, so one tells it.

    >>> usefulness([np.array([0.5, 0.0])])
    0.25
    """
    return float(np.mean(cells)) if cells and len(cells[0]) else 0.0
