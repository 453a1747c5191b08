"""Classes of persons who will look alike in every table: split down the hierarchies, as long as every part holds.

Guarantee: every class has k persons, and no value of a sensitive column is published of more than 1/l of them, in whatever
    table and however many rows they have. Against a reader who joins all tables of the release and knows the
    quasi-identifiers of all records of everybody.
Not covered: a reader who knows sensitive values of others in the class, or who concludes from what was not split.
Cost: each split looks at the rows of its persons once per attribute tried; about as often over all rows as there are levels.
Reference: B. Fung, K. Wang, P. Yu, "Top-down specialization for information and privacy preservation", ICDE 2005; K. LeFevre,
    D. DeWitt, R. Ramakrishnan, "Mondrian multidimensional k-anonymity", ICDE 2006.
Differences from the paper: a point is a person with all linked rows, not a record; a class is specialised by itself, and parts
    that do not hold stay together at the node above; numbers of rows are halved at their median, and only rows whose slot all
    persons of a class have are published; diversity is asked of persons.
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
    """The classes: the numbers of the persons of each.

    Raises:
        GuaranteeError: all persons together do not hold.
    """
    test = _ClassTest(people, policy)
    everybody = np.arange(people.count)
    if len(everybody) < test.k:
        raise GuaranteeError(
            f"There are {people.count:,} persons, fewer than {test.k}; nothing was published.",
            hint="Ask for less, or release more persons together.",
        )
    if common := test.common_columns(everybody):
        raise GuaranteeError(
            f"More than 1/{test.l} of the {people.count:,} persons have one and the same value (or none) of {', '.join(common)}: "
            "no class can hide it; nothing was published.",
            hint="Ask for a smaller l, leave the rows with that value out, or give the column the role identifier.",
        )
    assert policy.tables is not None  # noqa: S101 - the caller looked
    attributes = _attributes(people, policy.tables.row_weight)
    classes, open_ = [], [everybody]
    while open_:
        members = open_.pop()
        parts = _split_class(members, attributes, test)
        if parts is None:
            classes.append(members)
        else:
            open_ += parts
    return classes


def _split_class(members: Int64s, attributes: list[Attribute], test: _ClassTest) -> list[Int64s] | None:
    """Parts that hold, by the attribute that says least so far; by the next one where it gives none."""
    if len(members) < 2 * test.k:
        return None
    spreads = [attribute.spread(members) for attribute in attributes]
    for number in sorted(range(len(attributes)), key=lambda at: -spreads[at]):
        if spreads[number] <= 0:
            return None
        for parts in attributes[number].iter_splits(members):
            good = _merge_parts(parts, test)
            if good is not None:
                return good
    return None


def _merge_parts(parts: list[Int64s], test: _ClassTest) -> list[Int64s] | None:
    """The parts that hold, and the others as one; where these do not hold together, the smallest good parts join them."""
    holds = [test.satisfies(part) for part in parts]
    good = sorted((part for part, held in zip(parts, holds, strict=True) if held), key=len)
    rest = [part for part, held in zip(parts, holds, strict=True) if not held]
    while rest and not test.satisfies(np.concatenate(rest)):
        if not good:
            return None
        rest.append(good.pop(0))
    together = [np.concatenate(rest)] if rest else []
    return [*good, *together] if len(good) + len(together) > 1 else None


@dataclass(frozen=True, repr=False)
class Attribute:
    """What persons are told apart by: the node of each on every level, bottom up, or a number of rows."""

    levels: tuple[Int64s, ...]
    leaves: tuple[Int64s, ...] = ()
    weight: float = 1.0

    def spread(self, members: Int64s) -> float:
        """How much would be lost: the share of all values that the shared node stands for, or of the members' rows."""
        if not self.leaves:
            counts = self.levels[0][members]
            lost = 1 - int(counts.min()) * len(counts) / int(counts.sum()) if counts.any() else 0.0
            return self.weight * lost
        top = self._common_level(members)
        if not top:
            return 0.0
        return float(self.leaves[top][self.levels[top][members[0]]]) / float(self.leaves[-1][0])

    def iter_splits(self, members: Int64s) -> Iterator[list[Int64s]]:
        """Ways to part them: by the nodes below the one they share, or at the median, on either side of it."""
        if self.leaves:
            yield _split_by(self.levels[self._common_level(members) - 1][members], members)
            return
        values = self.levels[0][members]
        middle = np.partition(values, len(values) // 2)[len(values) // 2]
        for low in (values < middle, values <= middle):
            if low.any() and not low.all():
                yield [members[low], members[~low]]

    def _common_level(self, members: Int64s) -> int:
        """The lowest level on which all members have the same node."""
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
    """Whether persons may form a class."""

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
        """K persons, and no value of more than 1/l of them among what would be published."""
        if len(members) < self.k:
            return False
        return all(self._is_diverse(rows, name, members) for rows, names in self._tables for name in names)

    def common_columns(self, members: Int64s) -> list[str]:
        """The columns of which a value is that of more than 1/l of these persons."""
        return [name for rows, names in self._tables for name in names if not self._is_diverse(rows, name, members)]

    def _is_diverse(self, rows: Rows, name: str, members: Int64s) -> bool:
        places = rows.shared_places(members, int(self._visit_counts[members].min()))
        if not len(places):
            return True
        column = rows.columns[name]
        width = len(column.values)
        # A person who has a value twice has it once.
        pairs = np.unique(rows.person[places] * width + column.codes[places])
        holders = np.unique(pairs % width, return_counts=True)[1]
        return int(holders.max()) * self.l <= len(members)


def _attributes(people: People, row_weight: float) -> list[Attribute]:
    """The quasi-identifiers of everybody's first row in each table, and the numbers of rows: with a row all its cells are lost."""
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


def _hierarchy_attribute(hierarchy: HierarchyLevels, codes: Int64s, there: Bools) -> Attribute:
    """The nodes of each person; whoever has no row has a node of his own below the top."""
    levels, leaves = [], []
    for table, sizes in zip(hierarchy.node_ids[:-1], hierarchy.leaves[:-1], strict=True):
        levels.append(np.where(there, table[codes].astype(np.int64), len(sizes)))
        leaves.append(np.append(sizes, 1))
    top = np.zeros(len(codes), dtype=np.int64)
    return Attribute((*levels, top), (*leaves, hierarchy.leaves[-1]))
