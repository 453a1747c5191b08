"""How much one column tells of another, in bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from reticent.arrays import Int64s

# Of what there is to know: what may be left.
_LEFT = 0.05


def tells(one: Int64s, other: Int64s) -> bool:
    """Whether one column says nearly all of what there is to know of another, by codes.

    >>> tells(np.array([0, 1, 2, 2]), np.array([0, 1, 1, 1])), tells(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]))
    (True, False)
    """
    whole = _bits(other)
    return whole > 0 and _bits(pairs(one, other)) - _bits(one) < _LEFT * whole


def pairs(one: Int64s, other: Int64s) -> Int64s:
    """Two columns as one, by codes."""
    return one * (int(other.max(initial=0)) + 1) + other


def _bits(codes: Int64s) -> float:
    return bits_of(np.unique(codes, return_counts=True)[1])


def bits_of(counts: Any) -> float:
    """Bits that the counts of a column's labels tell of a record."""
    shares = counts / max(1.0, counts.sum())
    return float(-(shares * np.log2(shares)).sum())
