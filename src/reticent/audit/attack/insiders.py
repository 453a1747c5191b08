"""Insiders: attackers who know the values of many other persons in the release.

Guarantee: in groups exact for persons whom the fields single out: the attacker removes known values from the group.
    Under the veil no value can be removed; the attacker learns how often each candidate is true among known persons.
Not covered: knowledge of relatives (see `household` in docs/veil.md).
Cost: linear in the records, for each share of the others known.
Reference: D. Martin et al., "Worst-case background knowledge for privacy-preserving data publishing", ICDE 2007.
Differences from the paper: the known persons are drawn at random, so the figure is a mean and not a worst case.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from reticent.arrays import Bools, Floats, Int64s
from reticent.audit.attack.evidence import Evidence
from reticent.audit.attack.grouped_records import GroupedRecords
from reticent.audit.attack.observations import Observations, VeiledRecords
from reticent.audit.attack.outcome import Outcome
from reticent.audit.attack.person_links import attack_target
from reticent.audit.attack.risk_bound import attacker_bound
from reticent.verify.groups import normalize_rows
from reticent.verify.veil.true_values import true_value_codes

QUESTION = (
    "Knows the values of half of the other persons, removes them from the groups, and learns from them how often each "
    "candidate is the true value."
)
SHARES = (0.0, 0.1, 0.5, 0.9)
RECORDS = 20_000
NINE = 0.9
_PULL = 50.0  # weight of the prior, in persons


def insiders(evidence: Evidence) -> Outcome | None:
    """Attack the persons whom the published fields single out, with 0, 10, 50 and 90% of the others known."""
    target, policy = attack_target(evidence), evidence.policy
    if target is None or not (target[2].only_record >= 0).any():
        return None
    seen, values, match = target
    persons = np.flatnonzero(match.only_record >= 0)
    true_values = np.full(len(seen), -2, dtype=np.int64)  # -2: the person behind the record is not certain
    true_values[match.only_record[persons]] = true_value_codes(seen.values, values, policy, policy.sensitive[0])[
        persons
    ]
    by_share: dict[float, _Guesses] = {}
    for share in SHARES:
        known = (evidence.rng.random(len(seen)) < share) & (true_values >= 0)
        targets = evidence.rng.permutation(np.flatnonzero((true_values > -2) & ~known))[:RECORDS]
        if len(targets):
            by_share[share] = _attack(seen, true_values, known, targets, evidence.rng)
    return _outcome(by_share, evidence) if SHARES[2] in by_share else None


@dataclass(frozen=True, repr=False)
class _Guesses:
    """How sure the attacker is of each target, whether the guess is right, and the risk bound."""

    top: Floats
    right: Bools
    bound: float | None


def _outcome(by_share: dict[float, _Guesses], evidence: Evidence) -> Outcome:
    half = by_share[SHARES[2]]
    listed = ", ".join(f"{reading.right.mean():.1%} ({share:.0%})" for share, reading in by_share.items())
    return Outcome.from_posterior(
        "insiders",
        QUESTION,
        half.top,
        evidence.key,
        right=float(half.right.sum()),
        counted=True,
        claim=half.bound,
        notes=(f"Right guesses, by the share of the others known: {listed}.",),
        figures={"known": {f"{share:.0%}": _figures(reading) for share, reading in by_share.items()}},
    )


def _figures(reading: _Guesses) -> dict[str, float]:
    return {
        "right": round(float(reading.right.mean()), 4),
        "above_nine_tenths": round(float((reading.top > NINE).mean()), 4),
        "persons": len(reading.top),
    }


def _attack(
    seen: Observations, true_values: Int64s, known: Bools, targets: Int64s, rng: np.random.Generator
) -> _Guesses:
    """Attack the targets, whose values the attacker does not know."""
    bound = None
    if isinstance(seen, VeiledRecords):
        belief = normalize_rows(seen.prior(targets) * _tilt(seen, true_values, known))
        posterior, bound = seen.posterior(belief, targets), attacker_bound(seen, belief, targets)
    else:
        posterior = _subtract_known_values(seen, true_values, known, targets)
    noise = rng.random(posterior.shape) * 1e-9  # equal candidates: guess any of them, not the first
    return _Guesses(posterior.max(axis=1), (posterior + noise).argmax(axis=1) == true_values[targets], bound)


def _subtract_known_values(seen: GroupedRecords, true_values: Int64s, known: Bools, targets: Int64s) -> Floats:
    """Return the value shares of the target's group without the known persons."""
    ones = np.ones(int(known.sum()))
    taken = csr_array((ones, (seen.group[known], true_values[known])), (seen.offers.size, len(seen.values)))
    at = seen.group[targets]
    return normalize_rows(np.maximum(seen.counts(at) - taken[at].toarray(), 0))


def _tilt(seen: VeiledRecords, true_values: Int64s, known: Bools) -> Floats:
    """Return, per value, how much more often it is true than its weight states, among known persons."""
    records = np.flatnonzero(known)
    stated = np.zeros(len(seen.values))
    for part in np.array_split(records, max(1, len(records) // 5000)):
        stated += seen.stated_shares(part).sum(axis=0)
    actual = np.bincount(true_values[records], minlength=len(seen.values))
    return np.asarray((actual + _PULL) / (stated + _PULL))
