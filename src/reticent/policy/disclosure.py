"""How much one column tells of another, in bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from reticent.arrays import Int64s

# Of what there is to know: what may be left.
_RESIDUAL_SHARE = 0.05
_DENSE_FACTOR = 64
"""Room for each code that is not looked at."""
_SURE_SHARE, _MIN_RECORDS = 0.95, 20
"""Share of a value's records, and fewest of them, that make it a sign of another column's value."""


def discloses(one: Int64s, other: Int64s) -> bool:
    """Whether one column says nearly all of what there is to know of another, by codes.

    >>> tells(np.array([0, 1, 2, 2]), np.array([0, 1, 1, 1])), tells(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]))
    (True, False)
    """
    whole = _bits(other)
    return whole > 0 and _bits(pair_codes(one, other)) - _bits(one) < _RESIDUAL_SHARE * whole


def discloses_partly(one: Int64s, other: Int64s) -> bool:
    """Whether a column says another one as good as for certain, of all records or of more than a few: nothing generalises what is plain."""
    width = int(other.max(initial=0)) + 1
    cells, counts = np.unique(one * width + other, return_counts=True)
    sure = counts >= _SURE_SHARE * np.bincount(one, minlength=int(one.max(initial=0)) + 1)[cells // width]
    rare = np.bincount(other, minlength=width)[cells % width] < len(other) / 2
    return discloses(one, other) or int(counts[sure & rare & (counts >= _MIN_RECORDS)].sum()) > (1 - _SURE_SHARE) * len(
        one
    )


def pair_codes(one: Int64s, other: Int64s) -> Int64s:
    """Two columns as one, by codes."""
    return one * (int(other.max(initial=0)) + 1) + other


def compact_codes(codes: Int64s) -> tuple[Int64s, Int64s]:
    """Codes under numbers without a gap, and the code of each number; without sorting, where they are not too far apart."""
    if int(codes.max(initial=0)) > _DENSE_FACTOR * len(codes):
        different, place = np.unique(codes, return_inverse=True)
        return place.reshape(-1), different
    different = np.flatnonzero(np.bincount(codes))
    place = np.zeros(int(codes.max(initial=0)) + 1, dtype=np.int64)
    place[different] = np.arange(len(different))
    return place[codes], different


def _bits(codes: Int64s) -> float:
    return entropy_bits(np.bincount(compact_codes(codes)[0]))


def entropy_bits(counts: Any) -> float:
    """Bits that the counts of a column's labels tell of a record."""
    shares = counts / max(1.0, counts.sum())
    return float(-(shares * np.log2(shares)).sum())
