"""SUG: the sensitive attribute update graph of every record, its risk, and the limit that no release exceeds for any person.

Layer i of a record's graph has the values of its i-th group. The weight of a value is its share of the group, the weight of an edge
the probability of the update. An attacker who knows every quasi-identifier and the update knowledge gives each value its share
of the path weight.

Guarantee: no candidate value of any person, in any version so far, has a larger share than the limit, against an attacker who
    knows all releases, every quasi-identifier and the update knowledge, and attacks each person alone (equation (2) of the paper).
Not covered: attackers who reason over several persons jointly.
Cost: O(releases * m^2) per person, native, by forward-backward: alpha_i(v) = w(v) * sum_u alpha_(i-1)(u) P(u, v), beta likewise,
    share = alpha * beta / Z. Equal to enumerating paths, in polynomial time. One more pass if a record is withheld.
Reference: F. Li, S. Zhou, "Challenging more updates", 2008, Definitions 8 to 11, equations (1) and (2).
Differences from the paper: no explicit pruning, since infeasible values get the share 0; a person who misses releases is linked by the
    probability over as many steps; the largest share of any candidate is computed too, which needs no secret.
    The limit is ours: without it the risk of m-Distinct grows. Published values and public knowledge decide who is withheld, never
    the true value, so that withholding discloses nothing about the true value.
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
    """Return the risk of the persons with these last versions, or of all persons.

    `worst` is the largest share of any candidate value in any version: no guess of an attacker is surer. `true_value` is the share
    of a true value (the disclosure risk of Definition 8, over all versions). `disclosed` counts versions that show one value alone.
    """
    return _core.series.risks(
        np.ascontiguousarray(history.heads if heads is None else heads),
        versions=history.versions,
        groups=history.groups,
        steps=updates.steps(history.longest_gap()),
    )


TOLERANCE = 1e-9
"""Equal shares differ by less than this, by rounding of floating-point numbers."""


@dataclass(frozen=True, repr=False)
class People:
    """The records to publish: hashes of persons and quasi-identifiers, and sensitive codes."""

    hashes: UInt64s
    traits: UInt64s
    values: Int32s


def enforce_limit(
    history: History, updates: Updates, people: People, grouping: Grouping, limit: float
) -> tuple[Grouping, History, _core.series.Risks]:
    """Withhold every person above the limit; return the groups, the history with them, and the risk of the published persons.

    A counterfeit with the same value takes the place of a withheld record: the candidates of the others stay the same, so that
    one pass is enough.
    """
    after, risk, rows = _measure(history, updates, people, grouping)
    above = risk.worst > limit + TOLERANCE
    if above.any():
        withheld = np.zeros(len(people.hashes), dtype=bool)
        withheld[rows[above]] = True
        grouping = grouping.withhold(withheld, RISK_REASON)
        after, risk, rows = _measure(history, updates, people, grouping)
    return grouping, after, risk


def _measure(
    history: History, updates: Updates, people: People, grouping: Grouping
) -> tuple[History, _core.series.Risks, Int32s]:
    rows, group, value = grouping.published_records()
    after = history.extend(people.hashes[rows], people.traits[rows], group, value, (grouping.offsets, grouping.value))
    latest = np.arange(len(history.person), len(after.person), dtype=np.int32)  # in the order of the persons
    return after, risk_of(after, updates, latest), rows
