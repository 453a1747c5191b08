"""What a veiled release concedes to a reader who believes other than its prior: kappa a / (kappa a + 1 - a)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reticent.audit.attack.sights import Veiled

if TYPE_CHECKING:
    from reticent.arrays import Floats, Int64s
    from reticent.audit.attack.sights import Sights


def kappa_bound(weight: Floats | float, kappa: Floats | float) -> Floats:
    """The most that a stated weight becomes for a reader whose beliefs differ from the prior by this factor.

    >>> round(float(kappa_bound(0.1, 6)), 3)
    0.4
    """
    raised = np.asarray(kappa) * weight
    return np.asarray(raised / (raised + 1 - weight))


def kappas(seen: Veiled, belief: Floats, records: Int64s) -> Floats:
    """Per record the largest ratio of her belief to the prior's between offered candidates."""
    prior, offered = seen.prior(records), seen.copies(records) > 0
    ratio = np.divide(belief, prior, out=np.ones_like(belief), where=prior > 0)
    high = np.where(offered, ratio, 0).max(axis=1)
    return np.asarray(high / np.maximum(np.where(offered, ratio, np.inf).min(axis=1), 1e-300))


def conceded_to(seen: Sights, belief: Floats, records: Int64s) -> float | None:
    """The share of right guesses that the release concedes to her: what it quotes, or the mean of her bounds."""
    if not isinstance(seen, Veiled):
        return None
    if seen.quoted is not None:
        return seen.quoted
    guess = seen.posterior(belief, records).argmax(axis=1)
    weight = seen.stated(records)[np.arange(len(records)), guess]
    return float(kappa_bound(weight, kappas(seen, belief, records)).mean())
