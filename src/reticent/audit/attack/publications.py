"""Several publications in groups, persons linked as well as a reader can, or as the ledger says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reticent.audit.anatomy import claimed_posterior
from reticent.audit.sequence import Publication, sequence
from reticent.release import Ledger

if TYPE_CHECKING:
    from reticent.audit.attack.evidence import Evidence


def publications(evidence: Evidence) -> list[Publication]:
    """The releases in two tables, in order; fewer than two give nothing to compare."""
    ours = [release for release in evidence.of_shape("anatomy") if {"qit", "st"} <= set(release.tables)]
    ledger, size = evidence.ledger, len(ours)
    if ledger is not None:  # of a store that has published on
        ledger = Ledger(ledger.entries[:size], ledger.persons[:size], ledger.groups[:size])
    return sequence(ours, evidence.policy, ledger) if size > 1 else []


def conceded_by_all(evidence: Evidence) -> float | None:
    """The posterior that every release concedes; None as soon as one of them claims none."""
    bounds = [claimed_posterior(release) for release in evidence.releases]
    numbers = [float(bound) for bound in bounds if bound is not None]
    return max(numbers) if numbers and len(numbers) == len(bounds) else None
