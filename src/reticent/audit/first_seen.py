"""Places of persons in the order they were first seen, for judges who follow them; 12 bytes each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    U64 = npt.NDArray[np.uint64]
    I64 = npt.NDArray[np.int64]

# Persons that came lately stand in a small sorted part, so that a batch does not move all the others.
_LATELY = 1 << 16
_FEW = 4_096


class _Sorted:
    """Keys in their order, with the place of each."""

    def __init__(self) -> None:
        self.keys = np.empty(0, dtype=np.uint64)
        self.places = np.empty(0, dtype=np.uint32)

    def find(self, keys: U64) -> tuple[I64, npt.NDArray[np.bool_]]:
        """The place of each key, and whether it has one."""
        if not len(self.keys):
            return np.zeros(len(keys), dtype=np.int64), np.zeros(len(keys), dtype=bool)
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return self.places[at].astype(np.int64), self.keys[at] == keys

    def insert(self, keys: U64, places: npt.NDArray[np.uint32]) -> None:
        """Takes in further keys, which are sorted and new."""
        at = np.searchsorted(self.keys, keys)
        self.keys, self.places = np.insert(self.keys, at, keys), np.insert(self.places, at, places)


class Persons:
    """A number for every person."""

    def __init__(self) -> None:
        self._old, self._new = _Sorted(), _Sorted()
        self._few: dict[int, int] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return f"Persons({len(self)})"

    def place(self, person: int) -> int:
        """The place of one person; a new one gets the next."""
        place = self._few.get(person)
        if place is None:
            key = np.array([person], dtype=np.uint64)
            for part in (self._new, self._old):
                places, known = part.find(key)
                if known[0]:
                    return int(places[0])
            place = self._few[person] = self._size
            self._size += 1
            if len(self._few) > _FEW:
                self._settle()
        return place

    def places(self, persons: U64) -> I64:
        """The places of some persons, each of whom is named once, in the order of their names."""
        self._settle()
        places, known = self._new.find(persons)
        elsewhere, old = self._old.find(persons)
        places = np.where(known, places, elsewhere)
        strange = ~(known | old)
        fresh = persons[strange]
        places[strange] = np.arange(self._size, self._size + len(fresh))
        self._size += len(fresh)
        self._add(fresh, places[strange].astype(np.uint32))
        return places

    def _settle(self) -> None:
        """Those who came one by one stand beside the others from now on."""
        if self._few:
            keys = np.fromiter(self._few, dtype=np.uint64, count=len(self._few))
            places = np.fromiter(self._few.values(), dtype=np.uint32, count=len(self._few))
            order = np.argsort(keys)
            self._few = {}
            self._add(keys[order], places[order])

    def _add(self, keys: U64, places: npt.NDArray[np.uint32]) -> None:
        self._new.insert(keys, places)
        if len(self._new.keys) > _LATELY:
            self._old.insert(self._new.keys, self._new.places)
            self._new = _Sorted()

    def names(self) -> U64:
        """All persons, by place."""
        self._settle()
        names = np.empty(self._size, dtype=np.uint64)
        for part in (self._old, self._new):
            names[part.places] = part.keys
        return names

    @classmethod
    def of(cls, names: U64) -> Persons:
        """Persons by place."""
        persons = cls()
        order = np.argsort(names)
        persons._old.keys, persons._old.places = names[order], order.astype(np.uint32)
        persons._size = len(names)
        return persons
