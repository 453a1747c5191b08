"""What a generalised release lost, by each measure of the literature; `metrics` puts them together.

**Loss**: the share of the hierarchy's leaves each published value covers, scaled to 0 (as it was) to 1 (all suppressed).
**NCP**, equations (3) to (5) of the stream paper: a published value loses the share of the hierarchy's other leaves it covers (3), or the
share of the domain's range its interval spans (4); a record loses the mean over its quasi-identifiers (5), a suppressed record everything.
**Entropy**, non-uniform: the bits needed to get from the published values back to the original ones.
**Classes**: discernibility and the average class size.

Cost: O(records) per attribute; for entropy one sort of them; O(classes) for those of classes.
Reference: V. Iyengar, "Transforming data to satisfy privacy constraints", KDD 2002 (generalised loss metric), in the form and with the
    geometric mean used by ARX (F. Prasser et al.). NCP: S. Kim, M. Sung, Y. Chung, "A framework to preserve the privacy of electronic health
    data streams", Journal of Biomedical Informatics 50, 2014, section 5.1.1; J. Xu et al., "Utility-based anonymization using local
    recoding", KDD 2006 (normalized certainty penalty); G. Loukides, J. Shao, "Capturing data usefulness and privacy protection in
    k-anonymisation", SAC 2007 (UM). Entropy: A. De Waal, L. Willenborg, "Information loss through global recoding and local
    suppression", Netherlands Official Statistics 14, 1999; A. Gionis, T. Tassa, "k-Anonymization with minimal loss of information", IEEE
    TKDE 21(2), 2009. Classes: R. Bayardo, R. Agrawal, "Data privacy through optimal k-anonymization", ICDE 2005 (discernibility);
    K. LeFevre, D. DeWitt, R. Ramakrishnan, "Mondrian multidimensional k-anonymity", ICDE 2006 (average class size).
Differences from the papers: loss is scaled so that the original table scores 0; suppressed records score 1 in every attribute; leaves that
    do not occur in the data count; attributes are combined by the geometric mean of 1 + loss, minus 1. In NCP the interval of a numeric
    node spans the domain values it covers, so a single value loses 0 and the root 1 whatever the borders printed in its label (Xu et al.
    use |M_P|/|M| without the -1). In entropy suppressed records keep their generalised value in the first term and add the bits that tell
    the generalised values of the suppressed apart, as ARX computes it; the result is a sum over records in bits. The average class size
    is not divided by k, and all suppressed records together count as one more class.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.arrays import Bools, Floats, Int32s, Int64s

_DIGITS = 1e10  # values are cut to ten decimals, so that sums in another order give the same figure


@dataclass(frozen=True)
class Balance:
    """What a suppressed value weighs against a generalised one, each from 0 to 1, in the measures that count both: ARX's gs factor.

    >>> Balance.of(0.5), Balance.of(0.25).suppressed, Balance.of(1.0).general
    (Balance(general=1.0, suppressed=1.0), 0.5, 0.0)
    """

    general: float = 1.0
    suppressed: float = 1.0

    @classmethod
    def of(cls, factor: float) -> Balance:
        """From the factor of a policy: at 0.5 both weigh 1; below, suppression weighs less; above, generalisation does."""
        return cls(min(1.0, 2.0 - 2.0 * factor), min(1.0, 2.0 * factor))


EVEN = Balance()


def floor_decimals(value: float) -> float:
    """Cut to ten decimals."""
    return math.floor(value * _DIGITS) / _DIGITS


def attribute_loss(
    share: Floats,
    size: int,
    counts: Int64s,
    suppressed: Bools,
    balance: Balance = EVEN,
) -> float:
    """Loss of one attribute, 0 to 1.

    Args:
        share: per record, leaves below its published value / leaves of the hierarchy.
        size: leaves of the hierarchy.
        counts: how many records each entry stands for.
        suppressed: which entries are suppressed.
        balance: what suppression weighs against generalisation; a suppressed value is at least as lost as its generalised one.
    """
    rows = float(counts.sum())
    least = balance.general * rows / size
    if rows <= least:
        return 0.0
    gone = 1.0 if balance.suppressed == 1 else share + balance.suppressed * (1.0 - share)
    spent = float((np.where(suppressed, gone, balance.general * share) * counts).sum())
    return max(0.0, floor_decimals((spent - least) / (rows - least)))


def geometric_mean(losses: Sequence[float], weights: Sequence[float] | None = None) -> float:
    """Combine the attributes: the geometric mean of 1 + weight * loss, minus 1; weights are scaled to a maximum of 1.

    >>> round(geometric_mean([0.0, 1.0]), 4)
    0.4142
    """
    if not losses:
        return 0.0
    scale = weights or [1.0] * len(losses)
    top = max(scale)
    product = 1.0
    for loss, weight in zip(losses, scale, strict=True):
        product *= (weight / top * loss + 1.0) ** (1.0 / len(losses))
    return product - 1.0


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


_DENSE_FACTOR = 4
"""Keys per record up to which counting is cheaper than sorting."""


def attribute_entropy(
    source: Int32s,
    node: Int64s,
    counts: Int64s,
    suppressed: Bools,
    balance: Balance = EVEN,
) -> float:
    """Bits lost in one attribute over all records.

    >>> ones = np.ones(4, dtype=np.int64)
    >>> attribute_entropy(np.arange(4, dtype=np.int32), np.zeros(4, dtype=np.int64), ones, np.zeros(4, dtype=bool))
    8.0
    """
    width = int(source.max(initial=0)) + 1
    pairs, joint = _tally(node * width + source, counts)
    nodes, place = np.unique(pairs // width, return_inverse=True)
    published = np.bincount(place, weights=joint, minlength=len(nodes))
    bits = -balance.general * _bits(joint, published[place])
    if suppressed.any():
        _, gone = np.unique(node[suppressed], return_inverse=True)
        sizes = np.bincount(gone, weights=counts[suppressed])
        bits -= balance.suppressed * _bits(sizes, np.full(len(sizes), sizes.sum()))
    return floor_decimals(bits)


def _tally(key: Int64s, counts: Int64s) -> tuple[Int64s, NDArray[Any]]:
    """The keys that occur, in order, and how often; counted where they are few, sorted where they are not."""
    if int(key.max(initial=0)) < _DENSE_FACTOR * len(key):
        sums = np.bincount(key, weights=counts)
        keys = np.flatnonzero(sums)
        return keys.astype(np.int64), sums[keys]
    different, inverse = np.unique(key, return_inverse=True)
    return different, np.bincount(inverse, weights=counts, minlength=len(different))


def _bits(part: NDArray[Any], whole: NDArray[Any]) -> float:
    real = part > 0
    return float((part[real] * np.log2(part[real] / whole[real])).sum())


def discernibility(sizes: Int64s, suppressed: int = 0) -> float:
    """DM: each published record costs the size of its class, each suppressed one the size of the table.

    >>> discernibility(np.array([3, 2]), suppressed=1)
    19.0
    """
    return _squares(sizes) + float(suppressed) * float(int(sizes.sum()) + suppressed)


def discernibility_star(sizes: Int64s, outliers: Int64s | None = None) -> float:
    """DM*: every class costs its size squared, also those later suppressed (so it is monotone)."""
    return _squares(sizes) + (0.0 if outliers is None else _squares(outliers))


def average_class_size(rows: int, classes: int, suppressed: int = 0, balance: Balance = EVEN) -> float:
    """Records per class, where the suppressed records form one class.

    More classes are better here, so the two weights of the balance change places.

    >>> average_class_size(10, classes=4, suppressed=2)
    2.0
    """
    count = balance.suppressed * classes + balance.general * (suppressed > 0)
    return rows / (count or 1.0)


def _squares(sizes: Int64s) -> float:
    exact = np.asarray(sizes, dtype=np.int64)
    return float((exact * exact).sum())  # below 2**63 for tables of up to three billion records
