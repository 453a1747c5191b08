"""The hospital with several admissions per person within the year; the visits of a person are adjacent rows.

Every person has a main illness, drawn from the hospital's distribution for age and sex, and one visit for it. Chronically
ill persons come more often. A further visit is for the same illness (mostly if it is chronic, sometimes if not). Otherwise
it is for another illness of the chapter or for any illness of the age and sex, about equally often. Birth comes first and
death last; illnesses that happen once do not return. Each hundred persons have exactly a hundred times the mean number
of visits, so 60,000 rows with a mean of 3 are 20,000 persons.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reticent.datasets import codes, hospital, people
from reticent.datasets.codes import CHAPTER_OF, CODES
from reticent.datasets.draw import BATCH, BLOCK, Choice, generator, slice_blocks, strings
from reticent.errors import PolicyError
from reticent.policy.icd10 import CHAPTERS

MAX_MEAN = 50
"""The largest mean number of visits."""

_GROUP = 100
_CHRONIC_VISITS = 3.0  # factor for further visits of chronically ill persons
_SAME_CHRONIC, _SAME_ACUTE, _RELATED = 0.65, 0.25, 0.5
_YEAR = 365.2425


@dataclass(frozen=True)
class _Visits:
    """The visits of a block: person, number of the visit, day of the year, and diagnosis."""

    person: NDArray[np.int64]
    number: NDArray[np.int64]
    day: NDArray[np.int64]
    diagnosis: NDArray[np.int64]


def admissions(n: int, seed: int = 0, size: int = BATCH, visits: float | None = None) -> Iterator[pa.Table]:
    """Yield ``n`` rows of the hospital, with a mean of ``visits`` per person, by default one per person."""
    return hospital.batches(n, seed, size) if visits is None else batches(n, seed, size, mean=visits)


def batches(n: int, seed: int = 0, size: int = BATCH, *, mean: float = 3.0) -> Iterator[pa.Table]:
    """Yield ``n`` admissions of about ``n / mean`` persons in tables of ``size`` rows; rows do not depend on ``size``."""
    if not 1 <= mean <= MAX_MEAN:
        raise PolicyError("The mean number of visits is out of range.", hint=f"Give 1 to {MAX_MEAN} visits per person.")
    rows = round(_GROUP * mean)
    groups = max(1, BLOCK // rows)
    return slice_blocks(lambda number: _block(seed, number, groups, rows), n, size, groups * rows)


def generate(n: int, seed: int = 0, *, mean: float = 3.0) -> pa.Table:
    """Return ``n`` admissions of about ``n / mean`` persons as one table.

    >>> len(generate(300)["patient_id"].unique())
    100
    """
    return pa.concat_tables(batches(n, seed, mean=mean)).combine_chunks()


def _block(seed: int, number: int, groups: int, rows: int) -> pa.Table:
    rng = generator(seed, f"visits {rows}", number)
    count = groups * _GROUP
    band, sex = hospital.bands_and_sexes(rng, count)
    visits = _visits(rng, hospital.profile(band, sex), groups, rows)
    who, here = visits.person, band[visits.person]
    region = people.regions(rng, count)
    postcode = people.postcodes(rng, region)
    columns = {
        "patient_id": people.patient_ids(np.arange(count) + number * count).take(pa.array(who)),
        "visit": pa.array(visits.number, pa.int32()),
        "name": people.names(rng, sex).take(pa.array(who)),
        "birth_date": pa.array(_birth_dates(rng, band, visits)[who], pa.date32()),
        "sex": strings(people.SEXES, sex[who]),
        "region": strings(people.REGIONS, region[who]),
        "postcode": strings(people.POSTCODES, postcode[who]),
        "admission_route": strings(hospital.ROUTES, _route(rng, here, visits)),
        "admission_date": pa.array(hospital.DAY_ZERO + visits.day, pa.date32()),
        "length_of_stay": pa.array(_stay(rng, here, visits), pa.int32()),
        "ward": strings(hospital.WARDS, hospital.wards(rng, here, visits.diagnosis)),
        "diagnosis": strings(CODES, visits.diagnosis),
    }
    return pa.table(columns)


def _visits(rng: np.random.Generator, profile: NDArray[np.int64], groups: int, rows: int) -> _Visits:
    main = hospital.diagnoses().draw(rng, profile)
    counts = _counts(rng, main, groups, rows)
    person = np.repeat(np.arange(len(main)), counts)
    start = np.repeat(np.cumsum(counts) - counts, counts)
    number = np.arange(len(person)) - start
    diagnosis = np.where(number == 0, main[person], _further_diagnoses(rng, main[person], profile[person]))
    day = hospital.days(rng, diagnosis, rng.integers(0, 365, len(person)))
    # Each person's days increase; diagnoses follow their days, except birth (first) and death (last).
    place = codes.codes_in(codes.DEATH).astype(np.int64) - codes.codes_in(codes.BIRTH)
    order = np.lexsort((day, place[diagnosis], person))
    return _Visits(person, number + 1, day[np.lexsort((day, person))], diagnosis[order])


def _counts(rng: np.random.Generator, main: NDArray[np.int64], groups: int, rows: int) -> NDArray[np.int64]:
    """Draw the number of visits per person: at least one, with a fixed total per group of persons."""
    frailty = np.where(_chronic_and_once()[0][main], _CHRONIC_VISITS, 1.0) * rng.gamma(2.0, 0.5, len(main))
    group = np.repeat(np.arange(groups), rows - _GROUP)
    further = Choice(frailty.reshape(groups, _GROUP)).draw(rng, group) + group * _GROUP
    return np.asarray(1 + np.bincount(further, minlength=len(main)))


def _further_diagnoses(
    rng: np.random.Generator, main: NDArray[np.int64], profile: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Draw the diagnoses of visits after the one for the main illness."""
    chronic, once = _chronic_and_once()
    same = rng.random(len(main)) < np.where(chronic[main], _SAME_CHRONIC, _SAME_ACUTE)
    chapter = np.asarray(CHAPTER_OF)[main]
    near = _related_diagnoses().draw(rng, profile * len(CHAPTERS) + chapter)
    other = np.where(rng.random(len(main)) < _RELATED, near, _later_diagnoses().draw(rng, profile))
    return np.where(same & ~once[main], main, other)


