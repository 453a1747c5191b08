"""SUG: the sensitive attribute update graph of every record, the risk it gives, and the limit that no release exceeds for anybody.

Layer i of a record's graph holds the values of the group it stood in the i-th time; a value weighs its share of the group, an
edge the probability of the update. A reader who knows every quasi-identifier and the update knowledge gives each value the share of path
weight that runs through it.

Guarantee: no candidate value of any person, in any version so far, has a larger share than the limit, against a reader who
    knows all releases, every quasi-identifier and the update knowledge, and takes each person by itself (equation (2) of the paper).
Not covered: readers who reason over several persons jointly.
Cost: O(releases * m^2) per person, native, by forward-backward: alpha_i(v) = w(v) * sum_u alpha_(i-1)(u) P(u, v), beta likewise,
    share = alpha * beta / Z. Equal to enumerating paths, in polynomial time. One pass more when somebody is held back.
Reference: F. Li, S. Zhou, "Challenging more updates", 2008, Definitions 8 to 11, equations (1) and (2).
Differences from the paper: no explicit pruning, since infeasible values get the share 0; a person who misses releases is linked by the
    probability over as many steps; beside the risk of the true value, the largest share of any candidate, which needs no secret to compute.
    The limit is ours: the risk of m-Distinct grows without one. Who is held back depends on published values and public
    knowledge alone, never on the true value, so that being held back tells nothing about it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reticent import _core
from reticent.arrays import Int32s, UInt64s
from reticent.engine.series.grouping import RISK_REASON, Grouping
from reticent.engine.series.history import History
from reticent.policy.updates import Updates


def risk_of(history: History, updates: Updates, heads: Int32s | None = None) -> _core.series.Risks:
    """The risk of the persons with these last versions, or of everybody: per person how many versions there are and how many show one value alone.

    `worst` is the largest share of any candidate value in any version: a reader's best guess is never surer. `own` is that of a true
    value (the disclosure risk of Definition 8, over all versions).
    """
    return _core.series.risks(
        np.ascontiguousarray(history.heads if heads is None else heads),
        versions=history.versions,
        groups=history.groups,
        steps=updates.steps(history.longest_gap()),
    )


TOLERANCE = 1e-9
"""Shares are floating-point numbers; equal ones differ by less than this."""


@dataclass(frozen=True, repr=False)
class People:
    """The records to publish: who they are and what they show."""

    hashes: UInt64s
    traits: UInt64s
    values: Int32s


def enforce_limit(
    history: History, updates: Updates, people: People, grouping: Grouping, limit: float
) -> tuple[Grouping, History, _core.series.Risks]:
    """The groups with everybody above the limit held back, the history with them, and the risk of those published.

    A record held back leaves a counterfeit with its value in its place: the candidates of the others stay as they were,
    so that one pass is enough.
    """
    after, risk, rows = _measure(history, updates, people, grouping)
    above = risk.worst > limit + TOLERANCE
    if above.any():
        held = np.zeros(len(people.hashes), dtype=bool)
        held[rows[above]] = True
        grouping = grouping.withhold(held, RISK_REASON)
        after, risk, rows = _measure(history, updates, people, grouping)
    return grouping, after, risk


def _measure(
    history: History, updates: Updates, people: People, grouping: Grouping
) -> tuple[History, _core.series.Risks, Int32s]:
    rows, group, value = grouping.published_records()
    after = history.extend(people.hashes[rows], people.traits[rows], group, value, (grouping.offsets, grouping.value))
    latest = np.arange(len(history.person), len(after.person), dtype=np.int32)  # of these persons, in their order
    return after, risk_of(after, updates, latest), rows
