"""Several publications in groups, persons linked as well as a reader can, or as the ledger says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reticent.audit.sequence import Publication, linked

if TYPE_CHECKING:
    from collections.abc import Hashable

    from reticent.audit.attack.evidence import Evidence
    from reticent.audit.published import Published


def publications(evidence: Evidence) -> list[Publication]:
    """The releases in two tables, in order; fewer than two give nothing to compare."""
    ours = [release for release in evidence.of_shape("anatomy") if {"qit", "st"} <= set(release.tables)]
    if len(ours) < 2:
        return []
    ledger = evidence.ledger
    if ledger is None or len(ledger) < len(ours):
        return [_by_quasi(release, evidence) for release in ours]
    publications = []
    for release, persons, groups in zip(ours, ledger.persons, ledger.groups, strict=False):
        who: dict[Hashable, str] = dict(zip(persons.tolist(), (str(group) for group in groups.tolist()), strict=True))
        publications.append(Publication(who, _by_quasi(release, evidence).counts))
    return publications


def _by_quasi(release: Published, evidence: Evidence) -> Publication:
    qit = release.tables["qit"]
    return Publication.read(qit, release.tables["st"], linked(qit, evidence.policy))


def conceded_by_all(evidence: Evidence) -> float | None:
    """The posterior that every release concedes; None as soon as one of them claims none."""
    bounds = [release.claims.get("posterior") for release in evidence.releases]
    numbers = [float(bound) for bound in bounds if isinstance(bound, int | float)]
    return max(numbers) if numbers and len(numbers) == len(bounds) else None
