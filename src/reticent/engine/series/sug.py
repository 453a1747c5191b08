"""SUG: the sensitive attribute update graph of every record, and the risk it gives.

Layer i of a record's graph holds the values of the group it stood in the i-th time; a value weighs its share of the group, an
edge the probability of the update. A reader who knows every quasi-identifier and the update knowledge gives each value the share of path
weight that runs through it.

Guarantee: none; this is the measure that the gate holds releases to.
Not covered: readers who reason over several persons jointly.
Cost: O(releases * m^2) per person, native, by forward-backward: alpha_i(v) = w(v) * sum_u alpha_(i-1)(u) P(u, v), beta likewise,
    share = alpha * beta / Z. Equal to enumerating paths, in polynomial time.
Reference: F. Li, S. Zhou, "Challenging more updates", 2008, Definitions 8 to 11, equations (1) and (2).
Differences from the paper: no explicit pruning, since infeasible values get the share 0; a person who misses releases is linked by the
    probability over as many steps; beside the risk of the true value, the largest share of any candidate, which needs no secret to compute.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reticent import _core
from reticent.arrays import Floats, Int32s
from reticent.policy.updates import Updates

if TYPE_CHECKING:
    from reticent.engine.series.history import History


@dataclass(frozen=True, repr=False)
class Risk:
    """Per person.

    Attributes:
        worst: largest share of any candidate value in any version; a reader's best guess is never surer.
        own: largest share of a true value (the disclosure risk of Definition 8, over all versions).
        disclosed: versions left with one feasible value.
        versions: versions in all.
    """

    worst: Floats
    own: Floats
    disclosed: Int32s
    versions: Int32s


def risk_of(history: History, updates: Updates, heads: Int32s | None = None) -> Risk:
    """The risk of the persons with these last versions, or of everybody."""
    chosen = history.heads if heads is None else heads
    risks = _core.series.risks(
        np.ascontiguousarray(chosen),
        versions=history.versions,
        groups=history.groups,
        steps=updates.steps(history.longest_gap()),
    )
    return Risk(risks.worst, risks.own, risks.disclosed, risks.versions)
