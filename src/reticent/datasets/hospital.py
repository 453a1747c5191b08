"""A year of hospital admissions, one per person: demographics, route, length of stay and an ICD-10 diagnosis.

The diagnosis depends on age and sex: each age band of each sex has its own mixture of chapters, and each chapter its own
long tail. Impossible diagnoses (pregnancy in men, dementia in the young) have probability zero. The most frequent
diagnosis is well below one in twenty, so l = 10 to 20 is possible. Seasonal illnesses determine the day. `visits` has the
same hospital with several admissions per person.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reticent.datasets import people
from reticent.datasets.codes import (
    AGES,
    CHAPTER_OF,
    CODES,
    FAVORED,
    FEMALE,
    LEADING,
    MALE,
    SEASONS,
    codes_in,
    is_within,
)
from reticent.datasets.draw import BATCH, BLOCK, Choice, generator, slice_blocks, strings, zipf
from reticent.datasets.seasons import CURVES, EVEN, day_shares
from reticent.errors import PolicyError
from reticent.policy.icd10 import CHAPTERS
from reticent.policy.labels import icd10_block, icd10_chapter

ROUTES = ("emergency", "general practitioner", "planned", "transfer", "outpatient clinic", "birth")

BANDS = (0, 1, 5, 15, 25, 35, 45, 55, 65, 75, 85, 107)
"""Age bands: each begins at its number and ends before the next."""

_TABLE = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
_LINES = [[part.strip() for part in line.split("|")] for line in _TABLE.splitlines()[1:]]
_CHAPTERS = {chapter: tuple(map(int, weights.split())) for chapter, weights, _ in _LINES}
"""Weights of the chapters by age band; only the proportions count."""
_PATIENTS = (55, 35, 50, 65, 85, 80, 95, 135, 160, 170, 70)
_FEMALE_SHARE = (0.48, 0.46, 0.47, 0.56, 0.64, 0.56, 0.49, 0.47, 0.48, 0.54, 0.65)
# Mean stay in days, youngest to oldest band.
_STAY = (4.5, 2.8, 3.2, 4.0, 3.8, 4.4, 5.2, 6.0, 7.0, 8.2, 8.8)
_LONGEST_STAY = 52

_WARDS = {chapter: ward for chapter, _, ward in _LINES if ward}
WARDS = (*dict.fromkeys(_WARDS.values()), "internal medicine", "surgery", "intensive care", "geriatrics", "day clinic")
"""All wards."""

DAY_ZERO = np.datetime64("2025-01-01")
"""The first day of the year of all admissions."""

_DAYS = 365
_RARE = 0.001
"""Diagnoses below this share have no own value in the prior."""


def batches(n: int, seed: int = 0, size: int = BATCH) -> Iterator[pa.Table]:
    """Yield ``n`` admissions in tables of ``size`` rows; the rows do not depend on ``size``."""
    return slice_blocks(lambda number: _block(seed, number), n, size)


def generate(n: int, seed: int = 0) -> pa.Table:
    """Return ``n`` admissions as one table.

    >>> generate(2).column_names[:4]
    ['patient_id', 'name', 'birth_date', 'sex']
    """
    return pa.concat_tables(batches(n, seed)).combine_chunks()


def _block(seed: int, number: int) -> pa.Table:
    rng = generator(seed, "hospital", number)
    band, sex = bands_and_sexes(rng, BLOCK)
    age = _age(rng, band)
    diagnosis = diagnoses().draw(rng, profile(band, sex))
    region = people.regions(rng, BLOCK)
    admitted = DAY_ZERO + days(generator(seed, "hospital days", number), diagnosis, rng.integers(0, _DAYS, BLOCK))
    born = admitted - (age * 365.2425 + rng.random(BLOCK) * 365).astype(np.int64)
    columns = {
        "patient_id": people.patient_ids(np.arange(BLOCK) + number * BLOCK),
        "name": people.names(rng, sex),
        "birth_date": pa.array(born, pa.date32()),
        "sex": strings(people.SEXES, sex),
        "region": strings(people.REGIONS, region),
        "postcode": strings(people.POSTCODES, people.postcodes(rng, region)),
        "admission_route": strings(ROUTES, ROUTE.draw(rng, band)),
        "admission_date": pa.array(admitted, pa.date32()),
        "length_of_stay": pa.array(stays(rng, band), pa.int32()),
        "ward": strings(WARDS, wards(rng, band, diagnosis)),
        "diagnosis": strings(CODES, diagnosis),
    }
    return pa.table(columns)


def bands_and_sexes(rng: np.random.Generator, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw the age band and the sex of ``count`` patients."""
    band = _BAND.draw(rng, 0, count)
    return band, (rng.random(count) >= np.asarray(_FEMALE_SHARE)[band]).astype(np.int64)


