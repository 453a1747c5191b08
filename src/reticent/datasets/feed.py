"""Admissions in the order of time: about 1,200 a day, busy mornings, quiet nights, one in four by a person seen before.

A returning person keeps id, sex and home; in two visits of five also the diagnosis. Sixty diagnoses, the most frequent
below one in fifteen, so that a stream with l = 10 can be met. ``prior`` counts the diagnoses of an earlier time, made
by the same hospital and another source of randomness.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from reticent.datasets import people
from reticent.datasets.draw import BATCH, BLOCK, Choice, generator, sliced, strings, zipf

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

# Only women (f), only men (m), only children (c), only the old (o), only adults (a); no mark: anyone.
_DIAGNOSES = """
heart failure:a, pneumonia, atrial fibrillation:a, gallstones:a, stroke:a, hip fracture:o, concussion, appendicitis,
childbirth:f, chronic bronchitis:a, urinary tract infection, myocardial infarction:a, gastroenteritis, alcohol
dependence:a, depression, type 2 diabetes:a, inguinal hernia, knee arthrosis:a, forearm fracture, asthma, sepsis,
lung cancer:a, breast cancer:f, prostate cancer:m, colon cancer:a, epilepsy, back pain:a, influenza, dehydration,
tonsillitis, schizophrenia:a, anxiety disorder, migraine, kidney stones:a, kidney failure:a, cirrhosis:a,
pancreatitis:a, diverticulitis:a, gastric ulcer:a, anaemia, psoriasis, cellulitis, cataract:o, glaucoma:o,
dementia:o, parkinson disease:o, multiple sclerosis:a, pulmonary embolism:a, deep vein thrombosis:a, hypertension:a,
thyroid disease, crohn disease, leukaemia, lymphoma, hiv infection:a, tuberculosis, hepatitis c:a, threatened
miscarriage:f, bronchiolitis:c, febrile convulsion:c
"""
_MARKED = [entry.strip().partition(":")[::2] for entry in _DIAGNOSES.replace("\n", " ").split(",")]
VALUES: tuple[str, ...] = tuple(name for name, _ in _MARKED)
"""Every diagnosis of the feed."""

ROUTES = ("emergency", "general practitioner", "planned", "transfer", "outpatient clinic", "ambulance")

_NEW = BLOCK * 3 // 4
_SAME = 0.4
_PAST_BLOCKS = 4
_PER_DAY = 1_200.0
_START = np.datetime64("2026-01-05T00:00:00")  # a Monday
_HOURS = (3, 2, 2, 2, 2, 3, 5, 9, 12, 13, 13, 12, 11, 11, 10, 9, 9, 8, 8, 7, 6, 5, 4, 4)
_WEEKDAYS = (1.15, 1.1, 1.05, 1.05, 1.05, 0.85, 0.75)


def batches(n: int, seed: int = 0, size: int = BATCH) -> Iterator[pa.Table]:
    """``n`` admissions in tables of ``size`` rows, in the order of time; the rows do not depend on ``size``."""
    return sliced(lambda number: _block(seed, number), n, size)


def generate(n: int, seed: int = 0) -> pa.Table:
    """``n`` admissions as one table.

    >>> generate(1).column_names[:3]
    ['admitted', 'patient_id', 'age']
    """
    return pa.concat_tables(batches(n, seed)).combine_chunks()


def prior(seed: int = 0) -> pa.Table:
    """How often each diagnosis was seen in the past, as a table of value and count."""
    counts = np.zeros(len(VALUES), dtype=np.int64)
    for number in range(_PAST_BLOCKS):
        rng = generator(seed, "feed past", number)
        age, sex, _ = _persons_from(rng, BLOCK)
        counts += np.bincount(_diagnoses().draw(rng, _profile(age, sex)), minlength=len(VALUES))
    return pa.table({"value": pa.array(VALUES, pa.string()), "count": counts})


def _block(seed: int, number: int) -> pa.Table:
    rng = generator(seed, "feed", number)
    who, new = _who(rng, number)
    age, sex, postcode, usual = _lookup(seed, who)
    other = _diagnoses().draw(rng, _profile(age, sex))
    again = ~new & (rng.random(BLOCK) >= _SAME)
    columns = {
        "admitted": pa.array(_times(rng, number), pa.timestamp("s")),
        "patient_id": people.patient_ids(who),
        "age": pa.array(age, pa.int32()),
        "sex": strings(people.SEXES, sex),
        "region": strings(people.REGIONS, people.region_of(postcode)),
        "postcode": strings(people.POSTCODES, postcode),
        "admission_route": strings(ROUTES, _ROUTE.draw(rng, 0, BLOCK)),
        "diagnosis": strings(VALUES, np.where(again, other, usual)),
    }
    return pa.table(columns)


def _who(rng: np.random.Generator, number: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """A person number for each admission, and whether it is the first visit.

    Each block brings the same number of new persons, so a block knows who came before it without making them.
    """
    new = np.zeros(BLOCK, dtype=np.bool_)
    new[0] = True
    new[rng.permutation(BLOCK - 1)[: _NEW - 1] + 1] = True
    seen = number * _NEW + np.cumsum(new)
    # Most come back soon: the further back a visit, the rarer its return.
    back = (rng.exponential(4_000.0, BLOCK)).astype(np.int64) % seen
    return np.where(new, seen - 1, seen - 1 - back), new


def _lookup(seed: int, who: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """Age, sex, postcode and usual diagnosis of persons, wherever in the past they first appeared."""
    found = [np.empty(len(who), dtype=np.int64) for _ in range(4)]
    block = who // _NEW
    for number in np.unique(block):
        rows = block == number
        for column, made in zip(found, _persons(seed, int(number)), strict=True):
            column[rows] = made[who[rows] - number * _NEW]
    return tuple(found)


@lru_cache(maxsize=16)
def _persons(seed: int, number: int) -> tuple[NDArray[np.int64], ...]:
    rng = generator(seed, "feed persons", number)
    age, sex, postcode = _persons_from(rng, _NEW)
    return age, sex, postcode, _diagnoses().draw(rng, _profile(age, sex))


def _persons_from(rng: np.random.Generator, count: int) -> tuple[NDArray[np.int64], ...]:
    age = (rng.beta(1.7, 1.2, count) * 100).astype(np.int64)
    sex = (rng.random(count) >= 0.52).astype(np.int64)
    return age, sex, people.postcodes(rng, people.regions(rng, count))


def _profile(age: NDArray[np.int64], sex: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(np.searchsorted((15, 50, 65), age, side="right") * 2 + sex)


@cache
def _diagnoses() -> Choice:
    """The distribution of ``VALUES`` for children, the young, the middle-aged and the old, women before men."""
    base = zipf(len(VALUES), 0.75, 6.0)
    weights = np.empty((4, 2, len(VALUES)))
    for band in range(4):
        for sex in range(2):
            weights[band, sex] = base * [_possible(name, mark, band, sex) for name, mark in _MARKED]
    return Choice(weights.reshape(8, -1))


def _possible(name: str, mark: str, band: int, sex: int) -> bool:
    if name in ("childbirth", "threatened miscarriage"):
        return band == 1 and sex == 0
    return {
        "": True,
        "f": sex == 0 and band > 0,
        "m": sex == 1 and band > 1,
        "c": band == 0,
        "a": band > 0,
        "o": band > 1,
    }[mark]


def _times(rng: np.random.Generator, number: int) -> NDArray[np.datetime64]:
    """Arrival times that rise from block to block: even in the hospital's own time, mapped through its week."""
    hour = np.outer(_WEEKDAYS, np.asarray(_HOURS) / np.mean(_HOURS)).ravel() * _PER_DAY / 24
    week = np.concatenate([[0.0], np.cumsum(hour)])
    even = np.sort(rng.random(BLOCK)) * BLOCK + number * BLOCK
    weeks, rest = np.divmod(even, week[-1])
    seconds = np.interp(rest, week, np.arange(len(week)) * 3_600.0) + weeks * 7 * 86_400
    return np.asarray(_START + seconds.astype(np.int64))


_ROUTE = Choice((38, 18, 20, 6, 8, 10))