def _birth_dates(rng: np.random.Generator, band: NDArray[np.int64], visits: _Visits) -> NDArray[np.datetime64]:
    """Draw birth dates so that everybody stays in the age band within the year."""
    bounds = np.asarray(hospital.BANDS)
    low, high = bounds[band], bounds[band + 1]
    part = rng.random(len(band))
    part = np.where(band == len(bounds) - 2, part**3, part)  # above 85, higher ages quickly become rare
    age = (low + part * (high - 1 - low)) * _YEAR
    first = visits.number == 1
    birth = codes.codes_in(codes.BIRTH)[visits.diagnosis[first]]
    baby = np.where(birth, visits.day[first], (part * (visits.day[first] + 1)).astype(np.int64))
    return np.asarray(hospital.DAY_ZERO + np.where(band == 0, baby, -np.ceil(age).astype(np.int64)))


def _route(rng: np.random.Generator, band: NDArray[np.int64], visits: _Visits) -> NDArray[np.int64]:
    route = hospital.ROUTE.draw(rng, band)
    again = (route == hospital.ROUTES.index("birth")) & (visits.number > 1)
    return np.where(again, hospital.ROUTES.index("emergency"), route)


def _stay(rng: np.random.Generator, band: NDArray[np.int64], visits: _Visits) -> NDArray[np.int64]:
    """Draw lengths of stay that end before the person's next admission."""
    gap = np.append(np.diff(visits.day), 365)
    last = np.append(np.diff(visits.person) > 0, True)
    stay = hospital.stays(rng, band)
    return np.where(last, stay, np.minimum(stay, gap))


@cache
def _chronic_and_once() -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which codes are chronic, and which happen once."""
    return codes.codes_in(codes.CHRONIC), codes.codes_in(codes.ONCE)


@cache
def _later_diagnoses() -> Choice:
    """Return the hospital's distribution without illnesses that happen once."""
    return Choice(hospital.diagnoses().shares * ~_chronic_and_once()[1])


@cache
def _related_diagnoses() -> Choice:
    """Return the distribution within a chapter (second part of the profile); over all codes if the chapter is empty."""
    shares = _later_diagnoses().shares[:, None, :]
    near = shares * (np.asarray(CHAPTER_OF) == np.arange(len(CHAPTERS))[:, None])
    weights = np.where(near.any(axis=2, keepdims=True), near, shares)
    return Choice(weights.reshape(-1, len(CODES)))
