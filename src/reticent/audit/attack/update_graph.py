"""SUG: the attacker knows how illnesses develop, so some candidates cannot become any candidate of the next release.

Guarantee: the attacker's posterior is equation (2) of the paper, exactly, by forward and backward sums
    (`reticent.verify.series`).
Not covered: joint reasoning over several persons.
Cost: persons x releases x m^2.
Reference: F. Li, S. Zhou, "Challenging more updates: towards anonymous re-publication of fully dynamic datasets", 2008.
Differences from the paper: the largest share of any candidate counts, since the attacker does not know the true one.
"""

from __future__ import annotations

import numpy as np

from reticent.audit.attack.evidence import Evidence
from reticent.audit.attack.outcome import Outcome
from reticent.audit.attack.risk_bound import common_bound
from reticent.verify.series import SHAPE, largest_shares, link_releases

QUESTION = "Knows how values develop and in which group each person was; weighs every path through the releases."


def update_graph(evidence: Evidence) -> Outcome | None:
    """Attack a series of releases; the ledger states each person's groups."""
    series, ledger, policy = evidence.of_shape(SHAPE), evidence.ledger, evidence.policy
    if len(series) < 2 or ledger is None or len(ledger) < len(series):
        return None
    marginals = largest_shares(*link_releases(series, policy, ledger))
    posterior = np.array([marginals[who] for who in sorted(marginals)])
    claim = common_bound(evidence)
    limit = policy.series.limit
    return Outcome.from_posterior(
        "update-graph",
        QUESTION,
        posterior,
        evidence.key,
        claim=claim if claim is not None else limit,
        bounded=True,
        notes=(f"The policy's limit for any single person is {limit:.3g}.",),
    )
