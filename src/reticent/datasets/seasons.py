"""Seasons of illnesses over the months of a year."""

from __future__ import annotations

import numpy as np

MONTHS = 12

CURVES: dict[str, tuple[float, ...]] = {
    "flu": (2.9, 3.1, 1.8, 0.6, 0.2, 0.1, 0.05, 0.05, 0.1, 0.3, 0.9, 1.9),
    "cold": (1.5, 1.5, 1.3, 1.0, 0.8, 0.6, 0.5, 0.5, 0.7, 1.0, 1.2, 1.4),
    "warm": (0.6, 0.6, 0.6, 0.7, 0.9, 1.3, 2.0, 2.1, 1.3, 0.8, 0.6, 0.5),
}
"""Factor to the yearly mean, from January to December."""

EVEN = (1.0,) * MONTHS
"""The curve of illnesses without a season."""

_LENGTHS = np.array((31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31))


def day_shares(curve: tuple[float, ...]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the share of each of 365 days, by its month."""
    days = np.repeat(curve, _LENGTHS)
    return np.asarray(days / days.sum())
