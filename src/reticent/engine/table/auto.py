"""Auto: run the generalization methods within one time limit and publish the outcome with the least loss.

Guarantee: that of the selected method, which the release names. Every class satisfies the k, l and t of the policy,
against an attacker who knows who is in the table and all their quasi-identifiers.

Not covered: as the selected method. The selection depends on the data (minimality attack).

Cost: at most the time limit of the policy (60 seconds by default), shared by the methods, plus the last step. For a
large table, a pilot run picks the method that goes first with the time it needs (`pilot_run`).

Reference: none; see `mondrian`, `local` and `optimal`.

Differences from the papers: none; this is our own method. Mondrian runs with the trees of the policy and, if the policy
has no `sets`, also without; local recoding always, the optimal search if the lattice is small. `purpose: counts`
compares by the error of count queries; `purpose: model` by the AUC of a classifier that learns from the release and
predicts held-out original records. Under `purpose: model` each method also searches with weights that measure how well
a quasi-identifier predicts the target.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pyarrow as pa

from reticent.engine.table.base import TablePublisher
from reticent.engine.table.encoded_table import EncodedTable
from reticent.engine.table.generalized import publish
from reticent.engine.table.local import recode
from reticent.engine.table.method_selection import SMALL_LATTICE, SearchMethod, loss_scorer, select_method
from reticent.engine.table.mondrian import cut, whole_persons
from reticent.engine.table.optimal import optimum
from reticent.engine.table.pilot_run import rank_methods
from reticent.engine.table.purpose import CountsPurpose, ModelPurpose
from reticent.release import Release


class Auto(TablePublisher):
    """The best of several methods for one table."""

    method = "auto"

    def release(self, table: pa.Table) -> Release:
        """Run every method, or refuse if none meets the policy."""
        encoded = self.encode(table)
        purpose = self._purpose(encoded, table)
        emphasis = () if purpose is None or purpose.emphasis is None else (purpose.emphasis,)
        choices = [method for weights in (None, *emphasis) for method in methods(encoded, weights)]
        choices = rank_methods(encoded, choices) if purpose is None else choices
        best, results = select_method(encoded, choices, loss_scorer(encoded) if purpose is None else purpose.score)
        explain = {**best.outcome.explain, "tried": [result.to_dict() for result in results]}
        release, self._source_rows = publish(
            encoded, table, replace(best.outcome, explain=explain), self.rng, best.metrics
        )
        return release

    def _purpose(self, encoded: EncodedTable, table: pa.Table) -> CountsPurpose | ModelPurpose | None:
        purpose = self.policy.table.purpose
        if purpose == "counts":
            return CountsPurpose(encoded, self.rng)
        return ModelPurpose(encoded, table, self.rng) if purpose == "model" else None


def methods(encoded: EncodedTable, emphasis: tuple[float, ...] | None = None) -> list[SearchMethod]:
    """Return the methods to run, fast ones first: the time they leave goes to the others."""
    sets = encoded.policy.table.sets
    choices = [SearchMethod("mondrian", cut, sets=bool(sets), emphasis=emphasis)]
    if sets is None:
        choices.append(SearchMethod("mondrian", partial(cut, sets=True), sets=True, emphasis=emphasis))
    if encoded.people is not None:  # needs a single run; the others may run out of time
        choices.insert(0, replace(whole_persons(choices[-1].find, sets=choices[-1].sets), emphasis=emphasis))
    if encoded.lattice_size <= SMALL_LATTICE:
        choices.append(SearchMethod("optimal", optimum, emphasis=emphasis))
    return [*choices, SearchMethod("local", recode, emphasis=emphasis)]
