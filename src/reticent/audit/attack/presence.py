"""Presence: what it says of a person's value that she is in the release, or is not.

Guarantee: exact for persons none of the published records can be; half of them teach the reader, the other half are attacked.
Not covered: persons who are absent from the input as well.
Cost: linear in the persons.
Reference: M. E. Nergiz, M. Atzori, C. Clifton, "Hiding the presence of individuals from shared databases", SIGMOD 2007.
Differences from the paper: the question is what absence says of the value, not whether presence can be hidden.
"""

from __future__ import annotations

import numpy as np

from reticent.audit.attack.evidence import Evidence
from reticent.audit.attack.outcome import Outcome
from reticent.audit.attack.person_links import attack_target, split_persons
from reticent.verify.groups import codes

QUESTION = "Notices who is missing from the release though they were in the data, and knows why persons are held back or left out."


def presence(evidence: Evidence) -> Outcome | None:
    """Attack persons of the original whom no published record can be."""
    aim = attack_target(evidence)
    if aim is None or evidence.original is None or not aim[2].allowed.nnz:
        return None
    _, values, match = aim
    value, names = codes(values)
    absent, known = match.sizes == 0, split_persons(evidence.original, evidence.policy, evidence.key)
    target, teacher = np.flatnonzero(absent & ~known), np.flatnonzero(absent & known)
    if not len(target) or not len(teacher):
        return None
    # Two persons' weight of everybody: few absent ones say little.
    everybody = np.bincount(value, minlength=len(names)) / len(value)
    belief = (np.bincount(value[teacher], minlength=len(names)) + 2 * everybody) / (len(teacher) + 2)
    guess = int(belief.argmax())
    right = float((value[target] == guess).sum())
    usual = float(everybody.max())
    note = (
        f"{int(absent.sum()):,} of {len(absent):,} persons are in no published record; the best guess about them is right in "
        f"{right / len(target):.1%}, about anybody in {usual:.1%}."
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
