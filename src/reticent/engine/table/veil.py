"""The veil over one table: each sensitive value among l candidates, quasi-identifiers at their published level.

With `privacy: {k: 5}` they climb further until k persons share every published combination (`reticent.engine.veil.crowds`).

Guarantee: a reader who knows the published prior and any number of other persons' records gives each candidate exactly its
    stated weight, copies / l (docs/veil.md, with the tests that show it).
Not covered: readers better informed than the prior, by the factor they are; see `reticent.engine.veil.release`.
Cost: linear; a few tens of nanoseconds per candidate in the native core.
Reference: docs/veil.md.
Differences from the paper: ours.
"""

from __future__ import annotations

import pyarrow as pa

from reticent.engine.rng import Rng
from reticent.engine.table.base import TablePublisher
from reticent.engine.veil.crowds import form_classes
from reticent.engine.veil.events import events_of
from reticent.engine.veil.house import VeilPublisher
from reticent.engine.veil.pace import Transitions, check_transitions
from reticent.engine.veil.release import totals_asked
from reticent.engine.veil.veiling import Veiling
from reticent.policy import Policy
from reticent.release import Release


class Veil(VeilPublisher, TablePublisher):
    """The veil of one table."""

    def __init__(self, policy: Policy, *, rng: Rng) -> None:
        super().__init__(policy, rng=rng)
        self._veiling = Veiling(policy, rng, self.kind)

    def release(self, table: pa.Table) -> Release:
        """Veils every record; those of one person are events, in the order of the column that the policy names."""
        events = events_of(table, self.policy)
        veiled, places = self._veiling.veil(table.take(pa.array(events.facts))), events.facts
        if self._veiling.parameters.steps is not None and veiled.values is not None:
            check_transitions(self._veiling.parameters, Transitions.within(veiled.heads, veiled.seen.strata, veiled.values))
        if len(events.records) > len(events.facts):
            published, _ = self._veiling.parameters.levels.publish(table.take(pa.array(events.records)))
            veiled, places = veiled.again(published, events.fact_of), events.records
        if self.policy.privacy.k is not None:
            crowd = form_classes(self.policy, self._veiling.parameters.levels, table.take(pa.array(places)), veiled.seen.strata)
            veiled, places = veiled.again(crowd.published, crowd.records), places[crowd.records]
        self._places = places[self._veiling.row_order(len(veiled), number=1)]
        # Totals over the same persons would add up, and nobody keeps accounts of epsilon: they stand here alone.
        alone = totals_asked(self.policy) is not None
        self._shown_events = None if self.policy.person is None else veiled.shown_events()._replace(alone=alone)
        return self._veiling.release(veiled, number=1, left_out=table.num_rows - len(veiled))
