"""What a series has published so far: versions of records, linked by person, and the values of their groups."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from reticent.arrays import Int32s, Int64s, UInt64s


def _ints(n: int = 0) -> Int32s:
    return np.zeros(n, dtype=np.int32)


@dataclass(frozen=True, repr=False)
class History:
    """Append-only arrays; a version is one record in one release.

    Attributes:
        persons: keyed hash of each person, in order of first appearance.
        heads: last version of each person.
        traits: keyed hash of each person's quasi-identifiers in the last version.
        person: person of each version.
        release: release of each version, from 1.
        group: group of each version, counted over all releases.
        value: sensitive code of each version.
        previous: the person's previous version, or -1.
        offsets: the start of each group in `values`.
        values: sensitive codes shown in the groups, with those of counterfeits.
        starts: first group of each release.
    """

    persons: UInt64s = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    heads: Int32s = field(default_factory=_ints)
    traits: UInt64s = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    person: Int32s = field(default_factory=_ints)
    release: Int32s = field(default_factory=_ints)
    group: Int32s = field(default_factory=_ints)
    value: Int32s = field(default_factory=_ints)
    previous: Int32s = field(default_factory=_ints)
    offsets: Int64s = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    values: Int32s = field(default_factory=_ints)
    starts: Int64s = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @property
    def releases(self) -> int:
        """The number of releases."""
        return len(self.starts)

    @property
    def groups(self) -> tuple[Int64s, Int32s]:
        """All groups in the core's format."""
        return self.offsets, self.values

    @property
    def versions(self) -> tuple[Int32s, Int32s, Int32s, Int32s]:
        """All versions in the core's format."""
        return self.previous, self.release, self.group, self.value

    def locate(self, hashes: UInt64s) -> Int64s:
        """Return the number of each person, -1 for a person who was never published."""
        if not len(self.persons):
            return np.full(len(hashes), -1, dtype=np.int64)
        order, persons = self._sorted
        at = np.minimum(np.searchsorted(persons, hashes), len(order) - 1)
        return np.where(persons[at] == hashes, order[at], -1)

    @cached_property
    def _sorted(self) -> tuple[Int64s, UInt64s]:
        """The numbers of all persons ordered by hash, and the ordered hashes."""
        order = np.argsort(self.persons)
        return order, self.persons[order]

    def last(self, hashes: UInt64s) -> Int32s:
        """Return the last version of each person, or -1."""
        number = self.locate(hashes)
        heads = self.heads if len(self.heads) else np.full(1, -1, dtype=np.int32)
        return np.asarray(np.where(number >= 0, heads[number], -1), dtype=np.int32)

    def extend(
        self, hashes: UInt64s, traits: UInt64s, group: Int32s, value: Int32s, groups: tuple[Int64s, Int32s]
    ) -> History:
        """Return the history after one more release.

        Per person: hashed quasi-identifiers, the group (from 0) and the sensitive code. `groups` are offsets and values.
        """
        number = self.locate(hashes)
        new = number < 0
        number = number.copy()
        number[new] = len(self.persons) + np.arange(new.sum())
        heads = np.concatenate([self.heads, np.full(int(new.sum()), -1, dtype=np.int32)])
        last_traits = np.concatenate([self.traits, np.zeros(int(new.sum()), dtype=np.uint64)])
        previous = heads[number]
        heads[number] = len(self.person) + np.arange(len(hashes), dtype=np.int32)
        last_traits[number] = traits
        first = len(self.offsets) - 1
        return replace(
            self,
            persons=np.concatenate([self.persons, hashes[new]]),
            heads=heads,
            traits=last_traits,
            person=np.concatenate([self.person, number.astype(np.int32)]),
            release=np.concatenate([self.release, np.full(len(hashes), self.releases + 1, dtype=np.int32)]),
            group=np.concatenate([self.group, (group + first).astype(np.int32)]),
            value=np.concatenate([self.value, value.astype(np.int32)]),
            previous=np.concatenate([self.previous, previous]),
            offsets=np.concatenate([self.offsets, self.offsets[-1] + groups[0][1:]]),
            values=np.concatenate([self.values, groups[1]]),
            starts=np.concatenate([self.starts, np.array([first], dtype=np.int64)]),
        )

    def longest_gap(self) -> int:
        """Return the largest number of releases between two successive versions of a person."""
        linked = self.previous >= 0
        if not linked.any():
            return 1
        return int((self.release[linked] - self.release[self.previous[linked]]).max())

    def members(self, number: int) -> tuple[UInt64s, Int64s]:
        """Return the persons of a release (from 1), and the label of each person's group."""
        in_release = self.release == number
        return self.persons[self.person[in_release]], self.group[in_release] - self.starts[number - 1] + 1

    def to_tables(self) -> dict[str, pa.Table]:
        """Return the arrays as Arrow tables, for a snapshot."""
        return {
            "persons": pa.table({"persons": self.persons, "heads": self.heads, "traits": self.traits}),
            "versions": pa.table(
                {name: getattr(self, name) for name in ("person", "release", "group", "value", "previous")}
            ),
            "offsets": pa.table({"offsets": self.offsets}),
            "values": pa.table({"values": self.values}),
            "starts": pa.table({"starts": self.starts}),
        }

    @classmethod
    def from_tables(cls, tables: dict[str, pa.Table]) -> History:
        """Build a history from the tables of `to_tables`."""
        columns = {}
        for name in ("persons", "versions", "offsets", "values", "starts"):
            for column in tables[name].column_names:
                columns[column] = np.ascontiguousarray(tables[name].column(column).to_numpy())
        return cls(**columns)
