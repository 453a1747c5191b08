"""Local recoding: every record is generalised only as far as its own class needs.

Guarantee: as `optimal`: every class of records with equal published quasi-identifiers satisfies the k, l and t of the
policy.

Not covered: as `optimal`. Besides, classes overlap: a record published as it is and one published as `*` may both fit a
person; a reader who knows the method knows that the finer class was not formed with that person's record in it.

No release of `optimal` that is found within the same limits loses less: where the lattice is small it is searched besides.

Cost: one grouping of the records not yet recoded per node of the lattice, cheapest nodes first; the records not yet
recoded shrink fast. Lattices of more than 16,384 nodes are represented by some of their cheapest nodes and of the neighbours of one
path to the top.

Reference: J. Xu et al., "Utility-based anonymization using local recoding", KDD 2006; the iterative scheme of
F. Prasser et al. (ARX).

Differences from the papers: one pass that starts with all records in the coarsest class and lets groups leave for finer
ones while both stay satisfied; a group that is too skewed for t or for l (one sensitive column) leaves in part, as many of its
records as satisfy it. The classes are then cut further inside their nodes, as Mondrian cuts trees, and published at the lowest
levels that their records share.
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
        """Recodes, or refuses when what is left over exceeds the suppression limit."""
        encoded = self.encode(table)
        best = recode_table(encoded)
        release, self._source_rows = publish(encoded, table, best.outcome, self.rng, best.metrics)
        return release


def recode_table(encoded: EncodedTable) -> SearchResult:
    """The classes of a table and what they lose; those of `optimal` where they lose less."""
    parts = [SearchMethod("local", recode)]
    encoded = replace(encoded, linked_k=estimate_linked_k(encoded))
    if encoded.lattice_size <= SMALL_LATTICE:
        parts.append(SearchMethod("optimal", optimum, only_better=True))
    best, _ = select_method(encoded, parts, loss_scorer(encoded))
    return replace(best, outcome=replace(best.outcome, method=Local.method))


def estimate_linked_k(encoded: EncodedTable) -> int:
    """Persons that classes have to hold for their links, as Mondrian finds it in a fraction of the time; 0 where nothing links."""
    if encoded.people is None:
        return 0
    try:
        explain = search_classes((sample_persons(encoded) or encoded).with_time_share(4), cut).explain
    except GuaranteeError:
        return 0
    return 0 if explain["stopped"] else int(explain["apart"])


def recode(encoded: EncodedTable) -> Outcome:
    """Levels of every row; the rows that no class could take are suppressed."""
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
    gone = recoding.suppressed
    if encoded.times is not None:
        encoded = encoded.split_rows(recoding.rows, recoding.times)
    levels = refine_classes(encoded, recoding.levels, gone)
    lost = int(gone.sum() if encoded.times is None else encoded.times[gone].sum(dtype=np.int64))
    if lost > encoded.limit or lost == encoded.rows:
        raise GuaranteeError(
            f"Local recoding leaves {lost:,} of {encoded.rows:,} records without a class that meets the policy, and it allows "
            f"{encoded.limit:,} to be suppressed; nothing was published.",
            hint="Allow more suppression, lower k or l, or raise t.",
        )
    explain = {
        "loss": settings.loss,
        "nodes": {"lattice": encoded.lattice_size, "used": _count_nodes(encoded, levels)},
        "stopped": encoded.cancellation.stopped,
    }
    pieces = None if encoded.times is None else RowParts(recoding.rows, recoding.times)
    return Outcome("local", attributes_at_levels(encoded, levels), gone, explain, pieces)


def refine_classes(encoded: EncodedTable, levels: list[Int64s], suppressed: Bools) -> list[Int64s]:
    """The classes cut further where they can be, each at the lowest levels that its records share.

    Classes that become alike join, and what each of two classes satisfies, both together do (persons are looked at afterwards).
    """
    columns = [(suppressed.astype(np.int64), 2)]
    for name, level in zip(encoded.quasi, levels, strict=True):
        ladder, codes = encoded.hierarchies[name], encoded.codes(name)
        starts = np.cumsum([0, *(len(names) for names in ladder.labels)], dtype=np.int64)
        columns.append((starts[level] + np.stack(ladder.node_ids)[level, codes], int(starts[-1])))
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
    """How many different nodes the records were recoded to."""
    heights = [encoded.hierarchies[name].height for name in encoded.quasi]
    return len(distinct(pack_codes([(level, height + 1) for level, height in zip(levels, heights, strict=True)])))
