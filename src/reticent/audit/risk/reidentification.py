"""Re-identification risk as regulators ask for it: prosecutor, journalist and marketer.

Prosecutor: the attacker knows the person is in the data; a record's risk is one over its class. Journalist: he does not
know; the class in the population counts. Marketer: he wants as many as possible; the mean over all records counts.

Guarantee: exact for the prosecutor, and for the others where a population table is given; with only the size of the
    population the classes are scaled by the sampling fraction and the result is an estimate.
Not covered: what a found record tells (see the attacks).
Cost: linear in the classes.
Reference: K. El Emam, "Guide to the de-identification of personal health information", 2013; threshold: EMA policy 0070.
Differences from the paper: "above" is meant strictly: 1/11 = .0909 is above .09, so .09 needs classes of 12.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.arrays import Int64s

THRESHOLD = 0.09


@dataclass(frozen=True)
class Risk:
    """One adversary's view.

    Attributes:
        highest: the largest risk of any record.
        mean: the mean risk over the records: the share a marketer gets right.
        above: share of records with a risk above the threshold.
        estimated: whether population classes were estimated from its size.
    """

    highest: float
    mean: float
    above: float
    estimated: bool = False


def prosecutor(sizes: Int64s, threshold: float = THRESHOLD) -> Risk:
    """Risk of records when the attacker knows they are in the data; `sizes` are records per class.

    >>> risk = prosecutor(np.array([1, 3]))
    >>> risk.highest, risk.mean
    (1.0, 0.5)
    """
    return _risk(sizes, sizes, threshold, estimated=False)


def journalist(sizes: Int64s, population: Int64s | int, threshold: float = THRESHOLD) -> Risk:
    """Risk of records by their class in the population: its sizes per class, or the population's size alone."""
    if isinstance(population, int):
        scale = max(1.0, population / max(1, int(sizes.sum())))
        return _risk(sizes, sizes * scale, threshold, estimated=True)
    return _risk(sizes, np.maximum(population, sizes), threshold, estimated=False)


def needed_class(threshold: float = THRESHOLD) -> int:
    """The smallest class whose risk is not above the threshold.

    >>> needed_class(0.09)
    12
    """
    return math.ceil(1 / threshold - 1e-12)


def _risk(sizes: Int64s, against: NDArray[Any], threshold: float, *, estimated: bool) -> Risk:
    rows = int(sizes.sum())
    if not rows:
        return Risk(0.0, 0.0, 0.0, estimated)
    risk = np.minimum(1.0, 1.0 / np.maximum(against, 1e-300))
    above = float(sizes[risk > threshold].sum() / rows)
    return Risk(float(risk.max()), float((risk * sizes).sum() / rows), above, estimated)
