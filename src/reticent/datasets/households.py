"""Households: their first persons and the relatives who live with them, as columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from reticent.datasets import people
from reticent.datasets.draw import Choice

OLDEST = 99
_ADULT = 18
_AGES = np.array((0, 5, 15, 30, 45, 60, 75, 85, OLDEST + 1))
_AGE_CHOICE = Choice((8, 6, 13, 14, 17, 20, 15, 7))  # percent in each age band of _AGES
_CHILD, _PARENT = 0.35, 0.2  # the others are partners, or brothers and sisters of a child


@dataclass(frozen=True)
class Persons:
    """Persons as columns: one array per property, all of the same length."""

    age: NDArray[np.int64]
    sex: NDArray[np.int64]
    household: NDArray[np.int64]
    postcode: NDArray[np.int64]
    diagnosis: NDArray[np.int64]

    def take(self, rows: NDArray[np.int64]) -> Persons:
        """Return the persons at these rows."""
        return _from_columns(lambda name: getattr(self, name)[rows])

    def with_diagnosis(self, diagnosis: NDArray[np.int64]) -> Persons:
        """Return the same persons with another diagnosis."""
        return replace(self, diagnosis=diagnosis)


def concatenate(parts: Sequence[Persons]) -> Persons:
    """Concatenate several parts."""
    return _from_columns(lambda name: np.concatenate([getattr(part, name) for part in parts]))


def merge(count: int, parts: Iterable[tuple[NDArray[np.int64], Persons]]) -> Persons:
    """Assemble ``count`` persons from parts; each part has the rows that it fills."""
    result = _from_columns(lambda _: np.empty(count, dtype=np.int64))
    for rows, part in parts:
        for field in fields(Persons):
            getattr(result, field.name)[rows] = getattr(part, field.name)
    return result


def founders(rng: np.random.Generator, household: NDArray[np.int64]) -> Persons:
    """Draw the first admitted person of each household, without a diagnosis yet."""
    count = len(household)
    band = _AGE_CHOICE.draw(rng, 0, count)
    age = rng.integers(_AGES[band], _AGES[band + 1])
    sex = (rng.random(count) >= 0.52).astype(np.int64)
    postcode = people.postcodes(rng, people.regions(rng, count))
    return Persons(age, sex, household, postcode, np.zeros(count, dtype=np.int64))


def relatives(rng: np.random.Generator, host: Persons) -> Persons:
    """Draw a person who lives with each host: partner, sibling, child or parent; without a diagnosis yet."""
    count = len(host.age)
    kin, gap = rng.random(count), rng.integers(20, 40, count)
    way = np.where(kin < _CHILD, -1, np.where(kin < _CHILD + _PARENT, 1, 0))
    near = np.rint(rng.normal(0, 3, count)).astype(np.int64)
    age = host.age + np.where(way == 0, near, way * gap)
    # If an age is impossible (a child's child, the parent of an old person), use the other generation.
    age = np.where((way < 0) & (age < 0), host.age + gap, np.where((way > 0) & (age > OLDEST), host.age - gap, age))
    partner = (way == 0) & (host.age >= _ADULT)
    sex = np.where(partner, 1 - host.sex, rng.integers(0, len(people.SEXES), count))
    return replace(host, age=np.clip(age, 0, OLDEST), sex=sex)


def _from_columns(column: Callable[[str], NDArray[np.int64]]) -> Persons:
    return Persons(**{field.name: column(field.name) for field in fields(Persons)})
