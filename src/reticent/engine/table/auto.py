"""Auto: the methods of generalisation side by side within one budget; the release that loses least.

Guarantee: that of the method that wins, which the release names: every class satisfies the k, l and t of the policy, against a
reader who knows who is in the table and all their quasi-identifiers.

Not covered: as the method that wins. Which one wins depends on the data (minimality).

Cost: at most the time limit of the policy (60 seconds where it says nothing), shared by the methods, and the step under way when it
ends. Of a large table the method that promises most on some of the persons goes first and has the time it needs (`rehearsal`).

Reference: none; see `mondrian`, `local` and `optimal`.

Differences from the papers: ours. Mondrian is tried with the trees of the policy and, unless `sets: false`, without; local
recoding always, the optimal search where the lattice is small. `purpose: counts` compares by the error of count queries,
`purpose: model` by the area under the curve of a classifier that learns from the release and predicts held-out original records;
each method then also searches with the quasi-identifiers weighed by what they tell of the target.
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
        """Tries every method, or refuses when none meets the policy."""
        encoded = self.encode(table)
        aim = self._purpose(encoded, table)
        emphasis = () if aim is None or aim.emphasis is None else (aim.emphasis,)
        parts = [part for weights in (None, *emphasis) for part in methods(encoded, weights)]
        parts = rank_methods(encoded, parts) if aim is None else parts
        best, entries = select_method(encoded, parts, loss_scorer(encoded) if aim is None else aim.score)
        explain = {**best.outcome.explain, "tried": [entry.to_dict() for entry in entries]}
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
    """What is tried, the quick ones first: what they leave of their time goes to the others."""
    sets = encoded.policy.table.sets
    parts = [SearchMethod("mondrian", cut, sets=bool(sets), emphasis=emphasis)]
    if sets is None:
        parts.append(SearchMethod("mondrian", partial(cut, sets=True), sets=True, emphasis=emphasis))
    if encoded.people is not None:  # needs one run and always ends well: the others may run out of time
        parts.insert(0, replace(whole_persons(parts[-1].find, sets=parts[-1].sets), emphasis=emphasis))
    if encoded.lattice_size <= SMALL_LATTICE:
        parts.append(SearchMethod("optimal", optimum, emphasis=emphasis))
    return [*parts, SearchMethod("local", recode, emphasis=emphasis)]
