"""Synthetic census tables of three papers: the same attributes and domain sizes, with realistic skew and correlation.

    evolving    gender 2, age 81, quarter of birth 4, marital status 6, race 139, birthplace 219, education 24,
                occupation 479 (sensitive): Temuujin, Ahn, Im, IEEE Access 2019
    m-distinct  age 100, gender 2, marital status 6, education 17, occupation 50 (sensitive): Li, Zhou 2008
    ipums       sex 2, relationship 13, race 9, birthplace 60, children 10, education 17, occupation 200, weeks worked
                53, wage class 2 (sensitive): Wu, He, Zaiane 2013, who name the attributes and not their domains

Marital status, relationship, children, weeks worked and education depend on age, race depends on birthplace, and
occupation on education, gender and age. The wage class rises with education and weeks worked, and is higher for men and
in mid-life. With 16,384 rows or more, every value occurs. The largest share of an occupation is below 1/30 and 1/10, the
strictest l and m of the papers. Each row has a person id.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reticent.datasets.draw import BATCH, BLOCK, Choice, generator, numbered_ids, slice_blocks, strings, zipf
from reticent.errors import PolicyError

GENDERS = ("female", "male")
MARITAL = ("never married", "married", "married spouse absent", "separated", "divorced", "widowed")

# Share of each marital status in the age groups that begin at _AGE_GROUPS.
_AGE_GROUPS = (0, 20, 30, 40, 55, 70)
_MARITAL = (
    (970, 20, 3, 3, 3, 1),
    (620, 300, 20, 20, 38, 2),
    (300, 540, 20, 35, 100, 5),
    (160, 590, 20, 35, 175, 20),
    (90, 600, 18, 25, 187, 80),
    (50, 480, 15, 10, 105, 340),
)
_ORIGINS = 8
_TIERS = 4
WAGES = ("low", "high")
_LABELS = {"gender": GENDERS, "sex": GENDERS, "marital_status": MARITAL, "wage": WAGES}
# Mean number of children, and share of persons who do not work, in the same age groups.
_CHILDREN = (0.02, 0.6, 1.4, 1.6, 0.5, 0.1)
_IDLE = (0.6, 0.2, 0.15, 0.15, 0.4, 0.85)
_HIGH_WAGE = 4.0


@dataclass(frozen=True)
class Layout:
    """The domain sizes of one paper's table and the names of its columns, in the paper's order."""

    columns: tuple[str, ...]
    first_age: int
    ages: int
    education: int
    occupation: int
    tail: float
    quarter_of_birth: int = 4
    race: int = 139
    birthplace: int = 219
    relationship: int = 13
    children: int = 10
    weeks_worked: int = 53

    @property
    def sizes(self) -> dict[str, int]:
        """The domain size of each column."""
        known = {"age": self.ages} | {name: len(words) for name, words in _LABELS.items()}
        return {name: known.get(name) or int(getattr(self, name)) for name in self.columns}


LAYOUTS = {
    "evolving": Layout(
        columns=(
            *("gender", "age", "quarter_of_birth", "marital_status", "race", "birthplace", "education"),
            "occupation",
        ),
        first_age=16,
        ages=81,
        education=24,
        occupation=479,
        tail=0.8,
    ),
    "m-distinct": Layout(
        columns=("age", "gender", "marital_status", "education", "occupation"),
        first_age=1,
        ages=100,
        education=17,
        occupation=50,
        tail=0.7,
    ),
    "ipums": Layout(
        columns=(
            *("sex", "relationship", "race", "birthplace", "children", "education", "occupation", "weeks_worked"),
            "wage",
        ),
        first_age=16,
        ages=81,
        education=17,
        occupation=200,
        tail=0.8,
        race=9,
        birthplace=60,
    ),
}
"""The layouts by name."""


def batches(n: int, seed: int = 0, size: int = BATCH, *, layout: str = "evolving") -> Iterator[pa.Table]:
    """Yield ``n`` persons in tables of ``size`` rows; the rows do not depend on ``size``."""
    if layout not in LAYOUTS:
        raise PolicyError("The census layout is unknown.", hint=f"Choose one of: {', '.join(LAYOUTS)}.")
    return slice_blocks(lambda number: _block(layout, seed, number), n, size)


def generate(n: int, seed: int = 0, *, layout: str = "evolving") -> pa.Table:
    """Return ``n`` persons as one table.

    >>> generate(1, layout="m-distinct").column_names
    ['person_id', 'age', 'gender', 'marital_status', 'education', 'occupation']
    """
    return pa.concat_tables(batches(n, seed, layout=layout)).combine_chunks()


def prior(layout: str = "evolving") -> pa.Table:
    """Return the prior, as from public statistics: counts of a million persons by gender, education and occupation.

    >>> prior().column_names
    ['gender', 'education', 'value', 'count']
    """
    shape, model = LAYOUTS[layout], _model(layout)
    ages = np.searchsorted(_AGE_GROUPS, np.arange(shape.ages) + shape.first_age, side="right") - 1
    groups = np.bincount(ages, model["age"].shares[0], minlength=len(_AGE_GROUPS))
    parts = []
    for gender in range(len(GENDERS)):
        for education in range(shape.education):
            row = (education * _TIERS // shape.education * len(GENDERS) + gender) * len(_AGE_GROUPS)
            weights = groups * model["education"].shares[:, education]
            shares = weights @ model["occupation"].shares[row : row + len(_AGE_GROUPS)] / len(GENDERS)
            parts.append(_prior_part(gender, education, shares, shape))
    return pa.concat_tables(parts)


def _prior_part(gender: int, education: int, shares: NDArray[np.float64], shape: Layout) -> pa.Table:
    codes = np.arange(len(shares))
    return pa.table(
        {
            "gender": _labels("gender", np.full_like(codes, gender), shape),
            "education": _labels("education", np.full_like(codes, education), shape),
            "value": _labels("occupation", codes, shape),
            "count": np.ceil(shares * 1e6).astype(np.int64),
        }
    )


def _block(layout: str, seed: int, number: int) -> pa.Table:
    shape, model = LAYOUTS[layout], _model(layout)
    rng = generator(seed, f"census {layout}", number)
    codes = _codes(rng, shape, model)
    if number == 0:
        codes = {name: _complete(rng, codes[name], size) for name, size in shape.sizes.items()}
    columns = {"person_id": numbered_ids("C", np.arange(BLOCK) + number * BLOCK, 9)}
    columns |= {name: _labels(name, codes[name], shape) for name in shape.columns}
    return pa.table(columns)


def _codes(rng: np.random.Generator, shape: Layout, model: dict[str, Choice]) -> dict[str, NDArray[np.int64]]:
    age = model["age"].draw(rng, 0, BLOCK)
    gender = rng.integers(0, 2, BLOCK)
    group = np.searchsorted(_AGE_GROUPS, age + shape.first_age, side="right") - 1
    birthplace = model["birthplace"].draw(rng, 0, BLOCK)
    education = model["education"].draw(rng, group)
    tier = education * _TIERS // shape.education
    drawn = {
        "age": age,
        "gender": gender,
        "quarter_of_birth": rng.integers(0, 4, BLOCK),
        "marital_status": model["marital_status"].draw(rng, group),
        "race": model["race"].draw(rng, birthplace % _ORIGINS),
        "birthplace": birthplace,
        "education": education,
        "occupation": model["occupation"].draw(rng, (tier * len(GENDERS) + gender) * len(_AGE_GROUPS) + group),
    }
    return drawn | _work_columns(rng, shape, model, drawn, group) if "wage" in shape.columns else drawn


def _work_columns(
    rng: np.random.Generator,
    shape: Layout,
    model: dict[str, Choice],
    person: dict[str, NDArray[np.int64]],
    group: NDArray[np.int64],
) -> dict[str, NDArray[np.int64]]:
    """Draw the additional columns of the layout ``ipums``: family, work and wage class."""
    weeks = model["weeks_worked"].draw(rng, group)
    years = person["age"] + shape.first_age
    pay = 4.0 * person["education"] / shape.education + 2.0 * weeks / shape.weeks_worked
    pay = pay - ((years - 48) / 20.0) ** 2 + 0.7 * person["gender"] + 0.8 * rng.normal(size=BLOCK)
    return {
        "sex": person["gender"],
        "relationship": model["relationship"].draw(rng, group * len(MARITAL) + person["marital_status"]),
        "children": model["children"].draw(rng, group),
        "weeks_worked": weeks,
        "wage": (pay > _HIGH_WAGE).astype(np.int64),
    }


@cache
def _model(layout: str) -> dict[str, Choice]:
    shape = LAYOUTS[layout]
    # The population model is fixed; it does not depend on the user's seed.
    rng = np.random.default_rng([7, shape.occupation])
    years = np.arange(shape.ages) + shape.first_age
    levels = np.arange(shape.education)
    peak = np.array([0.2, 0.55, 0.65, 0.62, 0.55, 0.45])[:, None] * shape.education
    groups = _TIERS * len(GENDERS) * len(_AGE_GROUPS)
    return {
        "age": Choice(1.0 / (1.0 + np.exp((years - 68) / 9.0)) + 0.002),
        "marital_status": Choice(_MARITAL),
        "birthplace": Choice(zipf(shape.birthplace, 1.0, 4.0)),
        "race": Choice(_permute_tails(rng, zipf(shape.race, 2.0, 0.2), _ORIGINS)),
        "education": Choice(np.exp(-(((levels - peak) / (0.22 * shape.education)) ** 2)) + 0.01),
        "occupation": Choice(
            zipf(shape.occupation, shape.tail, 8.0) * rng.lognormal(0.0, 0.7, (groups, shape.occupation))
        ),
        "relationship": Choice(
            zipf(shape.relationship, 1.5, 0.5)
            * rng.lognormal(0.0, 1.0, (len(_AGE_GROUPS) * len(MARITAL), shape.relationship))
        ),
        "children": Choice(_poisson(np.array(_CHILDREN), shape.children)),
        "weeks_worked": Choice(_weeks(np.array(_IDLE), shape.weeks_worked)),
    }


def _poisson(means: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Return Poisson shares of 0, 1, ... for each mean, without the tail beyond the size."""
    counts = np.arange(size)
    shares: NDArray[np.float64] = np.exp(counts * np.log(means[:, None]) - np.cumsum(np.log(np.maximum(counts, 1))))
    return shares + 1e-5


