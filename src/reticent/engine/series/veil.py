"""The veil over a series: one veil per person, whose slots change by the kernel from release to release.

Guarantee: given all releases, each slot of a person is the true one with probability exactly 1 / l, against an attacker who knows
    the published prior, the published kernel and any number of other persons' records (docs/veil.md).
Not covered: attackers who know more than prior or kernel, by that factor; what presence or absence discloses; see
    `reticent.engine.veil.release`.
Cost: linear in the records of a release; 2 l + 12 bytes and a hash per person.
Reference: docs/veil.md.
Differences from the paper: ours; m-distinct is the paper's method.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from reticent.engine.rng import Rng
from reticent.engine.series.base import SeriesPublisher
from reticent.engine.snapshot import pack
from reticent.engine.veil.batch_veiler import BatchVeiler
from reticent.engine.veil.parameters import VeilPublisher
from reticent.engine.veil.release import guarantee
from reticent.engine.veil.transition_check import RememberedValues, check_transitions
from reticent.policy import Policy
from reticent.release import Guarantee, Release


class Veil(VeilPublisher, SeriesPublisher):
    """Publishes the same persons again; releases that a person missed count as events."""

    def __init__(self, policy: Policy, *, rng: Rng) -> None:
        super().__init__(policy, rng=rng)
        self._veiler = BatchVeiler(policy, rng, self.kind)
        self.releases = 0

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of every release."""
        return guarantee(self._veiler.parameters)

    def _publish(self, table: pa.Table) -> Release:
        self.releases += 1
        params, people = self._veiler.parameters, self._veiler.people
        before = None if params.kernel is None else RememberedValues.of(people.to_bytes(), params.l)
        veiled = self._veiler.veil(table, now=self.releases)
        if before is not None and veiled.true_values is not None:
            check_transitions(params, before.transitions(veiled.veil_persons, veiled.true_values, now=self.releases))
        release = self._veiler.release(veiled, number=self.releases)
        self._members, self._shown_events = self._veiler.members(veiled, number=self.releases), veiled.shown_events()
        return release

    def snapshot(self) -> bytes:
        """Return the memory of every person, the pending records, and the keys."""
        state, tables = self._state()
        blobs = {"people": self._veiler.people.to_bytes()}
        return pack(self.policy, self.rng, state | {"releases": self.releases}, tables, blobs)

    def _resume(self, saved: dict[str, Any], _: dict[str, pa.Table], blobs: dict[str, bytes]) -> None:
        self.releases = saved["releases"]
        self._veiler.people.load(blobs["people"])
