"""Subtraction: compare two publications; the values that a group gained belong to the persons who joined it.

Guarantee: as in `reticent.verify.sequence`: the attacker never excludes the true value.
Not covered: groups with empty slots; joint reasoning beyond certainty.
Cost: linear in the rows per round.
Reference: O. Temuujin, J. Ahn, D. Im, IEEE Access 2019 (the algorithm attacked).
Differences from the paper: it does not consider this attacker.
"""

from __future__ import annotations

from reticent.audit.attack.evidence import Evidence
from reticent.audit.attack.intersection import from_candidates, publications
from reticent.audit.attack.outcome import Outcome
from reticent.verify.sequence import CandidateElimination

QUESTION = (
    "Subtracts a group's earlier values from its later values: new values belong to new members. Then excludes what is "
    "certainly another person's value."
)


def subtraction(evidence: Evidence) -> Outcome | None:
    """Attack all publications of an evolving table together; includes the intersection attack."""
    attack = CandidateElimination()
    for publication in publications(evidence):
        attack.add(publication)
    return from_candidates("subtraction", QUESTION, list(attack.candidates().values()), evidence)
