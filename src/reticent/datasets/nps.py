"""One day of a national patients sample, synthetic: 117,047 records and 4,848 diseases with a long tail.

The attributes and domain sizes are those of Kim, Sung, Chung 2014 (Table 2): age 107, length of stay 53 days, sex 2,
location of the hospital 16, admission route 6, disease 4,848 (sensitive). The frequency of diseases depends on age and
sex, the length of stay on the route. Shares follow Zipf's law; the most frequent disease is about one record in thirty.
With 114,688 rows or more, every disease occurs. Rows are in order of arrival; every person has one record.

Not in the data: persons who return, households, hours of the day. `feed` has them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reticent.datasets.draw import BATCH, BLOCK, Choice, generator, numbered_ids, slice_blocks, strings, zipf

RECORDS = 117_047
"""Number of records in the paper."""
AGES, STAYS, DISEASES = 107, 53, 4_848
SEXES = ("female", "male")
LOCATIONS = (
    *("Seoul", "Busan", "Daegu", "Incheon", "Gwangju", "Daejeon", "Ulsan", "Gyeonggi"),
    *("Gangwon", "Chungbuk", "Chungnam", "Jeonbuk", "Jeonnam", "Gyeongbuk", "Gyeongnam", "Jeju"),
)
ROUTES = ("outpatient", "emergency", "planned", "transfer", "birth", "other")

_BANDS = (0, 5, 15, 40, 65)
_PARTS = 7  # rare diseases are spread over this many blocks, so that each occurs
_STEP = 5  # codes are letter, two digits, a point and a digit; every fifth is used


CODES = tuple(f"{chr(65 + n // 1000)}{n % 1000 // 10:02}.{n % 10}" for n in range(0, DISEASES * _STEP, _STEP))
"""The diseases, with codes like those of ICD-10: A00.0 to Y23.5."""
NOTIFIABLE = CODES[:100]
"""The diseases that represent notifiable epidemics: chapter A up to A49.5."""


def batches(n: int = RECORDS, seed: int = 0, size: int = BATCH) -> Iterator[pa.Table]:
    """Yield ``n`` records in tables of ``size`` rows; the rows do not depend on ``size``."""
    return slice_blocks(lambda number: _block(seed, number), n, size)


def generate(n: int = RECORDS, seed: int = 0) -> pa.Table:
    """Return ``n`` records as one table.

    >>> generate(1).column_names
    ['record_id', 'age', 'length_of_stay', 'sex', 'location', 'admission_route', 'disease']
    """
    return pa.concat_tables(batches(n, seed)).combine_chunks()


def prior() -> pa.Table:
    """Return the prior: counts of a million records by disease.

    >>> prior().column_names
    ['value', 'count']
    """
    shares = _model()["disease"].shares.mean(axis=0)
    return pa.table({"value": pa.array(CODES), "count": np.ceil(shares * 1e6).astype(np.int64)})


def _block(seed: int, number: int) -> pa.Table:
    rng, model = generator(seed, "nps", number), _model()
    age, sex = model["age"].draw(rng, 0, BLOCK), rng.integers(0, 2, BLOCK)
    band = np.searchsorted(_BANDS, age, side="right") - 1
    route = model["route"].draw(rng, band)
    disease = model["disease"].draw(rng, band * len(SEXES) + sex)
    if number < _PARTS:
        disease = _add_missing_diseases(rng, disease, number)
    return pa.table(
        {
            "record_id": numbered_ids("N", np.arange(BLOCK) + number * BLOCK, 9),
            "age": pa.array(age, pa.int32()),
            "length_of_stay": pa.array(model["stay"].draw(rng, route), pa.int32()),
            "sex": strings(SEXES, sex),
            "location": strings(LOCATIONS, model["location"].draw(rng, 0, BLOCK)),
            "admission_route": strings(ROUTES, route),
            "disease": strings(CODES, disease),
        }
    )


def _add_missing_diseases(rng: np.random.Generator, codes: NDArray[np.int64], part: int) -> NDArray[np.int64]:
    """Put missing diseases of this part into random rows that have a disease of another part."""
    missing = np.setdiff1d(np.arange(part, DISEASES, _PARTS), codes)
    codes[rng.permutation(np.flatnonzero(codes % _PARTS != part))[: len(missing)]] = missing
    return codes


@cache
def _model() -> dict[str, Choice]:
    rng = np.random.default_rng([11, DISEASES])  # the population model is fixed; it does not depend on the user's seed
    years, days = np.arange(AGES), np.arange(STAYS)
    common = zipf(DISEASES, 1.0, 2.7)[rng.permutation(DISEASES)]
    means = np.array([0.3, 3.0, 5.0, 9.0, 4.0, 2.0])[:, None]
    return {
        "age": Choice(0.5 + np.exp(-((years / 4.0) ** 2)) + 1.3 * np.exp(-(((years - 62) / 17.0) ** 2))),
        "stay": Choice(np.exp(-days / means) + 0.0005),
        "location": Choice(zipf(len(LOCATIONS), 1.0, 1.5)),
        "route": Choice(
            (
                (60, 10, 5, 2, 20, 3),
                (78, 14, 4, 1, 0.1, 3),
                (76, 12, 7, 2, 0.1, 3),
                (72, 10, 12, 3, 0, 3),
                (66, 14, 12, 5, 0, 3),
            )
        ),
        "disease": Choice(common * rng.lognormal(0.0, 0.5, (len(_BANDS) * len(SEXES), DISEASES))),
    }
