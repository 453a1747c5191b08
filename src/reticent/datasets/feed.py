"""Admissions in order of time: about 1,200 a day, with busy mornings and quiet nights.

Persons live in households. Of eight admissions, five are the first of a household, one is a relative of an earlier
person, and two are persons who return. The illness depends on age, sex and month (`illnesses`). A relative of a person
with a contagious illness may follow within days with the same illness. Chronically ill persons return more often, mostly
with the same illness; about half of the other illnesses are in its chapter. An outbreak is optional.

A block of rows depends only on the seed, its number and the outbreak. Persons of earlier blocks are drawn again when
needed, so memory contains a few blocks for any length. ``prior_by_sex`` counts four fortnights of the year before, one of
each season, at the same hospital with other random numbers.

Not in the data: aging, moving and death; illness before the feed begins; infection outside the household; wards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reticent.datasets import households, illnesses, people
from reticent.datasets.draw import BATCH, BLOCK, Choice, generator, slice_blocks, strings
from reticent.datasets.illnesses import VALUES, Outbreak
from reticent.datasets.seasons import MONTHS

ROUTES = ("emergency", "general practitioner", "planned", "transfer", "outpatient clinic", "ambulance")

_FOUNDER, _RELATIVE, _RETURN = range(3)
_FOUNDERS, _RELATIVES = BLOCK * 5 // 8, BLOCK // 8
_NEW = _FOUNDERS + _RELATIVES
_REFERENCE_BLOCKS = 4  # blocks to look back for earlier persons, about eight weeks
_SOON, _LATE, _BACK = (
    1_500.0,
    8_000.0,
    4_000.0,
)  # mean distances, in founders (2 and 10 days) and in new persons (4 days)
_SOURCES = 3  # founders checked for a contagious illness, so that about half of these infect a relative
_CATCH = 0.85
_CANDIDATES = 3  # persons checked for a chronic illness before any other person returns
_SAME_CHRONIC, _SAME_ACUTE, _RELATED = 0.65, 0.25, 0.45
_PAST = (3, 10, 16, 23)  # blocks of a fortnight each: February, May, August, November
_PER_DAY = 1_200.0
_PRIOR_TOTAL = 1_000_000  # number of records in the prior
_START = np.datetime64("2026-01-05T00:00:00")  # a Monday
_HOURS = (3, 2, 2, 2, 2, 3, 5, 9, 12, 13, 13, 12, 11, 11, 10, 9, 9, 8, 8, 7, 6, 5, 4, 4)
_WEEKDAYS = (1.15, 1.1, 1.05, 1.05, 1.05, 0.85, 0.75)

_CATCHING, _CHRONIC, _ONCE = (illnesses.values_with_flag(flag) for flag in ("catching", "chronic", "once"))
_ROUTE = Choice((38, 18, 20, 6, 8, 10))


@dataclass(frozen=True)
class _Source:
    """The parameters of all rows of a feed."""

    seed: int
    kind: str = "feed"
    outbreak: Outbreak | None = None

    def rng(self, part: str, number: int) -> np.random.Generator:
        return generator(self.seed, f"{self.kind} {part}", number)


@dataclass(frozen=True)
class _Plan:
    """The admission times of a block, and which admissions are founders, relatives and returning persons."""

    role: NDArray[np.int64]
    time: NDArray[np.datetime64]
    month: NDArray[np.int64]

    def rows(self, role: int) -> NDArray[np.int64]:
        return np.flatnonzero(self.role == role)


def batches(n: int, seed: int = 0, size: int = BATCH, *, outbreak: str | None = None) -> Iterator[pa.Table]:
    """Yield ``n`` admissions in tables of ``size`` rows, in order of time; the rows do not depend on ``size``.

    ``outbreak`` is the diagnosis of an outbreak in the middle of the feed, if any.
    """
    source = _Source(seed, outbreak=Outbreak.in_middle(n, outbreak) if outbreak else None)
    return slice_blocks(lambda number: _table(source, number), n, size)


def generate(n: int, seed: int = 0, *, outbreak: str | None = None) -> pa.Table:
    """Return ``n`` admissions as one table.

    >>> generate(1).column_names[:4]
    ['admitted', 'patient_id', 'household', 'age']
    """
    return pa.concat_tables(batches(n, seed, outbreak=outbreak)).combine_chunks()


def prior_by_sex(seed: int = 0) -> pa.Table:
    """Count each diagnosis in the year before, by sex: a table of sex, value and count."""
    source = _Source(seed, "feed past")
    counts = np.zeros((len(people.SEXES), len(VALUES)), dtype=np.int64)
    for number in _PAST:
        persons = _admissions(source, number)[1]
        np.add.at(counts, (persons.sex, persons.diagnosis), 1)
    return _prior_table([(sex, row) for sex, row in zip(people.SEXES, counts, strict=True)], ("sex",))


def strata() -> pa.Table:
    """Return the distribution of the feed by sex and age, as a prior table: what is publicly known."""
    shares = [(sex, band, np.ceil(share * _PRIOR_TOTAL).astype(np.int64)) for sex, band, share in illnesses.strata()]
    return _prior_table(shares, ("sex", "age"))


def kernel() -> pa.Table:
    """Return the transition kernel of a person's diagnoses, as a table of value, next and probability."""
    following = illnesses.transition_matrix(np.where(_CHRONIC, _SAME_CHRONIC, _SAME_ACUTE), _RELATED)
    at, to = np.nonzero(following)
    values = pa.array(VALUES, pa.string())
    chance = np.round(following[at, to], 9)
    return pa.table({"value": values.take(pa.array(at)), "next": values.take(pa.array(to)), "probability": chance})


