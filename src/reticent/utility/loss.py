"""Loss: the share of the hierarchy's leaves each published value covers, scaled to 0 (as it was) to 1 (all suppressed).

Cost: O(records) per attribute.
Reference: V. Iyengar, "Transforming data to satisfy privacy constraints", KDD 2002 (generalised loss metric), in the
    form and with the geometric mean used by ARX (F. Prasser et al.).
Differences from the paper: scaled so that the original table scores 0; suppressed records score 1 in every attribute;
    leaves that do not occur in the data count; attributes are combined by the geometric mean of 1 + loss, minus 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reticent.arrays import Bools, Floats, Int64s

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


def floored(value: float) -> float:
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
    return max(0.0, floored((spent - least) / (rows - least)))


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