def days(rng: np.random.Generator, diagnosis: NDArray[np.int64], even: NDArray[np.int64]) -> NDArray[np.int64]:
    """Draw the day of the year for each diagnosis by its season; without a season, take the day in ``even``."""
    curve = _curve()[diagnosis]
    rows = np.flatnonzero(curve)
    day = even.copy()
    day[rows] = _DAY.draw(rng, curve[rows])
    return day


@cache
def _curve() -> NDArray[np.int64]:
    """Return the row of ``_DAY`` for each of ``CODES``; 0 has no season."""
    names = [next((name for span, name in SEASONS if is_within(code, span)), None) for code in CODES]
    return np.array([1 + list(CURVES).index(name) if name else 0 for name in names])


def true_shares(age: int, sex: str) -> NDArray[np.float64]:
    """Return the true shares of ``CODES`` among the patients of an age and sex.

    >>> float(true_shares(30, "male")[CODES.index("O80")])
    0.0
    """
    if not 0 <= age < BANDS[-1] or sex not in people.SEXES:
        raise PolicyError(
            "Age or sex is out of range.", hint=f"Use an age of 0 to {BANDS[-1] - 1}, and female or male."
        )
    band = np.searchsorted(BANDS, age, side="right") - 1
    return np.asarray(diagnoses().shares[band * len(people.SEXES) + people.SEXES.index(sex)])


def prior() -> pa.Table:
    """Return the prior, as from public statistics: counts of a million patients by sex, decade of birth and diagnosis.

    A diagnosis below one in a thousand is counted with its block or chapter, as `A00-A09, other`.

    >>> prior().column_names
    ['sex', 'birth_date', 'value', 'count']
    """
    labels, place = np.unique(_domain(), return_inverse=True)
    rows = []
    for decade, ages in _decades().items():
        for sex, name in enumerate(people.SEXES):
            shares = np.bincount(place, sum(p * _code_shares(band, sex) for band, p in ages), minlength=len(labels))
            counts = np.ceil(shares * 1e6 - 0.5).astype(int)
            rows += [(name, decade, str(labels[at]), int(counts[at])) for at in np.flatnonzero(counts)]
    columns = zip(*rows, strict=True)
    return pa.table(dict(zip(("sex", "birth_date", "value", "count"), map(list, columns), strict=True)))


def _code_shares(band: int, sex: int) -> NDArray[np.float64]:
    """Return the share of each code and this sex among the patients of an age band."""
    women = _FEMALE_SHARE[band]
    return np.asarray(diagnoses().shares[band * len(people.SEXES) + sex] * (1 - women if sex else women))


def _domain() -> list[str]:
    """Return the value of the prior for each code: the code itself, or the rest of its block or chapter."""
    bands = enumerate(np.asarray(_PATIENTS) / sum(_PATIENTS))
    total = sum(p * (_code_shares(band, 0) + _code_shares(band, 1)) for band, p in bands)
    labels = np.array(CODES, dtype=object)
    for node in (icd10_block, icd10_chapter):
        _, place = np.unique(labels.astype(str), return_inverse=True)
        rare = np.bincount(place, total)[place] < _RARE
        labels[rare] = [f"{node(code)}, other" for code in np.array(CODES)[rare]]
    return [str(label) for label in labels]


def _decades() -> dict[str, list[tuple[int, float]]]:
    """Return the age bands in each decade of birth, with the share of patients in each."""
    shares: dict[str, list[tuple[int, float]]] = {}
    for band, weight in enumerate(_PATIENTS):
        low, high = BANDS[band], BANDS[band + 1]
        steps = np.arange(high - low + 1) / (high - low)
        within_band = np.diff(np.cbrt(steps) if high == BANDS[-1] else steps)
        for age, part in zip(range(low, high), within_band, strict=True):
            for year in (2024 - age, 2025 - age):  # persons of one age were born in two calendar years
                label = f"{year // 10}0s"
                shares.setdefault(label, []).append((band, float(part) * weight / sum(_PATIENTS) / 2))
    return shares


