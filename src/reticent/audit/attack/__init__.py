"""Attacks: what an attacker can learn from the releases, tried in practice. One attack per file."""

from __future__ import annotations

from collections.abc import Callable

from reticent.audit.attack.averaging import averaging
from reticent.audit.attack.definetti import definetti
from reticent.audit.attack.evidence import Evidence
from reticent.audit.attack.homogeneity import homogeneity
from reticent.audit.attack.informed_attacker import informed_attacker
from reticent.audit.attack.insiders import insiders
from reticent.audit.attack.intersection import intersection
from reticent.audit.attack.joint import joint
from reticent.audit.attack.linkage import linkage
from reticent.audit.attack.linked_tables import linked_tables
from reticent.audit.attack.minimality import minimality
from reticent.audit.attack.outbreak import outbreak
from reticent.audit.attack.outcome import Outcome
from reticent.audit.attack.presence import presence
from reticent.audit.attack.similarity import similarity
from reticent.audit.attack.skewness import skewness
from reticent.audit.attack.subtraction import subtraction
from reticent.audit.attack.update_graph import update_graph

Attack = Callable[[Evidence], Outcome | None]

_ALL_ATTACKS: tuple[Attack, ...] = (
    *(linkage, homogeneity, skewness, similarity, minimality, intersection, subtraction, update_graph, averaging),
    *(informed_attacker, definetti, insiders, outbreak, joint, presence, linked_tables),
)
ATTACKS = {attack.__name__.replace("_", "-"): attack for attack in _ALL_ATTACKS}
"""Every attack by name; each returns None if it does not apply."""

__all__ = ["ATTACKS", "Attack", "Evidence", "Outcome"]
