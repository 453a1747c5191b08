"""Classes of persons who look alike in every table: split down the hierarchies while every part meets the policy.

Guarantee: every class has k persons, and no value of a sensitive column is published for more than 1/l of them, in any
    table and for any number of rows. The attacker joins all tables of the release and knows the quasi-identifiers of
    all records of all persons.
Not covered: an attacker who knows sensitive values of others in the class, or who draws conclusions from classes that
    were not split.
Cost: each split reads the rows of its persons once per attribute tried; about one pass over all rows per level.
Reference: B. Fung, K. Wang, P. Yu, "Top-down specialization for information and privacy preservation", ICDE 2005;
    K. LeFevre, D. DeWitt, R. Ramakrishnan, "Mondrian multidimensional k-anonymity", ICDE 2006.
Differences from the paper: a point is a person with all linked rows, not a record. Classes are specialized separately,
    and parts that violate the policy stay together at the node above. Row counts are split at their median, and only
    rows whose slot all persons of a class have are published. Diversity is counted over persons.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from reticent.arrays import Bools, Int64s
from reticent.engine.linked.rows import People, Rows
from reticent.errors import GuaranteeError
from reticent.policy import Policy
from reticent.policy.hierarchy import HierarchyLevels


def classes_of(people: People, policy: Policy) -> list[Int64s]:
    """Return the person numbers of each class.

    Raises:
        GuaranteeError: even one class of all persons violates the policy.
    """
    test = _ClassTest(people, policy)
    everyone = np.arange(people.count)
    if len(everyone) < test.k:
        raise GuaranteeError(
            f"There are {people.count:,} persons, and a class needs at least {test.k}; nothing was published.",
            hint="Lower k or l, or release more persons together.",
        )
    if common := test.common_columns(everyone):
        raise GuaranteeError(
            f"More than 1/{test.l} of the {people.count:,} persons have the same value (or none) of {', '.join(common)}: "
            "no class can hide it; nothing was published.",
            hint="Lower l, remove the rows with that value, or give the column the role identifier.",
        )
    assert policy.tables is not None  # noqa: S101 - every caller has checked
    attributes = _attributes(people, policy.tables.row_weight)
    classes, open_ = [], [everyone]
    while open_:
        members = open_.pop()
        parts = _split_class(members, attributes, test)
        if parts is None:
            classes.append(members)
        else:
            open_ += parts
    return classes


def _split_class(members: Int64s, attributes: list[Attribute], test: _ClassTest) -> list[Int64s] | None:
    """Split a class by the attribute with the most loss, or by the next one; None if no split meets the policy."""
    if len(members) < 2 * test.k:
        return None
    spreads = [attribute.spread(members) for attribute in attributes]
    for number in sorted(range(len(attributes)), key=lambda at: -spreads[at]):
        if spreads[number] <= 0:
            return None
        for parts in attributes[number].iter_splits(members):
            merged = _merge_parts(parts, test)
            if merged is not None:
                return merged
    return None


def _merge_parts(parts: list[Int64s], test: _ClassTest) -> list[Int64s] | None:
    """Merge the parts that violate the policy, and add the smallest valid parts until the merged part is valid."""
    checks = [test.satisfies(part) for part in parts]
    valid = sorted((part for part, ok in zip(parts, checks, strict=True) if ok), key=len)
    rest = [part for part, ok in zip(parts, checks, strict=True) if not ok]
    while rest and not test.satisfies(np.concatenate(rest)):
        if not valid:
            return None
        rest.append(valid.pop(0))
    merged = [np.concatenate(rest)] if rest else []
    return [*valid, *merged] if len(valid) + len(merged) > 1 else None


@dataclass(frozen=True, repr=False)
class Attribute:
    """An attribute of persons: the node of each person on every level, bottom up, or a number of rows."""

    levels: tuple[Int64s, ...]
    leaves: tuple[Int64s, ...] = ()
    weight: float = 1.0

    def spread(self, members: Int64s) -> float:
        """Return the loss of the class: the share of all values below the shared node, or of the members' rows."""
        if not self.leaves:
            counts = self.levels[0][members]
            lost = 1 - int(counts.min()) * len(counts) / int(counts.sum()) if counts.any() else 0.0
            return self.weight * lost
        top = self._common_level(members)
        if not top:
            return 0.0
        return float(self.leaves[top][self.levels[top][members[0]]]) / float(self.leaves[-1][0])

    def iter_splits(self, members: Int64s) -> Iterator[list[Int64s]]:
        """Yield possible splits: by the nodes below the shared node, or below or above the median."""
        if self.leaves:
            yield _split_by(self.levels[self._common_level(members) - 1][members], members)
            return
        values = self.levels[0][members]
        middle = np.partition(values, len(values) // 2)[len(values) // 2]
        for low in (values < middle, values <= middle):
            if low.any() and not low.all():
                yield [members[low], members[~low]]

    def _common_level(self, members: Int64s) -> int:
        """Return the lowest level on which all members have the same node."""
        level = len(self.levels) - 1
        while level:
            nodes = self.levels[level - 1][members]
            if (nodes != nodes[0]).any():
                break
            level -= 1
        return level


def _split_by(nodes: Int64s, members: Int64s) -> list[Int64s]:
    order = np.argsort(nodes, kind="stable")
    return np.split(members[order], np.flatnonzero(np.diff(nodes[order])) + 1)


class _ClassTest:
    """Tests whether persons may form a class."""

    def __init__(self, people: People, policy: Policy) -> None:
        l = policy.privacy.l
        self.l = int(l.l) if l is not None else 1
        self.k = max(policy.privacy.k or 1, self.l)
        self._visit_counts = people.visit_counts()
        self._tables = [
            (rows, [name for name in rows.layout.columns if name in policy.sensitive])
            for rows in people.tables.values()
            if l is not None and any(name in policy.sensitive for name in rows.layout.columns)
        ]

    def satisfies(self, members: Int64s) -> bool:
        """Return whether there are k persons and no published value belongs to more than 1/l of them."""
        if len(members) < self.k:
            return False
        return all(self._is_diverse(rows, name, members) for rows, names in self._tables for name in names)

    def common_columns(self, members: Int64s) -> list[str]:
        """Return the columns with a value that more than 1/l of these persons have."""
        return [name for rows, names in self._tables for name in names if not self._is_diverse(rows, name, members)]

    def _is_diverse(self, rows: Rows, name: str, members: Int64s) -> bool:
        places = rows.shared_places(members, int(self._visit_counts[members].min()))
        if not len(places):
            return True
        column = rows.columns[name]
        width = len(column.values)
        # A person counts once per value.
        pairs = np.unique(rows.person[places] * width + column.codes[places])
        holders = np.unique(pairs % width, return_counts=True)[1]
        return int(holders.max()) * self.l <= len(members)


def _attributes(people: People, row_weight: float) -> list[Attribute]:
    """Return the quasi-identifiers of each person's first row per table, and the numbers of rows."""
    attributes = []
    for rows in people.tables.values():
        counts = np.diff(rows.start)
        if not rows.layout.of_persons and rows.counted:
            attributes.append(Attribute((counts,), weight=row_weight))
        if not len(rows.person):
            continue
        first = np.minimum(rows.start[:-1], len(rows.person) - 1)
        attributes += [
            _hierarchy_attribute(column.hierarchy, column.codes[first], counts > 0)
            for column in rows.columns.values()
            if column.hierarchy is not None
        ]
    return attributes


def _hierarchy_attribute(hierarchy: HierarchyLevels, codes: Int64s, has_rows: Bools) -> Attribute:
    """Return the nodes of each person; persons without a row share a separate node below the top."""
    levels, leaves = [], []
    for table, sizes in zip(hierarchy.node_ids[:-1], hierarchy.leaves[:-1], strict=True):
        levels.append(np.where(has_rows, table[codes].astype(np.int64), len(sizes)))
        leaves.append(np.append(sizes, 1))
    top = np.zeros(len(codes), dtype=np.int64)
    return Attribute((*levels, top), (*leaves, hierarchy.leaves[-1]))
