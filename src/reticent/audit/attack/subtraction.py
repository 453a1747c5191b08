"""Subtraction: compare two publications; the values a group gained belong to those who joined it.

Guarantee: as in `reticent.verify.sequence`, which does the work: no candidate is struck out wrongly.
Not covered: groups with seats that nobody fills; joint reasoning beyond certainty.
Cost: linear in the rows per round.
Reference: O. Temuujin, J. Ahn, D. Im, IEEE Access 2019 (the algorithm attacked).
Differences from the paper: it does not consider this attacker.
"""

from __future__ import annotations

from reticent.audit.attack.evidence import Evidence
from reticent.audit.attack.intersection import from_candidates, publications
from reticent.audit.attack.outcome import Outcome
from reticent.verify.sequence import CandidateElimination

QUESTION = "Subtracts the values of a group before from those after: what came in belongs to who came in; then strikes out what is certain."


def subtraction(evidence: Evidence) -> Outcome | None:
    """Attack all publications of an evolving table together; includes the intersection."""
    attack = CandidateElimination()
    for publication in publications(evidence):
        attack.add(publication)
    return from_candidates("subtraction", QUESTION, list(attack.candidates().values()), evidence)
