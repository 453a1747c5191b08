"""Intersection: a person is in a group of every publication; the true value is in all of these groups.

Guarantee: the attacker never excludes the true value while a person's value stays the same.
Not covered: persons whose value changed between publications.
Cost: linear in the rows of all publications.
Reference: X. Xiao, Y. Tao, "m-invariance", SIGMOD 2007.
Differences from the paper: none.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from reticent.audit.attack.evidence import Evidence
from reticent.audit.attack.outcome import Outcome
from reticent.audit.attack.risk_bound import common_bound
from reticent.release import Ledger
from reticent.verify.sequence import Publication, link_publications

QUESTION = "Follows a person through all publications and keeps the values that occur in all of the person's groups."


def intersection(evidence: Evidence) -> Outcome | None:
    """Attack all publications of an evolving table together."""
    possible: dict[Hashable, set[str | None]] = {}
    for publication in publications(evidence):
        for who, group in publication.group_of.items():
            offered = set(publication.counts.get(group, ()))
            possible[who] = possible[who] & offered if who in possible else offered
    return from_candidates("intersection", QUESTION, [len(left) for left in possible.values()], evidence)


def publications(evidence: Evidence) -> list[Publication]:
    """Return the releases with two tables, in order; an empty list if there are fewer than two."""
    ours = [release for release in evidence.of_shape("anatomy") if {"qit", "st"} <= set(release.tables)]
    ledger, size = evidence.ledger, len(ours)
    if ledger is not None:  # the store may have later publications
        ledger = Ledger(ledger.entries[:size], ledger.persons[:size], ledger.groups[:size])
    return link_publications(ours, evidence.policy, ledger) if size > 1 else []


def from_candidates(attack: str, question: str, candidates: Sequence[int], evidence: Evidence) -> Outcome | None:
    """Build the outcome if all remaining candidates of a person are equally likely."""
    left = np.array([count for count in candidates if count > 0], dtype=np.int64)
    if not len(left):
        return None
    posterior = 1.0 / left
    least = evidence.policy.l_of("evolving")
    claim = common_bound(evidence)
    return Outcome.from_posterior(
        attack,
        question,
        posterior,
        evidence.key,
        claim=claim,
        bounded=claim is not None,
        notes=(f"{int((left < least).sum()):,} of {len(left):,} persons are left with fewer than {least} candidates.",),
        figures={"one_candidate": float((left == 1).mean()), "below_l": float((left < least).mean())},
    )
