"""The same persons over several releases: illness progresses; people move, age, leave, return and arrive.

Diagnoses belong to families. In some families an illness only gets worse (mild, moderate, severe); in others it may also
get better. The update graph states the possible values in the next release and their probabilities. It is transitive and
every value may stay, so a person who misses some releases returns with a value that the graph allows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reticent.datasets import people
from reticent.datasets.draw import BLOCK, Choice, generator, strings, zipf
from reticent.errors import PolicyError

_TABLE = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
_LINES = [line.split(" | ") for line in _TABLE.splitlines()[1:]]
PROGRESSIVE = tuple(stages for course, _, stages in _LINES if course == "progressive")
"""Families in which an illness stays or gets worse; they come first."""
RECURRING = tuple(stages for course, _, stages in _LINES if course == "recurring")
"""Families in which an illness may also get better."""

FAMILIES: tuple[tuple[str, ...], ...] = tuple(tuple(line.split(" > ")) for line in PROGRESSIVE + RECURRING)
VALUES: tuple[str, ...] = tuple(value for family in FAMILIES for value in family)

_MIN_AGE = {stages.split(" > ")[0]: int(age) for _, age, stages in _LINES if int(age)}
"""The minimum age of each family, by its first illness; other families have none."""

_AGES = (0, 15, 30, 50, 60)  # age bands of the onset distribution
_OLD = 60

_STAY = 0.7
_LEAVE, _RETURN, _NEWCOMERS, _MOVE = 0.08, 0.2, 0.08, 0.04
_OLDEST = 100


@dataclass
class _Persons:
    """One block of persons at one release."""

    entry: NDArray[np.int64]
    names: pa.Array
    sex: NDArray[np.int64]
    age: NDArray[np.int64]
    postcode: NDArray[np.int64]
    diagnosis: NDArray[np.int64]
    present: NDArray[np.bool_]


def batches(n: int, releases: int = 5, seed: int = 0) -> Iterator[tuple[int, pa.Table]]:
    """Yield parts of the releases as (release number from 1, table), in the row order of each release.

    The first release has exactly ``n`` persons. Memory contains one block of persons for any ``n``.
    """
    if n < 1 or releases < 1:
        raise PolicyError("A series needs at least one person and one release.", hint="Check -n and --releases.")
    everyone = n + _per_release(n) * (releases - 1)
    for number in range(-(-everyone // BLOCK)):
        yield from _history(n, releases, seed, number)


def generate(n: int, releases: int = 5, seed: int = 0) -> list[pa.Table]:
    """Return one table per release.

    >>> [table.num_rows for table in generate(100, releases=1)]
    [100]
    """
    parts: list[list[pa.Table]] = [[] for _ in range(releases)]
    for release, table in batches(n, releases, seed):
        parts[release - 1].append(table)
    return [pa.concat_tables(tables).combine_chunks() for tables in parts]


def updates() -> pa.Table:
    """Return the update graph as a table of value, next, probability; the probabilities of a value sum to one."""
    shares = _progress().shares
    at, to = np.nonzero(shares)
    chance = [round(float(share), 6) for share in shares[at, to]]
    return pa.table({"value": strings(VALUES, at), "next": strings(VALUES, to), "probability": chance})


def prior() -> pa.Table:
    """Return the prior for arriving persons, as from public statistics: counts of ten thousand by five-year age band.

    >>> prior().column_names
    ['age', 'value', 'count']
    """
    rows = []
    for age in range(0, _OLDEST + 1, 5):
        shares = _onset().shares[np.searchsorted(_AGES, age, side="right") - 1]
        counts = np.ceil(shares * 10_000).astype(int)
        rows += [(f"[{age}, {age + 5})", VALUES[at], int(counts[at])) for at in np.flatnonzero(counts)]
    ages, values, numbers = zip(*rows, strict=True)
    return pa.table({"age": ages, "value": values, "count": numbers})


@cache
def _progress() -> Choice:
    """Return the distribution of the next value: stay, or move within the family; near steps are more likely."""
    weights = np.zeros((len(VALUES), len(VALUES)))
    begin = 0
    for line, family in zip(PROGRESSIVE + RECURRING, FAMILIES, strict=True):
        for i in range(len(family)):
            reach = range(i, len(family)) if line in PROGRESSIVE else range(len(family))
            far = {j: 0.25 ** abs(j - i) for j in reach if j != i}
            for j, weight in far.items():
                weights[begin + i, begin + j] = (1 - _STAY) * weight / sum(far.values())
            weights[begin + i, begin + i] = _STAY if far else 1.0
        begin += len(family)
    return Choice(weights)


@cache
def _onset() -> Choice:
    """Return the distribution of first diagnoses per age band: families in a long tail, first stages most often."""
    order = np.random.default_rng(11).permutation(len(FAMILIES))
    stages = [0.5 ** np.arange(len(values)) for values in FAMILIES]
    rows = []
    for age in _AGES:
        family = zipf(len(FAMILIES), 0.5)[order] * [age >= _MIN_AGE.get(values[0], 0) for values in FAMILIES]
        if age >= _OLD:
            family *= np.where(np.arange(len(FAMILIES)) < len(PROGRESSIVE), 2.0, 0.7)
        rows.append(np.concatenate([share * stage / stage.sum() for share, stage in zip(family, stages, strict=True)]))
    return Choice(rows)


def _per_release(n: int) -> int:
    return max(1, round(n * _NEWCOMERS))


def _history(n: int, releases: int, seed: int, number: int) -> Iterator[tuple[int, pa.Table]]:
    rng = generator(seed, "series", number)
    ids = np.arange(BLOCK) + number * BLOCK
    # The first n persons are in release 1; the others arrive release by release, in order of their numbers.
    entry = np.where(ids < n, 1, 2 + (ids - n) // _per_release(n))
    persons = _arrive(rng, entry)
    for release in range(1, releases + 1):
        if release > 1:
            _advance_release(rng, persons, release)
        yield release, _table(ids, persons, persons.present & (entry <= release))


def _arrive(rng: np.random.Generator, entry: NDArray[np.int64]) -> _Persons:
    sex = rng.integers(0, 2, BLOCK)
    age = np.minimum((rng.beta(2.2, 1.6, BLOCK) * 98).astype(np.int64), _OLDEST)
    return _Persons(
        entry=entry,
        names=people.names(rng, sex),
        sex=sex,
        age=age,
        postcode=people.postcodes(rng, people.regions(rng, BLOCK)),
        diagnosis=_onset().draw(rng, np.searchsorted(_AGES, age, side="right") - 1),
        present=np.ones(BLOCK, dtype=np.bool_),
    )


def _advance_release(rng: np.random.Generator, persons: _Persons, release: int) -> None:
    """Update the persons who arrived before this release: age, diagnosis, address and presence."""
    known = persons.entry < release
    persons.age = np.where(known, np.minimum(persons.age + 1, _OLDEST), persons.age)
    persons.diagnosis = np.where(known, _progress().draw(rng, persons.diagnosis), persons.diagnosis)
    moved = known & (rng.random(BLOCK) < _MOVE)
    persons.postcode = np.where(moved, people.postcodes(rng, people.regions(rng, BLOCK)), persons.postcode)
    chance = rng.random(BLOCK)
    persons.present = np.where(persons.present, ~known | (chance >= _LEAVE), chance < _RETURN)


def _table(ids: NDArray[np.int64], persons: _Persons, present: NDArray[np.bool_]) -> pa.Table:
    columns = {
        "patient_id": people.patient_ids(ids[present]),
        "name": persons.names.filter(pa.array(present)),
        "age": pa.array(persons.age[present], pa.int32()),
        "sex": strings(people.SEXES, persons.sex[present]),
        "region": strings(people.REGIONS, people.region_of(persons.postcode[present])),
        "postcode": strings(people.POSTCODES, persons.postcode[present]),
        "diagnosis": strings(VALUES, persons.diagnosis[present]),
    }
    return pa.table(columns)
