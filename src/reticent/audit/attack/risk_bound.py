"""Risk bounds: the chance of a right guess that the claims of a release allow an attacker.

Under the veil the bound for a candidate of weight a is r a / (r a + 1 - a); r is the odds ratio of the attacker's belief
to the prior.
"""

from __future__ import annotations

import numpy as np

from reticent.arrays import Floats, Int64s
from reticent.audit.attack.evidence import Evidence
from reticent.audit.attack.observations import Observations, VeiledRecords
from reticent.verify.anatomy import claimed_posterior
from reticent.verify.published import Published
from reticent.verify.requirements import requirements


def claimed_bound(release: Published, largest: int = 0) -> float | None:
    """Return the chance of a right guess that the claims allow; None if they bound none."""
    posterior = claimed_posterior(release)
    if posterior is not None:
        return float(posterior)
    rules = [r for r in requirements(release.claims) if r.model == "l"]
    shares = [1 / r.numbers[0] for r in rules if r.kind == "frequency"]
    if shares:
        return float(min(shares))
    # l distinct values allow a high chance: the other l - 1 may occur once each in the largest group
    distinct = [float(r.numbers[-1]) for r in rules]
    return 1 - (max(distinct) - 1) / largest if distinct and largest >= max(distinct) else None


def common_bound(evidence: Evidence) -> float | None:
    """Return the highest posterior that the releases allow; None if one of them claims none."""
    bounds = [claimed_posterior(release) for release in evidence.releases]
    numbers = [float(bound) for bound in bounds if bound is not None]
    return max(numbers) if numbers and len(numbers) == len(bounds) else None


def odds_ratio_bound(weight: Floats | float, odds_ratio: Floats | float) -> Floats:
    """Return the highest posterior of a stated weight for an attacker with this odds ratio to the prior.

    >>> round(float(odds_ratio_bound(0.1, 6)), 3)
    0.4
    """
    raised = np.asarray(odds_ratio) * weight
    return np.asarray(raised / (raised + 1 - weight))


def odds_ratios(seen: VeiledRecords, belief: Floats, records: Int64s) -> Floats:
    """Return, per record, the largest odds ratio of the attacker's belief to the prior between two candidates."""
    prior, offered = seen.prior(records), seen.copies(records) > 0
    ratio = np.divide(belief, prior, out=np.ones_like(belief), where=prior > 0)
    high = np.where(offered, ratio, 0).max(axis=1)
    return np.asarray(high / np.maximum(np.where(offered, ratio, np.inf).min(axis=1), 1e-300))


def attacker_bound(seen: Observations, belief: Floats, records: Int64s) -> float | None:
    """Return the share of right guesses that the release allows: the stated share, or the mean of the bounds."""
    if not isinstance(seen, VeiledRecords):
        return None
    if seen.quoted_accuracy is not None:
        return seen.quoted_accuracy
    guess = seen.posterior(belief, records).argmax(axis=1)
    weight = seen.stated_shares(records)[np.arange(len(records)), guess]
    return float(odds_ratio_bound(weight, odds_ratios(seen, belief, records)).mean())
