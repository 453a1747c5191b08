"""Homogeneity: find the person's group, guess its most frequent sensitive value.

Guarantee: exact; the release alone says how often this guess is right.
Not covered: the attacker knows nothing but the quasi-identifiers.
Cost: linear in the rows.
Reference: A. Machanavajjhala et al., "l-diversity: privacy beyond k-anonymity", ICDE 2006.
Differences from the paper: none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reticent.audit.anatomy import claimed_posterior
from reticent.audit.attack.grouped import views
from reticent.audit.attack.outcome import Outcome
from reticent.audit.requirements import requirements

if TYPE_CHECKING:
    from reticent.audit.attack.evidence import Evidence
    from reticent.audit.published import Published

QUESTION = "Knows a person's quasi-identifiers, finds the group and guesses the value most frequent in it."


def homogeneity(evidence: Evidence) -> Outcome | None:
    """Attack the latest release that shows sensitive values."""
    release = evidence.releases[-1]
    for column, seen in views(evidence):
        posterior = seen.top()[seen.group]
        claim = conceded(release, int(seen.offers.sizes().max()))
        return Outcome.from_posterior(
            "homogeneity",
            QUESTION,
            posterior,
            evidence.key,
            counted=release.shape == "generalised",
            claim=claim,
            bounded=claim is not None,
            figures={"column": column, "groups": seen.offers.size},
        )
    return None


def conceded(release: Published, largest: int = 0) -> float | None:
    """The chance of a right guess that the claims concede: a posterior, a share, or what l values in a group leave."""
    posterior = claimed_posterior(release)
    if posterior is not None:
        return float(posterior)
    rules = [r for r in requirements(release.claims) if r.model == "l"]
    shares = [1 / r.numbers[0] for r in rules if r.kind == "frequency"]
    if shares:
        return float(min(shares))
    # l distinct values concede much: the other l - 1 may occur once each in the largest group
    distinct = [float(r.numbers[-1]) for r in rules]
    return 1 - (max(distinct) - 1) / largest if distinct and largest >= max(distinct) else None
