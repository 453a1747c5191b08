"""Optimal full-domain generalization: the lattice node with the least loss that meets the policy.

Guarantee: every class of records with equal published quasi-identifiers satisfies the k, l and t of the policy. An
attacker who knows all quasi-identifiers of a person finds at least k records, values as diverse as l demands, and a
distribution within t of the whole table's. No other node within the suppression limit loses less. If a limit of time
or memory ended the search, the release states the proved bound instead.

Not covered: several records of one person in a class; attackers who know sensitive values of others; further releases
of the same persons; conclusions from the choice of this node over others (minimality attack).

Cost: O(rows) to collapse the table to its distinct combinations once; a check costs O(combinations) or less, since it
rolls up from the smallest cached grouping that is fine enough. The number of checks depends on the bounds; the core's
`optimal.rs` lists the proofs that avoid a check.

Reference: P. Samarati, IEEE TKDE 2001 (full-domain generalization); K. LeFevre et al., "Incognito", SIGMOD 2005
(roll-up); F. Kohlmayer et al., "Flash", PASSAT 2012 (binary search on paths).

Differences from the papers: nodes are visited by a lower bound of their loss. Coarser nodes bound the records that must
be suppressed, under t-closeness by the convexity of the distance. Without suppression, single records refute all nodes
at which their class violates the policy. Ties go to the fewest levels in total, then to the lexicographically first
levels in the policy's order of quasi-identifiers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from reticent.engine.table.base import TablePublisher
from reticent.engine.table.encoded_table import EncodedTable, attributes_at_levels
from reticent.engine.table.generalized import Outcome, publish
from reticent.engine.table.people import search_classes
from reticent.errors import GuaranteeError
from reticent.release import Release


class Optimal(TablePublisher):
    """The optimal full-domain generalization of one table."""

    method = "optimal"

    def release(self, table: pa.Table) -> Release:
        """Search the lattice, or refuse if no node meets the policy."""
        encoded = self.encode(table)
        release, self._source_rows = publish(encoded, table, search_classes(encoded, optimum), self.rng)
        return release


def optimum(encoded: EncodedTable) -> Outcome:
    """Return the outcome of the best lattice node."""
    return full_domain(encoded, search(encoded, weights=encoded.weights), "optimal")


def search(encoded: EncodedTable, *, weights: list[float], loss: str | None = None) -> dict[str, Any]:
    """Return the best node, or raise an error with a hint."""
    settings = encoded.policy.table
    node = encoded.collapsed.search(
        encoded.model,
        loss=loss or settings.loss,
        weights=weights,
        limit=encoded.limit,
        gs_factor=settings.gs_factor,
        cancellation=encoded.cancellation,
        loss_limit=encoded.loss_limit,
    )
    if "levels" not in node:
        why = (
            "within its limits of time and memory" if not node["complete"] else "even with every value generalized to *"
        )
        raise GuaranteeError(
            f"No generalization meets the policy {why} with at most {encoded.limit:,} of {encoded.rows:,} records "
            "suppressed; nothing was published.",
            hint="Allow more suppression, lower k or l, or raise t.",
        )
    if node["suppressed"] == encoded.rows:
        raise GuaranteeError(
            "The best generalization would suppress every record; nothing was published.",
            hint="Lower k or l, or raise t.",
        )
    return node


def full_domain(encoded: EncodedTable, node: dict[str, Any], method: str) -> Outcome:
    """Return the outcome of a node: one level per attribute; rows whose classes violate the policy are suppressed."""
    levels = [int(level) for level in node["levels"]]
    classes = encoded.collapsed.classes(encoded.model, levels)
    explain = {
        "loss": encoded.policy.table.loss,
        "score": node["score"],
        "classes": int(node["classes"]),
        "nodes": {
            "lattice": encoded.lattice_size,
            "checked": int(node["checked"]),
            # An unfinished search has not refuted the nodes that it did not reach.
            "pruned" if node["complete"] else "not_checked": encoded.lattice_size - int(node["checked"]),
        },
        "optimal": bool(node["complete"]),
        "bound": node["bound"],
    }
    return Outcome(method, attributes_at_levels(encoded, levels), np.asarray(classes < 0), explain)
