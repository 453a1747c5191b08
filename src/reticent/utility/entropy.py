"""Non-uniform entropy: the bits needed to get from the published values back to the original ones.

Cost: one sort of the records per attribute.
Reference: A. De Waal, L. Willenborg, "Information loss through global recoding and local suppression", Netherlands
    Official Statistics 14, 1999; A. Gionis, T. Tassa, "k-Anonymization with minimal loss of information", IEEE TKDE
    21(2), 2009.
Differences from the paper: suppressed records keep their generalised value in the first term and add the bits that tell
    the generalised values of the suppressed apart, as ARX computes it; the result is a sum over records in bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.arrays import Bools, Int32s, Int64s
from reticent.utility.loss import EVEN, Balance, floored

_FEW = 4
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
    return floored(bits)


def _tally(key: Int64s, counts: Int64s) -> tuple[Int64s, NDArray[Any]]:
    """The keys that occur, in order, and how often; counted where they are few, sorted where they are not."""
    if int(key.max(initial=0)) < _FEW * len(key):
        sums = np.bincount(key, weights=counts)
        keys = np.flatnonzero(sums)
        return keys.astype(np.int64), sums[keys]
    different, inverse = np.unique(key, return_inverse=True)
    return different, np.bincount(inverse, weights=counts, minlength=len(different))


def _bits(part: NDArray[Any], whole: NDArray[Any]) -> float:
    real = part > 0
    return float((part[real] * np.log2(part[real] / whole[real])).sum())
