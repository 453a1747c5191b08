"""Measures how much one column discloses about another, in bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from reticent.arrays import Int64s

# Share of a column's entropy that may remain unknown for it to count as disclosed.
_RESIDUAL_SHARE = 0.05
_DENSE_FACTOR = 64
"""Largest code, relative to the number of records, for which counting arrays are used instead of sorting."""
_SURE_SHARE, _MIN_RECORDS = 0.95, 20
"""Share of a value's records, and their smallest number, for which the value determines another column's value."""


def discloses(one: Int64s, other: Int64s) -> bool:
    """Whether one column (by codes) determines another nearly completely.

    >>> discloses(np.array([0, 1, 2, 2]), np.array([0, 1, 1, 1]))
    True
    >>> discloses(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]))
    False
    """
    whole = _bits(other)
    return whole > 0 and _bits(pair_codes(one, other)) - _bits(one) < _RESIDUAL_SHARE * whole


def discloses_partly(one: Int64s, other: Int64s) -> bool:
    """Whether a column determines another for all records, or nearly certainly for more than a few of them.

    For plain columns, which are not generalized.
    """
    width = int(other.max(initial=0)) + 1
    cells, counts = np.unique(one * width + other, return_counts=True)
    sure = counts >= _SURE_SHARE * np.bincount(one, minlength=int(one.max(initial=0)) + 1)[cells // width]
    rare = np.bincount(other, minlength=width)[cells % width] < len(other) / 2
    return discloses(one, other) or int(counts[sure & rare & (counts >= _MIN_RECORDS)].sum()) > (1 - _SURE_SHARE) * len(
        one
    )


def pair_codes(one: Int64s, other: Int64s) -> Int64s:
    """Return the codes of the combination of two columns."""
    return one * (int(other.max(initial=0)) + 1) + other


def compact_codes(codes: Int64s) -> tuple[Int64s, Int64s]:
    """Renumber codes without gaps; return the new numbers and the code of each; dense codes are not sorted."""
    if int(codes.max(initial=0)) > _DENSE_FACTOR * len(codes):
        distinct, place = np.unique(codes, return_inverse=True)
        return place.reshape(-1), distinct
    distinct = np.flatnonzero(np.bincount(codes))
    place = np.zeros(int(codes.max(initial=0)) + 1, dtype=np.int64)
    place[distinct] = np.arange(len(distinct))
    return place[codes], distinct


def _bits(codes: Int64s) -> float:
    return entropy_bits(np.bincount(compact_codes(codes)[0]))


def entropy_bits(counts: Any) -> float:
    """Return the entropy in bits of a distribution given by counts."""
    shares = counts / max(1.0, counts.sum())
    return float(-(shares * np.log2(shares)).sum())
