"""Homogeneity: find the person's group and guess its most frequent sensitive value.

Guarantee: exact; the release alone determines how often the attacker's guess is right.
Not covered: attackers who know more than the quasi-identifiers.
Cost: linear in the rows.
Reference: A. Machanavajjhala et al., "l-diversity: privacy beyond k-anonymity", ICDE 2006.
Differences from the paper: none.
"""

from __future__ import annotations

from reticent.audit.attack.evidence import Evidence
from reticent.audit.attack.grouped_records import iter_grouped_columns
from reticent.audit.attack.outcome import Outcome
from reticent.audit.attack.risk_bound import claimed_bound

QUESTION = "Knows a person's quasi-identifiers, finds the group and guesses its most frequent value."


def homogeneity(evidence: Evidence) -> Outcome | None:
    """Attack the latest release that shows sensitive values."""
    release = evidence.releases[-1]
    for column, seen in iter_grouped_columns(evidence):
        posterior = seen.top_shares()[seen.group]
        claim = claimed_bound(release, int(seen.offers.sizes().max()))
        return Outcome.from_posterior(
            "homogeneity",
            QUESTION,
            posterior,
            evidence.key,
            counted=release.shape == "generalized",
            claim=claim,
            bounded=claim is not None,
            figures={"column": column, "groups": seen.offers.size},
        )
    return None
