"""Linked tables: join all tables, keep the persons who match, and guess their most frequent value.

Guarantee: exact for the release: all persons with the target's joined view are candidates for the attacker.
Not covered: attacker knowledge other than quasi-identifiers and numbers of rows.
Cost: one sort of the rows of each table.
Reference: docs/linked.md.
"""

from __future__ import annotations

import numpy as np

from reticent.audit.attack.evidence import Evidence
from reticent.audit.attack.outcome import Outcome
from reticent.verify.linked.verifier import SHAPE, joined_view, layout_of, value_shares
from reticent.verify.requirements import requirements

QUESTION = (
    "Knows all quasi-identifiers of all records of a person and, if the policy says so, the number of records. "
    "Joins all tables of the release and guesses the most frequent value of the persons who match."
)


def linked_tables(evidence: Evidence) -> Outcome | None:
    """Attack the latest release if it consists of linked tables."""
    release, policy = evidence.releases[-1], evidence.policy
    if release.shape != SHAPE or policy.tables is None:
        return None
    persons, kinds = joined_view(release.tables, policy)
    best = np.zeros(int(kinds.max(initial=-1)) + 1)
    for table, layout in layout_of(policy).items():
        for name in (name for name in layout.columns if name in policy.sensitive):
            views, holders, sizes = value_shares(release.tables[table], name, persons, kinds)
            np.maximum.at(best, views, holders / sizes)
    bounds = [float(1 / rule.numbers[-1]) for rule in requirements(release.claims) if rule.model == "l"]
    return Outcome.from_posterior(
        "linked-tables",
        QUESTION,
        best[kinds],
        evidence.key,
        claim=min(bounds, default=None),
        bounded=bool(bounds),
        figures={"views": len(best), "smallest_view": int(np.bincount(kinds).min(initial=len(kinds)))},
    )
