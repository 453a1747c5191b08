"""Insiders: readers who know the values of many other persons in the release.

Guarantee: in groups exact for whom the fields single out: what is known is taken out of the group. Under the veil there is nothing to take out;
    she learns from those she knows how often each candidate is the true one, and believes that.
Not covered: knowledge of relatives (see `unit` in docs/veil.md).
Cost: linear in the records, for each share of the others known.
Reference: D. Martin et al., "Worst-case background knowledge for privacy-preserving data publishing", ICDE 2007.
Differences from the paper: the persons known are drawn at random, so that the figure is a mean and not a worst case.
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

QUESTION = "Knows the values of half of the other persons, takes them out of the groups, and learns from them what is true how often."
SHARES = (0.0, 0.1, 0.5, 0.9)
RECORDS = 20_000
NINE = 0.9
_PULL = 50.0  # persons whose word the prior is worth


def insiders(evidence: Evidence) -> Outcome | None:
    """Attack whom the published fields single out, with 0, 10, 50 and 90 % of the others known."""
    aim, policy = attack_target(evidence), evidence.policy
    if aim is None or not (aim[2].only_record >= 0).any():
        return None
    seen, values, match = aim
    persons = np.flatnonzero(match.only_record >= 0)
    truth = np.full(len(seen), -2, dtype=np.int64)  # -2: whose record it is cannot be told
    truth[match.only_record[persons]] = true_value_codes(seen.values, values, policy, policy.sensitive[0])[persons]
    by_share: dict[float, _Guesses] = {}
    for share in SHARES:
        known = (evidence.rng.random(len(seen)) < share) & (truth >= 0)
        targets = evidence.rng.permutation(np.flatnonzero((truth > -2) & ~known))[:RECORDS]
        if len(targets):
            by_share[share] = _attack(seen, truth, known, targets, evidence.rng)
    return _outcome(by_share, evidence) if SHARES[2] in by_share else None


@dataclass(frozen=True, repr=False)
class _Guesses:
    """How sure she is of each target, whether she is right, and what the release concedes to her."""

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
        notes=(f"Right, by the share of the others known: {listed}.",),
        figures={"known": {f"{share:.0%}": _figures(reading) for share, reading in by_share.items()}},
    )


def _figures(reading: _Guesses) -> dict[str, float]:
    return {
        "right": round(float(reading.right.mean()), 4),
        "above_nine_tenths": round(float((reading.top > NINE).mean()), 4),
        "persons": len(reading.top),
    }


def _attack(seen: Observations, truth: Int64s, known: Bools, targets: Int64s, rng: np.random.Generator) -> _Guesses:
    """She reads persons whom she does not know herself."""
    concession = None
    if isinstance(seen, VeiledRecords):
        belief = normalize_rows(seen.prior(targets) * _tilt(seen, truth, known))
        posterior, concession = seen.posterior(belief, targets), attacker_bound(seen, belief, targets)
    else:
        posterior = _subtract_known_values(seen, truth, known, targets)
    noise = rng.random(posterior.shape) * 1e-9  # equal candidates: guess any of them, not the first
    return _Guesses(posterior.max(axis=1), (posterior + noise).argmax(axis=1) == truth[targets], concession)


def _subtract_known_values(seen: GroupedRecords, truth: Int64s, known: Bools, targets: Int64s) -> Floats:
    """What is left of the target's group when all who are known are gone."""
    ones = np.ones(int(known.sum()))
    taken = csr_array((ones, (seen.group[known], truth[known])), (seen.offers.size, len(seen.values)))
    at = seen.group[targets]
    return normalize_rows(np.maximum(seen.counts(at) - taken[at].toarray(), 0))


def _tilt(seen: VeiledRecords, truth: Int64s, known: Bools) -> Floats:
    """Per value how much more often it is true, among the known who are offered it, than its weight says."""
    records = np.flatnonzero(known)
    stated = np.zeros(len(seen.values))
    for part in np.array_split(records, max(1, len(records) // 5000)):
        stated += seen.stated_shares(part).sum(axis=0)
    actual = np.bincount(truth[records], minlength=len(seen.values))
    return np.asarray((actual + _PULL) / (stated + _PULL))