def _weeks(idle: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Return the shares of weeks worked; most people work none or all."""
    shares = np.full((len(idle), size), 0.25 / size)
    shares[:, 0] += 0.75 * idle
    shares[:, -1] += 0.75 * (1 - idle)
    return shares


def _permute_tails(rng: np.random.Generator, shares: NDArray[np.float64], groups: int) -> NDArray[np.float64]:
    """Return the tail for each group: mostly common to all, partly in the group's own order."""
    return np.stack([0.8 * shares + 0.2 * shares[rng.permutation(len(shares))] for _ in range(groups)])


def _complete(rng: np.random.Generator, codes: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Put missing values in place of the most frequent one, so that the domain has its exact size."""
    counts = np.bincount(codes, minlength=size)
    missing = np.flatnonzero(counts == 0)
    places = rng.permutation(np.flatnonzero(codes == counts.argmax()))[: len(missing)]
    codes[places] = missing
    return codes


def _labels(name: str, codes: NDArray[np.int64], shape: Layout) -> pa.Array:
    if name in ("age", "children", "weeks_worked"):
        return pa.array(codes + (shape.first_age if name == "age" else 0), pa.int32())
    if name in _LABELS:
        return strings(_LABELS[name], codes)
    prefix = "J" if name == "occupation" else "L" if name == "relationship" else name[0].upper()
    return numbered_ids(prefix, codes + 1, len(str(shape.sizes[name])))
