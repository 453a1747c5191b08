"""Local recoding: every record is generalized only as far as its own class needs.

Guarantee: every class of records with equal published quasi-identifiers satisfies the k, l and t of the policy, against
the same attacker as in `optimal`.

Not covered: as `optimal`. Also, classes overlap: an exact record and a record published as `*` may both fit a person.
An attacker who knows the method can conclude that the finer class was formed without the coarser record.

If the lattice is small, the optimal search runs as well: no release of `optimal` within the same limits loses less.

Cost: one grouping of the remaining records per lattice node, cheapest nodes first; the remaining records shrink fast.
In a lattice of more than 16,384 nodes, only some of the cheapest nodes and of the neighbors of one path to the top are
visited.

Reference: J. Xu et al., "Utility-based anonymization using local recoding", KDD 2006; the iterative scheme of
F. Prasser et al. (ARX).

Differences from the papers: one pass starts with all records in the coarsest class and lets groups leave for finer
classes while both satisfy the policy. If a group is too skewed for t or l (one sensitive column), only as many of its
records leave as satisfy the policy. The classes are then cut further inside their nodes, as Mondrian cuts trees, and
published at the lowest levels that their records share.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from reticent import _core
from reticent.arrays import Bools, Int64s, distinct
from reticent.encode.dictionary import pack_codes
from reticent.engine.table.base import TablePublisher
from reticent.engine.table.encoded_table import EncodedTable, attributes_at_levels
from reticent.engine.table.generalized import Outcome, RowParts, publish
from reticent.engine.table.levels import common_levels
from reticent.engine.table.method_selection import SMALL_LATTICE, SearchMethod, SearchResult, loss_scorer, select_method
from reticent.engine.table.mondrian import cut, tree_axis
from reticent.engine.table.optimal import optimum
from reticent.engine.table.people import search_classes
from reticent.engine.table.pilot_run import sample_persons
from reticent.errors import GuaranteeError
from reticent.release import Release


class Local(TablePublisher):
    """Local recoding of one table."""

    method = "local"

    def release(self, table: pa.Table) -> Release:
        """Recode the table, or refuse if the records without a class exceed the suppression limit."""
        encoded = self.encode(table)
        best = recode_table(encoded)
        release, self._source_rows = publish(encoded, table, best.outcome, self.rng, best.metrics)
        return release


def recode_table(encoded: EncodedTable) -> SearchResult:
    """Return the better result of local recoding and, if the lattice is small, the optimal search."""
    methods = [SearchMethod("local", recode)]
    encoded = replace(encoded, linked_k=estimate_linked_k(encoded))
    if encoded.lattice_size <= SMALL_LATTICE:
        methods.append(SearchMethod("optimal", optimum, only_better=True))
    best, _ = select_method(encoded, methods, loss_scorer(encoded))
    return replace(best, outcome=replace(best.outcome, method=Local.method))


def estimate_linked_k(encoded: EncodedTable) -> int:
    """Estimate by a short Mondrian run how many persons a linked class needs; 0 if no records are linked."""
    if encoded.people is None:
        return 0
    try:
        explain = search_classes((sample_persons(encoded) or encoded).with_time_share(4), cut).explain
    except GuaranteeError:
        return 0
    return 0 if explain["stopped"] else int(explain["apart"])


def recode(encoded: EncodedTable) -> Outcome:
    """Choose the levels of every row; rows without a class are suppressed."""
    settings = encoded.policy.table
    recoding = encoded.collapsed.localize(
        encoded.model,
        loss=settings.loss,
        weights=encoded.weights,
        limit=encoded.limit,
        values=encoded.values,
        times=encoded.times,
        cancellation=encoded.cancellation,
    )
    suppressed = recoding.suppressed
    if encoded.times is not None:
        encoded = encoded.split_rows(recoding.rows, recoding.times)
    levels = refine_classes(encoded, recoding.levels, suppressed)
    lost = int(suppressed.sum() if encoded.times is None else encoded.times[suppressed].sum(dtype=np.int64))
    if lost > encoded.limit or lost == encoded.rows:
        raise GuaranteeError(
            f"Local recoding leaves {lost:,} of {encoded.rows:,} records without a class that meets the policy, and the "
            f"policy allows {encoded.limit:,} to be suppressed; nothing was published.",
            hint="Allow more suppression, lower k or l, or raise t.",
        )
    explain = {
        "loss": settings.loss,
        "nodes": {"lattice": encoded.lattice_size, "used": _count_nodes(encoded, levels)},
        "stopped": encoded.cancellation.stopped,
    }
    row_parts = None if encoded.times is None else RowParts(recoding.rows, recoding.times)
    return Outcome("local", attributes_at_levels(encoded, levels), suppressed, explain, row_parts)


def refine_classes(encoded: EncodedTable, levels: list[Int64s], suppressed: Bools) -> list[Int64s]:
    """Cut classes further where the policy allows, and return the lowest levels that the records of each class share.

    Classes with equal labels merge; the merged class satisfies the policy if both do (persons are checked later).
    """
    columns = [(suppressed.astype(np.int64), 2)]
    for name, level in zip(encoded.quasi, levels, strict=True):
        hierarchy, codes = encoded.hierarchies[name], encoded.codes(name)
        starts = np.cumsum([0, *(len(names) for names in hierarchy.labels)], dtype=np.int64)
        columns.append((starts[level] + np.stack(hierarchy.node_ids)[level, codes], int(starts[-1])))
    classes = np.unique(pack_codes(columns), return_inverse=True)[1].astype(np.int64)
    axes = [
        tree_axis(encoded.hierarchies[name], encoded.codes(name), weight)
        for name, weight in zip(encoded.quasi, encoded.weights, strict=True)
    ]
    model = encoded.closed_model or encoded.model
    parts = _core.table.mondrian(
        axes,
        encoded.sensitive,
        model,
        relaxed=False,
        times=encoded.times,
        start=classes,
        linked_k=encoded.linked_k,
        cancellation=encoded.cancellation,
    )
    return [common_levels(encoded.hierarchies[name], encoded.codes(name), parts.classes) for name in encoded.quasi]


def _count_nodes(encoded: EncodedTable, levels: list[Int64s]) -> int:
    """Count the lattice nodes that records were recoded to."""
    heights = [encoded.hierarchies[name].height for name in encoded.quasi]
    return len(distinct(pack_codes([(level, height + 1) for level, height in zip(levels, heights, strict=True)])))