def _prior_table(rows: list[tuple[Any, ...]], by: tuple[str, ...]) -> pa.Table:
    """Build a prior table from strata and their counts; impossible values have no row."""
    lines = [
        (*cells, value, int(count))
        for *cells, counts in rows
        for value, count in zip(VALUES, counts, strict=True)
        if count
    ]
    return pa.table(dict(zip((*by, "value", "count"), map(list, zip(*lines, strict=True)), strict=True)))


def _table(source: _Source, number: int) -> pa.Table:
    who, persons = _admissions(source, number)
    region = people.region_of(persons.postcode)
    columns = {
        "admitted": pa.array(_plan(source, number).time, pa.timestamp("s")),
        "patient_id": people.patient_ids(who),
        "household": people.household_ids(persons.household),
        "age": pa.array(persons.age, pa.int32()),
        "sex": strings(people.SEXES, persons.sex),
        "region": strings(people.REGIONS, region),
        "postcode": strings(people.POSTCODES, persons.postcode),
        "admission_route": strings(ROUTES, _ROUTE.draw(source.rng("routes", number), 0, BLOCK)),
        "diagnosis": strings(VALUES, persons.diagnosis),
    }
    return pa.table(columns)


def _admissions(source: _Source, number: int) -> tuple[NDArray[np.int64], households.Persons]:
    """Return the person numbers of a block's admissions, and the persons with their diagnosis."""
    plan = _plan(source, number)
    new, back = np.flatnonzero(plan.role != _RETURN), plan.rows(_RETURN)
    who = np.empty(BLOCK, dtype=np.int64)
    who[new] = number * _NEW + np.arange(_NEW)
    who[back], returning = _returns(source, number)
    return who, households.merge(BLOCK, [(new, _persons(source, number)), (back, returning)])


def _returns(source: _Source, number: int) -> tuple[NDArray[np.int64], households.Persons]:
    """Draw the persons who return, preferably chronically ill ones, with the diagnosis of this visit."""
    plan, rng = _plan(source, number), source.rng("returns", number)
    rows = plan.rows(_RETURN)
    seen = number * _NEW + np.cumsum(plan.role != _RETURN)[rows]
    window = _window(source, number)
    choice = _earlier_persons(rng, _BACK, seen, _NEW, _CANDIDATES)
    who = _first_match(choice, _CHRONIC[window.diagnosis[choice - _first_block(number) * _NEW]])
    persons = window.take(who - _first_block(number) * _NEW)
    return who, persons.with_diagnosis(_later_diagnosis(source, rng, persons, rows + number * BLOCK, plan.month[rows]))


