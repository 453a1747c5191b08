"""Information loss of a generalized release, by the measures of the literature; `metrics` combines them.

**Loss**: the share of the hierarchy's leaves that a published value covers, scaled to 0 (original) to 1 (suppressed).
**NCP**, equations (3) to (5) of the stream paper: a published value loses the share of the hierarchy's other leaves it
covers (3), or the share of the domain's range its interval spans (4). A record loses the mean over its
quasi-identifiers (5); a suppressed record loses everything.
**Entropy**, non-uniform: the bits needed to get from the published values back to the original ones.
**Classes**: discernibility and the average class size.

Cost: O(records) per attribute, for entropy plus one sort; O(classes) for the measures of classes.
Reference: V. Iyengar, "Transforming data to satisfy privacy constraints", KDD 2002 (generalized loss metric), in the
    form and with the geometric mean used by ARX (F. Prasser et al.). NCP: S. Kim, M. Sung, Y. Chung, "A framework to
    preserve the privacy of electronic health data streams", Journal of Biomedical Informatics 50, 2014, section 5.1.1;
    J. Xu et al., "Utility-based anonymization using local recoding", KDD 2006 (normalized certainty penalty);
    G. Loukides, J. Shao, "Capturing data usefulness and privacy protection in k-anonymisation", SAC 2007 (UM).
    Entropy: A. De Waal, L. Willenborg, "Information loss through global recoding and local suppression", Netherlands
    Official Statistics 14, 1999; A. Gionis, T. Tassa, "k-Anonymization with minimal loss of information", IEEE TKDE
    21(2), 2009. Classes: R. Bayardo, R. Agrawal, "Data privacy through optimal k-anonymization", ICDE 2005
    (discernibility); K. LeFevre, D. DeWitt, R. Ramakrishnan, "Mondrian multidimensional k-anonymity", ICDE 2006
    (average class size).
Differences from the papers: loss is scaled so that the original table scores 0; suppressed records score 1 in every
    attribute; leaves that do not occur in the data count; attributes are combined by the geometric mean of 1 + loss,
    minus 1. In NCP the interval of a numeric node spans the domain values it covers, so a single value loses 0 and the
    root 1, for any borders in the label (Xu et al. use |M_P|/|M| without the -1). In entropy, suppressed records keep
    their generalized value in the first term and add the bits that distinguish the generalized values of suppressed
    records, as in ARX; the result is a sum over records in bits. The average class size is not divided by k, and all
    suppressed records together count as one more class.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.arrays import Bools, Floats, Int32s, Int64s

_DIGITS = 1e10  # values are cut to ten decimals, so that the order of summation does not matter


@dataclass(frozen=True)
class Balance:
    """The weights of suppressed and of generalized values, from 0 to 1, in measures that count both: ARX's gs factor.

    >>> Balance.of(0.5), Balance.of(0.25).suppressed, Balance.of(1.0).general
    (Balance(general=1.0, suppressed=1.0), 0.5, 0.0)
    """

    general: float = 1.0
    suppressed: float = 1.0

    @classmethod
    def of(cls, factor: float) -> Balance:
        """Return the weights of a policy's factor: below 0.5, suppression weighs less than 1; above, generalization."""
        return cls(min(1.0, 2.0 - 2.0 * factor), min(1.0, 2.0 * factor))


EVEN = Balance()


def floor_decimals(value: float) -> float:
    """Round down to ten decimals."""
    return math.floor(value * _DIGITS) / _DIGITS


def attribute_loss(share: Floats, size: int, counts: Int64s, suppressed: Bools, balance: Balance = EVEN) -> float:
    """Return the loss of one attribute, 0 to 1.

    Args:
        share: per entry, leaves below its published value / leaves of the hierarchy.
        size: leaves of the hierarchy.
        counts: the number of records per entry.
        suppressed: which entries are suppressed.
        balance: the weights of suppression and generalization; a suppressed value loses at least its share.
    """
    rows = float(counts.sum())
    least = balance.general * rows / size
    if rows <= least:
        return 0.0
    if_suppressed = 1.0 if balance.suppressed == 1 else share + balance.suppressed * (1.0 - share)
    total = float((np.where(suppressed, if_suppressed, balance.general * share) * counts).sum())
    return max(0.0, floor_decimals((total - least) / (rows - least)))


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
    """UM: the mean loss of the cells of each class, averaged over classes; `cells` has one record per class.

    >>> usefulness([np.array([0.5, 0.0])])
    0.25
    """
    return float(np.mean(cells)) if cells and len(cells[0]) else 0.0


_DENSE_FACTOR = 4
"""Most keys per record for which counting is cheaper than sorting."""


def attribute_entropy(
    source: Int32s, node: Int64s, counts: Int64s, suppressed: Bools, balance: Balance = EVEN
) -> float:
    """Return the bits lost in one attribute over all records.

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
        _, nodes_of = np.unique(node[suppressed], return_inverse=True)
        sizes = np.bincount(nodes_of, weights=counts[suppressed])
        bits -= balance.suppressed * _bits(sizes, np.full(len(sizes), sizes.sum()))
    return floor_decimals(bits)


def _tally(key: Int64s, counts: Int64s) -> tuple[Int64s, NDArray[Any]]:
    """Return the sorted keys that occur and their counts, by counting if there are few keys, else by sorting."""
    if int(key.max(initial=0)) < _DENSE_FACTOR * len(key):
        sums = np.bincount(key, weights=counts)
        keys = np.flatnonzero(sums)
        return keys.astype(np.int64), sums[keys]
    distinct, inverse = np.unique(key, return_inverse=True)
    return distinct, np.bincount(inverse, weights=counts, minlength=len(distinct))


def _bits(part: NDArray[Any], whole: NDArray[Any]) -> float:
    real = part > 0
    return float((part[real] * np.log2(part[real] / whole[real])).sum())


def discernibility(sizes: Int64s, suppressed: int = 0) -> float:
    """DM: each published record costs the size of its class, each suppressed record the size of the table.

    >>> discernibility(np.array([3, 2]), suppressed=1)
    19.0
    """
    return _squares(sizes) + float(suppressed) * float(int(sizes.sum()) + suppressed)


def discernibility_star(sizes: Int64s, outliers: Int64s | None = None) -> float:
    """DM*: every class costs its size squared, also a suppressed class (so the measure is monotone)."""
    return _squares(sizes) + (0.0 if outliers is None else _squares(outliers))


def average_class_size(rows: int, classes: int, suppressed: int = 0, balance: Balance = EVEN) -> float:
    """Return the records per class; the suppressed records form one class.

    More classes are better here, so the two weights of the balance are swapped.

    >>> average_class_size(10, classes=4, suppressed=2)
    2.0
    """
    count = balance.suppressed * classes + balance.general * (suppressed > 0)
    return rows / (count or 1.0)


def _squares(sizes: Int64s) -> float:
    exact = np.asarray(sizes, dtype=np.int64)
    return float((exact * exact).sum())  # below 2**63 for tables of up to three billion records
