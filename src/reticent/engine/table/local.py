"""Local recoding: every record is generalised only as far as its own class needs.

Guarantee: as `optimal`: every class of records with equal published quasi-identifiers satisfies the k, l and t of the
policy.

Not covered: as `optimal`. Besides, classes overlap: a record published as it is and one published as `*` may both fit a
person; a reader who knows the method knows that the finer class was not formed with that person's record in it.

Cost: one grouping of the records not yet recoded per node of the lattice, cheapest nodes first; the records not yet
recoded shrink fast. Lattices of more than 16,384 nodes are represented by their cheapest nodes and the neighbours of one
path to the top.

Reference: J. Xu et al., "Utility-based anonymization using local recoding", KDD 2006; the iterative scheme of
F. Prasser et al. (ARX).

Differences from the papers: one pass that starts with all records in the coarsest class and lets groups leave for finer
ones while both stay satisfied; under t-closeness (equal distance, one sensitive column) a group that is too skewed leaves
in part, as many of its records as can be close to the whole table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reticent.engine.table.base import TablePublisher
from reticent.engine.table.encoded_table import EncodedTable, by_levels
from reticent.engine.table.generalised import Outcome, publish
from reticent.engine.table.people import settled
from reticent.errors import GuaranteeError

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from reticent.release import Release


class Local(TablePublisher):
    """Local recoding of one table."""

    method = "local"

    def release(self, table: pa.Table) -> Release:
        """Recodes, or refuses when what is left over exceeds the suppression limit."""
        encoded = EncodedTable.from_table(self.policy, table)
        release, self._places = publish(
            encoded, table, settled(encoded, lambda asked: recode(asked, self.method)), self.rng
        )
        return release


def recode(encoded: EncodedTable, method: str) -> Outcome:
    """Levels of every row; the rows that no class could take are suppressed."""
    settings = encoded.policy.table
    recoding = encoded.collapsed.localize(
        encoded.model, loss=settings.loss, weights=encoded.weights, limit=encoded.limit, values=encoded.values
    )
    levels, gone = recoding.levels, recoding.suppressed
    lost = int(gone.sum())
    if lost > encoded.limit or lost == encoded.rows:
        raise GuaranteeError(
            f"Local recoding leaves {lost:,} of {encoded.rows:,} records without a class that meets the policy, and it allows "
            f"{encoded.limit:,} to be suppressed; nothing was published.",
            hint="Allow more suppression, lower k or l, or raise t.",
        )
    explain = {"loss": settings.loss, "nodes": {"lattice": encoded.collapsed.nodes, "used": _used(encoded, levels)}}
    return Outcome(method, by_levels(encoded, levels), gone, explain)


def _used(encoded: EncodedTable, levels: list[npt.NDArray[np.int64]]) -> int:
    """How many different nodes the records were recoded to."""
    key = np.zeros(encoded.rows, dtype=np.int64)
    for name, level in zip(encoded.quasi, levels, strict=True):
        key = key * (encoded.ladders[name].height + 1) + level
    return len(np.unique(key))