def _age(rng: np.random.Generator, band: NDArray[np.int64]) -> NDArray[np.int64]:
    low, high = np.asarray(BANDS)[band], np.asarray(BANDS)[band + 1]
    part = rng.random(len(band))
    # Above 85, higher ages quickly become rare; below, ages are about uniform.
    part = np.where(band == len(BANDS) - 2, part**3, part)
    return np.asarray(low + (part * (high - low)).astype(np.int64))


def stays(rng: np.random.Generator, band: NDArray[np.int64]) -> NDArray[np.int64]:
    """Draw the length of stay of each person in days."""
    days = rng.gamma(1.3, np.asarray(_STAY)[band] / 1.3)
    return np.minimum(days.astype(np.int64), _LONGEST_STAY)


def profile(band: NDArray[np.int64], sex: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the row of ``diagnoses()`` for each age band and sex."""
    return np.asarray(band * len(people.SEXES) + sex)


@cache
def diagnoses() -> Choice:
    """Return the distribution of ``CODES`` in each profile: by age band, women before men."""
    from_chapter, tail = np.asarray(CHAPTER_OF), _tails()
    rows = list(_CHAPTERS)
    row_of = np.array([rows.index(roman) if roman in rows else -1 for _, _, roman in CHAPTERS])[from_chapter]
    bands = len(BANDS) - 1
    weights = np.zeros((bands, len(people.SEXES), len(CODES)))
    for band in range(bands):
        allowed = np.array([_fits_age(code, BANDS[band], BANDS[band + 1] - 1) for code in CODES])
        factor = np.array([_favor(code, BANDS[band]) for code in CODES])
        chapters = np.array([row[band] for row in _CHAPTERS.values()])[row_of]
        for sex, barred in enumerate((MALE, FEMALE)):
            share = tail * (allowed & ~codes_in(barred)) * factor
            total = np.bincount(from_chapter, share, minlength=22)[from_chapter]
            weights[band, sex] = np.divide(share * chapters, total, out=np.zeros_like(share), where=total > 0)
    # Breast cancer in men: rare, not impossible.
    weights[:, 1, CODES.index("C50")] *= 0.01
    return Choice(weights.reshape(-1, len(CODES)))


def _tails() -> NDArray[np.float64]:
    """Return the share of each category in its chapter: frequent ones first, others in a fixed random order."""
    order = np.random.default_rng(20).permutation(len(CODES))
    lead = {code: rank for rank, code in enumerate(LEADING)}
    rank = np.array([lead.get(code, len(LEADING) + order[i]) for i, code in enumerate(CODES)])
    share = np.zeros(len(CODES))
    for number in set(CHAPTER_OF):
        members = np.flatnonzero(np.asarray(CHAPTER_OF) == number)
        share[members[np.argsort(rank[members])]] = zipf(len(members), 1.25, 0.8)
    return share


def _fits_age(code: str, low: int, high: int) -> bool:
    return all(first <= low and high <= last for span, first, last in AGES if is_within(code, span))


def _favor(code: str, age: int) -> float:
    return max(
        (factor for span, first, last, factor in FAVORED if is_within(code, span) and first <= age <= last), default=1
    )


def wards(rng: np.random.Generator, band: NDArray[np.int64], diagnosis: NDArray[np.int64]) -> NDArray[np.int64]:
    """Draw a ward for each diagnosis, as position in ``WARDS``."""
    of_chapter = np.array([WARDS.index(_WARDS.get(roman, "internal medicine")) for _, _, roman in CHAPTERS])
    usual = of_chapter[np.asarray(CHAPTER_OF)[diagnosis]]
    child = (band > 0) & (band < 3) & (rng.random(len(band)) < 0.7)
    usual = np.where(child, WARDS.index("paediatrics"), usual)
    other = rng.integers(WARDS.index("internal medicine"), len(WARDS), len(band))
    return np.where(rng.random(len(band)) < 0.25, other, usual)


_BAND = Choice(_PATIENTS)
_DAY = Choice([day_shares(curve) for curve in (EVEN, *CURVES.values())])
ROUTE = Choice([(30, 8, 4, 8, 2, 48)] + [(46, 20, 22, 5, 7, 0)] * 4 + [(40, 20, 28, 6, 6, 0)] * 6)
