"""Re-identification risk as regulators define it: prosecutor, journalist and marketer.

Prosecutor: the attacker knows that the person is in the data; the risk of a record is 1 / class size. Journalist: the
attacker does not know this; the class size in the population counts. Marketer: the attacker wants to re-identify as
many people as possible; the mean over all records counts.

Guarantee: exact for the prosecutor attacker, and for the others if a population table is given. With only the size of
    the population, class sizes are scaled by the sampling fraction and the result is an estimate.
Not covered: what the attacker learns from a record (see the attacks).
Cost: linear in the classes.
Reference: K. El Emam, "Guide to the de-identification of personal health information", 2013; threshold: EMA policy 0070.
Differences from the paper: "above" is strict: 1/11 = 0.0909 is above 0.09, so 0.09 needs classes of 12 records.
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
    """The risk population_sizes one kind of attacker.

    Attributes:
        highest: the highest risk of any record.
        mean: the mean risk over all records; for a marketer, the share of correct re-identifications.
        above: share of records with a risk above the threshold.
        estimated: whether the class sizes in the population were estimated from the population's size.
    """

    highest: float
    mean: float
    above: float
    estimated: bool = False


def prosecutor(sizes: Int64s, threshold: float = THRESHOLD) -> Risk:
    """Return the risk if the attacker knows that the person is in the data; `sizes` has the records per class.

    >>> risk = prosecutor(np.array([1, 3]))
    >>> risk.highest, risk.mean
    (1.0, 0.5)
    """
    return _risk(sizes, sizes, threshold, estimated=False)


def journalist(sizes: Int64s, population: Int64s | int, threshold: float = THRESHOLD) -> Risk:
    """Return the risk by class size in the population; `population` has the sizes per class, or the total size."""
    if isinstance(population, int):
        scale = max(1.0, population / max(1, int(sizes.sum())))
        return _risk(sizes, sizes * scale, threshold, estimated=True)
    return _risk(sizes, np.maximum(population, sizes), threshold, estimated=False)


def needed_class(threshold: float = THRESHOLD) -> int:
    """Return the smallest class size whose risk is not above the threshold.

    >>> needed_class(0.09)
    12
    """
    return math.ceil(1 / threshold - 1e-12)


def _risk(sizes: Int64s, population_sizes: NDArray[Any], threshold: float, *, estimated: bool) -> Risk:
    rows = int(sizes.sum())
    if not rows:
        return Risk(0.0, 0.0, 0.0, estimated)
    risk = np.minimum(1.0, 1.0 / np.maximum(population_sizes, 1e-300))
    above = float(sizes[risk > threshold].sum() / rows)
    return Risk(float(risk.max()), float((risk * sizes).sum() / rows), above, estimated)
