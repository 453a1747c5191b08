"""m-Distinct*: first groups whose members can never take one another's values.

Guarantee: as m-Distinct, and the candidates of a person's first group have disjoint candidate update sets, so that at least m separate
    paths run through every release. Where all updates are equally likely and all sets equally large, the risk stays at 1/m.
Not covered: as m-Distinct. Where set sizes or probabilities differ, the paper's Lemma 4 does not hold; the gate bounds the risk.
Cost: as m-Distinct.
Reference: F. Li, S. Zhou, "Challenging more updates", 2008, section IV-B.
Differences from the paper: components of the update graph decide what is disjoint forever, which is stricter than pairwise disjoint sets.
"""

from __future__ import annotations

from reticent.arrays import Int32s
from reticent.engine.series.m_distinct import MDistinct
from reticent.policy.updates import Updates


class MDistinctStar(MDistinct):
    """m-Distinct with disjoint candidate update sets in first groups."""

    method = "m-distinct*"
    _first_group_needs = "components of the update graph"

    def _colors(self, updates: Updates) -> tuple[Int32s, bool]:
        return updates.components, False
