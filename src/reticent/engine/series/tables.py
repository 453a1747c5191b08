"""The tables of a release, and its report: changes, withheld records with reasons, and the distribution of the risk.

The data have a group column and contain counterfeits without a mark; another table says how many each group has. Plain columns are in a
table of their own, by group: next to a sensitive value they would distinguish records from counterfeits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from reticent import _core
from reticent.engine.series.grouping import WITHHELD_REASONS, Grouping
from reticent.engine.series.history import History
from reticent.engine.series.quasi import Attribute
from reticent.engine.series.update_graph import People
from reticent.engine.table.people import encode_column, row_keys, text_ranks
from reticent.policy import Policy
from reticent.policy.updates import Updates


def release_tables(
    table: pa.Table, policy: Policy, quasi: list[Attribute], grouping: Grouping, updates: Updates
) -> dict[str, pa.Table]:
    """Build the tables; rows are sorted by group and the text of the sensitive value, so that the order links no columns."""
    group = grouping.group
    starts = grouping.offsets[:-1]
    at = pa.array(group)
    columns = {"group": pa.array(group + 1)}
    columns |= {a.name: a.cover(grouping.donor, starts).take(at) for a in quasi}
    labels = pa.array(updates.values, type=pa.string())
    order = np.lexsort((text_ranks(labels)[grouping.value], group))
    columns[policy.sensitive[0]] = labels.take(pa.array(grouping.value[order]))
    counterfeits = grouping.counterfeits
    groups = np.flatnonzero(counterfeits)
    tables = {
        "data": pa.table(columns),
        "counterfeits": pa.table({"group": pa.array(groups + 1), "count": pa.array(counterfeits[groups])}),
    }
    return tables | ({"plain": _plain_table(table, policy, grouping)} if policy.plain else {})


def _plain_table(table: pa.Table, policy: Policy, grouping: Grouping) -> pa.Table:
    """Return the plain columns, sorted by group and by their own text, independent of input order and sensitive values."""
    rows, group, _ = grouping.published_records()
    plain = table.select(list(policy.plain)).take(pa.array(rows))
    texts = row_keys([encode_column(column) for column in plain.columns], plain.num_rows)
    plain = plain.add_column(0, "group", pa.array(group.astype(np.int64) + 1))
    return plain.take(pa.array(np.lexsort((texts, group))))


def count_changes(history: History, people: People) -> dict[str, int]:
    """Count external updates (inserted, left, returned) and internal ones, against the last published versions."""
    number = history.locate(people.hashes)
    old = number >= 0
    last = history.heads[number[old]]
    latest = history.release == history.releases
    before = history.release[last]
    return {
        "inserted": int((~old).sum()),
        "left": int(latest.sum() - (before == history.releases).sum()),
        "returned": int((before < history.releases).sum()),
        "sensitive": int((history.value[last] != people.values[old]).sum()),
        "quasi": int((history.traits[number[old]] != people.traits[old]).sum()),
    }


def count_reasons(grouping: Grouping) -> dict[str, int]:
    """Count the withheld rows by reason."""
    counts = np.bincount(grouping.withheld, minlength=len(WITHHELD_REASONS))
    return {name: int(n) for name, n in zip(WITHHELD_REASONS[1:], counts[1:], strict=True) if n}


def risk_quantiles(risk: _core.series.Risks) -> dict[str, Any]:
    """Return quantiles over persons of the largest share of any candidate."""
    quantiles = (0.0, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
    shares = np.quantile(risk.worst, quantiles).tolist()
    return {f"{quantile:.0%}": round(share, 6) for quantile, share in zip(quantiles, shares, strict=True)}
