"""Crowds under the veil: quasi-identifiers climb above their published level until k persons share what is published.

The row of the prior is published too and tells of the fields it depends on. So crowds are formed within a row: a record keeps
the row of its own fields whoever else is in the table, and a person published again under the same key shows the same set.

Guarantee: every published combination of quasi-identifiers and row holds k different persons (records, where the policy names
    no person). Against a reader who knows who is in the table and the quasi-identifiers of one record of each.
Not covered: several records of one person, or several tables of one house: sets that are alike show which records belong
    together; k holds for each of them, not for what they have in common. Plain columns and the number of the event.
Cost: one local recoding per row of the prior.
Reference: as `reticent.engine.table.local`, with k alone: values play no part, so that the law of the sets stays as it is.
Differences from the paper: ladders begin at the policy's `level`; rows of fewer than k persons are suppressed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from reticent import _core
from reticent.arrays import Int32s, Int64s, UInt32s
from reticent.encode import Dictionary
from reticent.engine.table.encoded_table import SensitiveColumn, node_charges
from reticent.engine.table.levels import Levels
from reticent.engine.table.people import People, people_of, persons_of
from reticent.engine.veil.published_levels import PublishedLevels
from reticent.errors import GuaranteeError
from reticent.policy import Policy
from reticent.policy.hierarchy import HierarchyLevels


@dataclass(frozen=True, repr=False)
class EquivalenceClasses:
    """The records that are published, by their places, and their published columns."""

    published: pa.Table
    records: Int64s


def form_classes(policy: Policy, levels: PublishedLevels, table: pa.Table, strata: UInt32s) -> EquivalenceClasses:
    """Crowds of k persons among the records of a table, each with its row of the prior.

    Raises:
        GuaranteeError: too many records have a row of the prior with fewer than k persons.
    """
    k, persons = policy.privacy.k or 1, persons_of(table, policy)
    owner = np.arange(table.num_rows) if persons is None else persons
    pairs = np.unique(np.stack([strata.astype(np.int64), owner]), axis=1)
    records = np.flatnonzero(np.bincount(pairs[0])[strata] >= k)
    _refuse_loss(policy, table.num_rows, table.num_rows - len(records))
    columns = {name: _publish_column(levels, name, table) for name in policy.quasi}
    climbs = [np.zeros(table.num_rows, dtype=np.int64) for _ in columns]
    for row in np.unique(strata[records]):
        part = np.flatnonzero(strata == row)
        people = people_of(table.take(pa.array(part)), policy, [])
        for climb, level in zip(climbs, _recode(k, people, columns, part), strict=True):
            climb[part] = level
    every = np.arange(table.num_rows)
    published, _ = levels.publish(table)
    for (name, (rungs, codes)), climb in zip(columns.items(), climbs, strict=True):
        if climb.any():
            labels = Levels(rungs, codes, climb).labels(every)
            published = published.set_column(published.column_names.index(name), name, labels)
    return EquivalenceClasses(published.take(pa.array(records)), records)


def _refuse_loss(policy: Policy, size: int, lost: int) -> None:
    limit = policy.privacy.may_suppress(size)
    if lost > limit or lost == size:
        raise GuaranteeError(
            f"{lost:,} of {size:,} records have a row of the prior that fewer than {policy.privacy.k} persons share, and the policy "
            f"allows {limit:,} to be suppressed; nothing was published.",
            hint="Allow more suppression, make the prior with fewer strata (`reticent prior --by`), or lower k.",
        )


def _publish_column(levels: PublishedLevels, name: str, table: pa.Table) -> tuple[HierarchyLevels, Int32s]:
    """A column as its published level shows it, with the levels above."""
    words = Dictionary()
    codes = words.encode(table.column(name))
    level, rungs = levels.hierarchy_of(name, words.values)
    leaf = np.zeros(len(rungs.labels[level]), dtype=np.int64)
    leaf[rungs.node_ids[level]] = np.arange(len(words))
    tables = tuple(np.ascontiguousarray(above[leaf]) for above in rungs.node_ids[level:])
    shown = replace(rungs, node_ids=tables, labels=rungs.labels[level:], leaves=rungs.leaves[level:], numeric=None)
    return shown, rungs.node_ids[level][codes]


def _recode(
    k: int, people: People | None, columns: dict[str, tuple[HierarchyLevels, Int32s]], part: Int64s
) -> list[Int64s]:
    """How far every record of a row climbs, column by column; the whole row together is a crowd, so that none is lost."""
    sensitive: list[SensitiveColumn] = [] if people is None else [(people.pairs, len(people.owner), [])]
    collapsed = _core.table.CollapsedTable(
        [np.ascontiguousarray(codes[part]) for _, codes in columns.values()],
        [node_charges(rungs, "loss") for rungs, _ in columns.values()],
        sensitive,
    )
    model = _core.table.Model(k=k, l=None, t=None, persons=None if people is None else people.for_core())
    recoding = collapsed.localize(model, loss="loss", weights=[1.0] * len(columns), limit=0)
    assert not recoding.suppressed.any()  # noqa: S101 - the row was found large enough
    return [np.asarray(level, dtype=np.int64) for level in recoding.levels]
