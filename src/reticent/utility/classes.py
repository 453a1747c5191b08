"""Measures of equivalence classes: discernibility and the average class size.

Cost: O(classes).
Reference: R. Bayardo, R. Agrawal, "Data privacy through optimal k-anonymization", ICDE 2005 (discernibility);
    K. LeFevre, D. DeWitt, R. Ramakrishnan, "Mondrian multidimensional k-anonymity", ICDE 2006 (average class size).
Differences from the paper: the average class size is not divided by k, and all suppressed records together count as
    one more class.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.arrays import Int64s
from reticent.utility.loss import EVEN, Balance

_ROOM = 1 << 62
"""Rows that one packed number can tell apart."""


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


def packed(columns: Sequence[tuple[NDArray[Any], int]]) -> Int64s:
    """One number for every row, given the codes of its columns and their widths: the same for rows that are alike, in their order.

    >>> packed([(np.array([0, 1, 0]), 2), (np.array([2, 0, 2]), 3)]).tolist()
    [2, 3, 2]
    """
    key, room = np.zeros(len(columns[0][0]) if columns else 0, dtype=np.int64), 1
    for codes, width in columns:
        if room * width >= _ROOM:
            distinct, key = np.unique(key, return_inverse=True)
            room = len(distinct)
        key, room = key * width + codes, room * width
    return key
