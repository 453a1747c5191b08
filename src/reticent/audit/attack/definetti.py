"""DeFinetti: the attacker learns from the release alone how values depend on the published fields.

Guarantee: under the veil the attacker's model has the maximum likelihood for its size. In groups the members count as
    independent while the attacker learns, and are fitted to the group's counts afterwards.
Not covered: models richer than a softmax over the published fields.
Cost: one regression over at most `RECORDS` records.
Reference: D. Kifer, "Attacks on privacy and deFinetti's theorem", SIGMOD 2009.
Differences from the paper: softmax instead of naive Bayes, and shares instead of sampled assignments; the gradient is
    that of expectation maximization.
"""

from __future__ import annotations

import numpy as np

from reticent.arrays import Floats, Int64s
from reticent.audit.attack.attacker_model import fit_model
from reticent.audit.attack.evidence import Evidence
from reticent.audit.attack.observations import Observations
from reticent.audit.attack.outcome import Outcome
from reticent.audit.attack.person_links import attack_target
from reticent.audit.attack.person_nodes import person_nodes
from reticent.audit.attack.risk_bound import attacker_bound
from reticent.policy import Policy
from reticent.verify.veil.true_values import true_value_codes

QUESTION = (
    "Has only the release: learns from all records which published fields go with which values, and then guesses each "
    "person's value."
)
RECORDS = 20_000


def definetti(evidence: Evidence) -> Outcome | None:
    """Attack the latest release; the original is used only to count right guesses."""
    target, policy = attack_target(evidence), evidence.policy
    if target is None or not (target[2].sizes > 0).any():
        return None
    seen, values, match = target
    chosen = np.sort(evidence.rng.permutation(len(seen))[:RECORDS])
    records = seen.limit_records(chosen, evidence.rng)
    belief = learn_beliefs(seen, records, policy, evidence.rng)
    posterior = seen.posterior(belief, records)
    persons = np.flatnonzero(match.has_record_in(records))
    after = match.mean(posterior, records, persons)
    true_values = true_value_codes(seen.values, values, policy, policy.sensitive[0])[persons]
    blind = float(seen.stated_shares(records).max(axis=1).mean())
    right = after.argmax(axis=1) == true_values
    return Outcome.from_posterior(
        "definetti",
        QUESTION,
        after.max(axis=1),
        evidence.key,
        right=float(right.sum()),
        counted=True,
        claim=attacker_bound(seen, belief, records),
        notes=(
            f"Right guesses: {float(right.mean()):.1%} of {len(persons):,}; by the stated shares alone {blind:.1%}.",
        ),
        figures={"plain": round(blind, 4), "ratio": round(float(right.mean()) / max(blind, 1e-9), 3)},
    )


def learn_beliefs(seen: Observations, records: Int64s, policy: Policy, rng: np.random.Generator) -> Floats:
    """Return the belief about each record before its candidates, learned from the release: records x values."""
    fields = person_nodes(seen.fields, seen.fields.column_names, policy, raw=True)[records]
    before = seen.prior(records)
    before = np.maximum(before, 1e-4 / before.shape[1])
    return fit_model(fields, seen.weight(records), before, rng).belief(fields, before)