def _later_diagnosis(
    source: _Source,
    rng: np.random.Generator,
    persons: households.Persons,
    rows: NDArray[np.int64],
    month: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Draw the diagnosis of a later visit: the same, another of its chapter, or any for the age and sex."""
    before = persons.diagnosis
    profile = illnesses.profile(persons.age, persons.sex, month)
    same = rng.random(len(rows)) < np.where(_CHRONIC[before], _SAME_CHRONIC, _SAME_ACUTE)
    related = rng.random(len(rows)) < _RELATED
    near = illnesses.related_onset().draw(rng, profile * len(VALUES) + before)
    other = np.where(related, near, illnesses.later_onset().draw(rng, profile))
    return np.where(same & ~_ONCE[before], before, _add_outbreak(source, rng, other, profile, rows))


@lru_cache(maxsize=2 * _REFERENCE_BLOCKS)
def _persons(source: _Source, number: int) -> households.Persons:
    """Draw the new persons of a block in order of arrival, with the diagnosis of their first visit."""
    plan = _plan(source, number)
    role = plan.role[plan.role != _RETURN]
    parts = [
        (np.flatnonzero(role == _FOUNDER), _founders(source, number)),
        (np.flatnonzero(role == _RELATIVE), _relatives(source, number)),
    ]
    return households.merge(_NEW, parts)


@lru_cache(maxsize=2 * _REFERENCE_BLOCKS)
def _founders(source: _Source, number: int) -> households.Persons:
    plan, rng = _plan(source, number), source.rng("founders", number)
    rows = plan.rows(_FOUNDER)
    persons = households.founders(rng, number * _FOUNDERS + np.arange(_FOUNDERS))
    profile = illnesses.profile(persons.age, persons.sex, plan.month[rows])
    diagnosis = illnesses.onset().draw(rng, profile)
    return persons.with_diagnosis(_add_outbreak(source, rng, diagnosis, profile, rows + number * BLOCK))


def _relatives(source: _Source, number: int) -> households.Persons:
    """Draw relatives: soon after a contagious founder, mostly with the same illness, else later with another."""
    plan, rng = _plan(source, number), source.rng("relatives", number)
    rows = plan.rows(_RELATIVE)
    seen = number * _FOUNDERS + np.cumsum(plan.role == _FOUNDER)[rows]
    hosts = households.concatenate([_founders(source, block) for block in range(_first_block(number), number + 1)])
    soon = _earlier_persons(rng, _SOON, seen, _FOUNDERS, _SOURCES) - _first_block(number) * _FOUNDERS
    late = _earlier_persons(rng, _LATE, seen, _FOUNDERS, 1)[0] - _first_block(number) * _FOUNDERS
    catching = _CATCHING[hosts.diagnosis[soon]]
    host = hosts.take(np.where(catching.any(axis=0), _first_match(soon, catching), late))
    persons = households.relatives(rng, host)
    profile = illnesses.profile(persons.age, persons.sex, plan.month[rows])
    caught = catching.any(axis=0) & (rng.random(len(rows)) < _CATCH)
    caught &= illnesses.onset().shares[profile, host.diagnosis] > 0
    own = _add_outbreak(source, rng, illnesses.onset().draw(rng, profile), profile, rows + number * BLOCK)
    return persons.with_diagnosis(np.where(caught, host.diagnosis, own))


def _add_outbreak(
    source: _Source,
    rng: np.random.Generator,
    diagnosis: NDArray[np.int64],
    profile: NDArray[np.int64],
    rows: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Add the outbreak to the diagnoses: the share of its diagnosis is multiplied at every age and sex."""
    chance = rng.random(len(rows))  # always drawn, so that an outbreak does not change the rows before it
    if not source.outbreak:
        return diagnosis
    epidemic = VALUES.index(source.outbreak.value)
    share = illnesses.onset().shares[profile, epidemic]
    extra = (source.outbreak.strength(rows) - 1) * share / np.maximum(1 - share, share)
    return np.where(chance < extra, epidemic, diagnosis)


def _earlier_persons(
    rng: np.random.Generator, mean: float, seen: NDArray[np.int64], per_block: int, count: int
) -> NDArray[np.int64]:
    """Draw ``count`` earlier persons for each number of persons so far in ``seen``; recent ones are more likely."""
    back = rng.exponential(mean, (count, len(seen))).astype(np.int64)
    # Early in a feed there are few persons; the remainder always finds one, so short feeds have returns too.
    return np.asarray(seen - 1 - back % np.minimum(seen, (_REFERENCE_BLOCKS - 1) * per_block))


def _first_match(choice: NDArray[np.int64], wanted: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return, per column, the first choice that is wanted; the first choice if none is."""
    return np.asarray(choice[wanted.argmax(axis=0), np.arange(choice.shape[1])])


def _first_block(number: int) -> int:
    """Return the earliest block that a block refers to."""
    return max(0, number - _REFERENCE_BLOCKS + 1)


def _window(source: _Source, number: int) -> households.Persons:
    return households.concatenate([_persons(source, block) for block in range(_first_block(number), number + 1)])


@lru_cache(maxsize=2 * _REFERENCE_BLOCKS)
def _plan(source: _Source, number: int) -> _Plan:
    """Draw the plan of a block; every block has the same number of new persons, so person numbers are known."""
    rng = source.rng("plan", number)
    role = np.repeat([_FOUNDER, _RELATIVE, _RETURN], [_FOUNDERS - 1, _RELATIVES, BLOCK - _NEW])
    time = _times(rng, number)
    month = time.astype("datetime64[M]").astype(np.int64) % MONTHS
    return _Plan(np.concatenate([[_FOUNDER], rng.permutation(role)]), time, month)


def _times(rng: np.random.Generator, number: int) -> NDArray[np.datetime64]:
    """Draw increasing arrival times: uniform in expected admissions, mapped to the hospital's weekly pattern."""
    hour = np.outer(_WEEKDAYS, np.asarray(_HOURS) / np.mean(_HOURS)).ravel() * _PER_DAY / 24
    week = np.concatenate([[0.0], np.cumsum(hour)])
    even = np.sort(rng.random(BLOCK)) * BLOCK + number * BLOCK
    weeks, rest = np.divmod(even, week[-1])
    seconds = np.interp(rest, week, np.arange(len(week)) * 3_600.0) + weeks * 7 * 86_400
    return np.asarray(_START + seconds.astype(np.int64))
