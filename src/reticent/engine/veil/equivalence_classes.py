"""Equivalence classes under the veil: quasi-identifiers are generalized until k persons share what is published.

The stratum of the prior is published and depends on some fields, so classes are formed within a stratum. A record keeps the
stratum of its own fields, and a person published again under the same key shows the same candidates.

Guarantee: at least k persons (records, where the policy names no person) share each published combination of quasi-identifiers
    and stratum, against an attacker who knows who is in the table and the quasi-identifiers of one record of each person.
Not covered: several records of one person, or several tables under one veil key: equal candidates show which records belong
    together, and k holds for each record alone. Plain columns and the event number.
Cost: one local recoding per stratum.
Reference: as `reticent.engine.table.local`, with k alone: it ignores sensitive values, so the law of the candidates is unchanged.
Differences from the paper: hierarchies begin at the policy's `level`; strata of fewer than k persons are suppressed.
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
    """The published records, by their positions, and their published columns."""

    published: pa.Table
    records: Int64s


def form_classes(policy: Policy, levels: PublishedLevels, table: pa.Table, strata: UInt32s) -> EquivalenceClasses:
    """Form classes of at least k persons among the records of a table, within each stratum of the prior.

    Raises:
        GuaranteeError: too many records are in a stratum with fewer than k persons.
    """
    k, persons = policy.privacy.k or 1, persons_of(table, policy)
    owner = np.arange(table.num_rows) if persons is None else persons
    pairs = np.unique(np.stack([strata.astype(np.int64), owner]), axis=1)
    records = np.flatnonzero(np.bincount(pairs[0])[strata] >= k)
    _refuse_loss(policy, table.num_rows, table.num_rows - len(records))
    columns = {name: _publish_column(levels, name, table) for name in policy.quasi}
    climbs = [np.zeros(table.num_rows, dtype=np.int64) for _ in columns]
    for stratum in np.unique(strata[records]):
        part = np.flatnonzero(strata == stratum)
        people = people_of(table.take(pa.array(part)), policy, [])
        for climb, level in zip(climbs, _recode(k, people, columns, part), strict=True):
            climb[part] = level
    every = np.arange(table.num_rows)
    published, _ = levels.publish(table)
    for (name, (hierarchy, codes)), climb in zip(columns.items(), climbs, strict=True):
        if climb.any():
            labels = Levels(hierarchy, codes, climb).labels(every)
            published = published.set_column(published.column_names.index(name), name, labels)
    return EquivalenceClasses(published.take(pa.array(records)), records)


def _refuse_loss(policy: Policy, size: int, lost: int) -> None:
    limit = policy.privacy.may_suppress(size)
    if lost > limit or lost == size:
        raise GuaranteeError(
            f"{lost:,} of {size:,} records are in a stratum of the prior with fewer than {policy.privacy.k} persons, and the policy "
            f"allows {limit:,} suppressed records; nothing was published.",
            hint="Allow more suppression, make the prior with fewer strata (`reticent prior --by`), or lower k.",
        )


def _publish_column(levels: PublishedLevels, name: str, table: pa.Table) -> tuple[HierarchyLevels, Int32s]:
    """Return the hierarchy of a column from its published level up, and the code of each record."""
    dictionary = Dictionary()
    codes = dictionary.encode(table.column(name))
    level, hierarchy = levels.hierarchy_of(name, dictionary.values)
    leaf = np.zeros(len(hierarchy.labels[level]), dtype=np.int64)
    leaf[hierarchy.node_ids[level]] = np.arange(len(dictionary))
    tables = tuple(np.ascontiguousarray(above[leaf]) for above in hierarchy.node_ids[level:])
    labels, leaves = hierarchy.labels[level:], hierarchy.leaves[level:]
    shown = replace(hierarchy, node_ids=tables, labels=labels, leaves=leaves, numeric=None)
    return shown, hierarchy.node_ids[level][codes]


def _recode(
    k: int, people: People | None, columns: dict[str, tuple[HierarchyLevels, Int32s]], part: Int64s
) -> list[Int64s]:
    """Return the level of each record of a stratum, per column; the whole stratum is a class, so nothing is suppressed."""
    sensitive: list[SensitiveColumn] = [] if people is None else [(people.pairs, len(people.owner), [])]
    collapsed = _core.table.CollapsedTable(
        [np.ascontiguousarray(codes[part]) for _, codes in columns.values()],
        [node_charges(hierarchy, "loss") for hierarchy, _ in columns.values()],
        sensitive,
    )
    model = _core.table.Model(k=k, l=None, t=None, persons=None if people is None else people.for_core())
    recoding = collapsed.localize(model, loss="loss", weights=[1.0] * len(columns), limit=0)
    assert not recoding.suppressed.any()  # noqa: S101 - only strata of at least k persons get here
    return [np.asarray(level, dtype=np.int64) for level in recoding.levels]
