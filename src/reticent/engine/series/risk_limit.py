"""The limit on risk: no release leaves whose measured risk exceeds the policy's limit for anybody.

Guarantee: no candidate value of any person, in any version so far, has a larger share than the limit, against a reader who
    knows all releases, every quasi-identifier and the update knowledge, and takes each person by itself (equation (2) of the paper).
Not covered: readers who reason over several persons jointly.
Cost: one forward-backward pass per person of the release, and one more when somebody is held back.
Reference: ours; the measure is that of F. Li, S. Zhou, 2008.
Differences from the paper: m-Distinct has no limit, and its risk grows without one. Who is held back depends on published values and public
    knowledge alone, never on the true value, so that being held back tells nothing about it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reticent.arrays import Int32s, UInt64s
from reticent.engine.series.grouping import RISKY, Grouping
from reticent.engine.series.sug import Risk, risk_of
from reticent.policy.updates import Updates

if TYPE_CHECKING:
    from reticent.engine.series.history import History

TOLERANCE = 1e-9
"""Shares are floating-point numbers; equal ones differ by less than this."""


@dataclass(frozen=True, repr=False)
class People:
    """The records to publish: who they are and what they show."""

    hashes: UInt64s
    traits: UInt64s
    values: Int32s


def within_limit(
    history: History, updates: Updates, people: People, grouping: Grouping, limit: float
) -> tuple[Grouping, History, Risk]:
    """The groups with everybody above the limit held back, the history with them, and the risk of those published.

    A record held back leaves a counterfeit with its value in its place: the candidates of the others stay as they were,
    so that one pass is enough.
    """
    after, risk, rows = _measure(history, updates, people, grouping)
    above = risk.worst > limit + TOLERANCE
    if above.any():
        held = np.zeros(len(people.hashes), dtype=bool)
        held[rows[above]] = True
        grouping = grouping.without(held, RISKY)
        after, risk, rows = _measure(history, updates, people, grouping)
    return grouping, after, risk


def _measure(history: History, updates: Updates, people: People, grouping: Grouping) -> tuple[History, Risk, Int32s]:
    rows, group, value = grouping.published()
    after = history.extend(people.hashes[rows], people.traits[rows], group, value, (grouping.offsets, grouping.value))
    latest = np.arange(len(history.person), len(after.person), dtype=np.int32)  # of these persons, in their order
    return after, risk_of(after, updates, latest), rows
