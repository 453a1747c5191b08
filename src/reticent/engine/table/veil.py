"""The veil over one table: each sensitive value among l candidates, quasi-identifiers at their published level.

With `privacy: {k: 5}` quasi-identifiers climb further until k persons share every published combination
(`reticent.engine.veil.equivalence_classes`).

Guarantee: for an attacker who knows the published prior and any number of other persons' records, each candidate has
    exactly its stated probability, copies / l (docs/veil.md, with the tests that check it).
Not covered: an attacker whose prior is better than the published one gains at most that advantage; see
    `reticent.engine.veil.release`.
Cost: linear; a few tens of nanoseconds per candidate in the native core.
Reference: docs/veil.md.
Differences from the paper: none; this is our own method.
"""

from __future__ import annotations

import pyarrow as pa

from reticent.engine.rng import Rng
from reticent.engine.table.base import TablePublisher
from reticent.engine.veil.batch_veiler import BatchVeiler
from reticent.engine.veil.equivalence_classes import form_classes
from reticent.engine.veil.events import events_of
from reticent.engine.veil.parameters import VeilPublisher
from reticent.engine.veil.release import counts_epsilon
from reticent.engine.veil.transition_check import Transitions, check_transitions
from reticent.policy import Policy
from reticent.release import Release


class Veil(VeilPublisher, TablePublisher):
    """The veil of one table."""

    def __init__(self, policy: Policy, *, rng: Rng) -> None:
        super().__init__(policy, rng=rng)
        self._veiler = BatchVeiler(policy, rng, self.kind)

    def release(self, table: pa.Table) -> Release:
        """Veil every record; the records of a person are events in the order of the policy's event column."""
        events = events_of(table, self.policy)
        veiled, rows = self._veiler.veil(table.take(pa.array(events.facts))), events.facts
        if self._veiler.parameters.kernel is not None and veiled.true_values is not None:
            check_transitions(
                self._veiler.parameters,
                Transitions.from_records(veiled.veil_persons, veiled.events.strata, veiled.true_values),
            )
        if len(events.records) > len(events.facts):
            published, _ = self._veiler.parameters.levels.publish(table.take(pa.array(events.records)))
            veiled, rows = veiled.repeat(published, events.fact_of), events.records
        if self.policy.privacy.k is not None:
            classes = form_classes(
                self.policy, self._veiler.parameters.levels, table.take(pa.array(rows)), veiled.events.strata
            )
            veiled, rows = veiled.repeat(classes.published, classes.records), rows[classes.records]
        self._source_rows = rows[self._veiler.row_order(len(veiled), number=1)]
        # The epsilon of noisy counts adds up over releases of the same persons, and nothing tracks it: allow one release.
        alone = counts_epsilon(self.policy) is not None
        self._shown_events = None if self.policy.person is None else veiled.shown_events()._replace(exclusive=alone)
        return self._veiler.release(veiled, number=1, suppressed=table.num_rows - len(veiled))
