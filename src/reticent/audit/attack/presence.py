"""Presence: what a person's absence from the release says about their value.

Guarantee: exact for persons who match no published record; the attacker learns from one half and attacks the other half.
Not covered: persons who are not in the input either.
Cost: linear in the persons.
Reference: M. E. Nergiz, M. Atzori, C. Clifton, "Hiding the presence of individuals from shared databases", SIGMOD 2007.
Differences from the paper: it asks what absence discloses about the value, not whether presence can be hidden.
"""

from __future__ import annotations

import numpy as np

from reticent.audit.attack.evidence import Evidence
from reticent.audit.attack.outcome import Outcome
from reticent.audit.attack.person_links import attack_target, split_persons
from reticent.verify.groups import codes

QUESTION = (
    "Notices who was in the data but is missing from the release, and knows why persons are withheld or suppressed."
)


def presence(evidence: Evidence) -> Outcome | None:
    """Attack the persons of the original who match no published record."""
    aim = attack_target(evidence)
    if aim is None or evidence.original is None or not aim[2].allowed.nnz:
        return None
    _, values, match = aim
    value, names = codes(values)
    absent, known = match.sizes == 0, split_persons(evidence.original, evidence.policy, evidence.key)
    target, teacher = np.flatnonzero(absent & ~known), np.flatnonzero(absent & known)
    if not len(target) or not len(teacher):
        return None
    # The overall distribution has the weight of two persons: a few absent persons say little.
    everybody = np.bincount(value, minlength=len(names)) / len(value)
    belief = (np.bincount(value[teacher], minlength=len(names)) + 2 * everybody) / (len(teacher) + 2)
    guess = int(belief.argmax())
    right = float((value[target] == guess).sum())
    usual = float(everybody.max())
    note = (
        f"{int(absent.sum()):,} of {len(absent):,} persons match no published record. The best guess about them is right "
        f"in {right / len(target):.1%} of cases, about any person in {usual:.1%}."
    )
    return Outcome.from_posterior(
        "presence",
        QUESTION,
        np.full(len(target), float(belief[guess])),
        evidence.key,
        right=right,
        counted=True,
        notes=(note,),
        figures={"absent": int(absent.sum()), "anybody": round(usual, 4)},
    )
