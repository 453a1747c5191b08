"""The sixty diagnoses of the feed: whom they befall, when, and what becomes of them.

Each has a weight for eight age bands and a factor for each sex (0: it cannot be), perhaps a season, and marks: ``chronic``
comes back with the same person, ``catching`` passes within a household, ``once`` happens at most once in a feed. The
code is there for its chapter: what follows an illness often lies in the same one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from reticent.datasets.draw import Choice
from reticent.datasets.seasons import CURVES, EVEN, MONTHS
from reticent.errors import PolicyError
from reticent.policy.icd10 import CHAPTERS

BANDS = (0, 5, 15, 30, 45, 60, 75, 85)
"""Age bands: each begins at its number and ends before the next."""

SEXES = 2

# name                   code   0   5  15  30  45  60  75  85   women men  marks
_TABLE = """
heart failure          | I50 |  0   0   0   2  12  36  58  66 | 1   1   | chronic
pneumonia              | J18 | 60  25  12  14  22  30  44  50 | 1   1.1 | catching cold
atrial fibrillation    | I48 |  0   0   1   6  24  42  44  34 | 1   1   | chronic
gallstones             | K80 |  0   1  14  26  30  26  18  12 | 1.5 .7  |
stroke                 | I63 |  0   0   1   5  20  38  46  44 | 1   1.1 |
hip fracture           | S72 |  0   0   0   0   4  16  42  60 | 1.5 .7  |
concussion             | S06 | 70  70  36  16  12  12  18  24 | .8  1.2 |
appendicitis           | K35 |  4  60  40  18  10   6   3   2 | 1   1   | once
childbirth             | O80 |  0   0 170 150   0   0   0   0 | 1   0   | once
chronic bronchitis     | J44 |  0   0   1   4  24  44  36  22 | .8  1.2 | chronic cold
urinary tract infection| N39 | 26  14  18  14  14  22  36  46 | 1.7 .5  |
myocardial infarction  | I21 |  0   0   0   8  32  40  32  26 | .6  1.4 |
gastroenteritis        | A09 | 90  44  24  16  14  14  18  20 | 1   1   | catching warm
alcohol dependence     | F10 |  0   0  30  50  52  22   4   1 | .4  1.6 | chronic
depression             | F32 |  0  12  50  48  42  20  10   6 | 1.4 .7  | chronic
type 2 diabetes        | E11 |  0   0   1   8  24  28  22  16 | .9  1.1 | chronic
inguinal hernia        | K40 | 22   8   6  10  20  24  16   8 | .15 1.8 |
knee arthrosis         | M17 |  0   0   0   3  28  48  26   6 | 1.2 .8  | chronic
forearm fracture       | S52 | 22  70  16  10  14  16  16  16 | 1   1   |
asthma                 | J45 | 45  45  14  10   9   7   5   4 | 1   1   | chronic cold
sepsis                 | A41 | 16   6   6   8  16  28  36  40 | .9  1.1 |
lung cancer            | C34 |  0   0   0   3  24  40  20   8 | .7  1.3 | chronic
breast cancer          | C50 |  0   0   1  20  36  34  18  10 | 2   .02 | chronic
prostate cancer        | C61 |  0   0   0   0  14  36  22  10 | 0   2   | chronic
colon cancer           | C18 |  0   0   0   4  16  30  28  16 | .9  1.1 | chronic
epilepsy               | G40 | 30  34  18  14  14  14  14  12 | 1   1   | chronic
back pain              | M54 |  0   2  14  30  36  26  18  14 | 1   1   |
influenza              | J10 | 10   8   5   4   4   4   5   6 | 1   1   | catching flu
dehydration            | E86 | 36  12   4   4   5  10  24  42 | 1   1   | warm
tonsillitis            | J35 | 50  75  36  12   4   2   1   0 | 1   1   | catching cold
schizophrenia          | F20 |  0   0  42  40  26   8   2   1 | .7  1.3 | chronic
anxiety disorder       | F41 |  0  12  30  28  20  10   6   4 | 1.4 .7  | chronic
migraine               | G43 |  0  14  18  16  10   4   1   0 | 1.6 .5  | chronic
kidney stones          | N20 |  0   2  12  24  26  16   6   3 | .6  1.4 |
kidney failure         | N18 |  1   2   3   5  10  18  26  28 | .9  1.1 | chronic
cirrhosis              | K74 |  0   0   1  10  24  14   4   1 | .6  1.4 | chronic
pancreatitis           | K85 |  0   1   8  16  18  14  10   8 | .8  1.2 |
diverticulitis         | K57 |  0   0   1  10  24  28  22  16 | 1   1   |
gastric ulcer          | K25 |  0   1   4   6  12  16  16  14 | .9  1.1 |
anaemia                | D50 | 10   6   6   8  10  14  24  30 | 1.3 .8  |
psoriasis              | L40 |  1   6   8  10  12   8   3   1 | 1   1   | chronic
cellulitis             | L03 | 12  12  10  12  16  16  18  18 | .9  1.1 |
cataract               | H25 |  0   0   0   1   8  30  34  14 | 1   1   |
glaucoma               | H40 |  0   0   0   2   8  16  14   6 | 1   1   | chronic
dementia               | F03 |  0   0   0   0   0   8  34  56 | 1.1 .9  | chronic
parkinson disease      | G20 |  0   0   0   0   3  14  20  10 | .8  1.2 | chronic
multiple sclerosis     | G35 |  0   0  10  18  12   3   0   0 | 1.5 .6  | chronic
pulmonary embolism     | I26 |  0   0   3   6  10  16  16  14 | 1   1   |
deep vein thrombosis   | I80 |  0   0   4   8  12  14  12  10 | 1   1   |
hypertension           | I10 |  0   1   2   8  18  20  24  26 | 1.1 .9  | chronic
thyroid disease        | E05 |  1   3   8  14  14  12   8   5 | 1.6 .5  | chronic
crohn disease          | K50 |  1  10  18  12   8   4   2   1 | 1   1   | chronic
leukaemia              | C92 | 14  12   5   5   8  12  10   5 | .9  1.1 | chronic
lymphoma               | C83 |  2   5   6   7  10  16  12   6 | .9  1.1 | chronic
hiv infection          | B20 |  0   0   8  12   8   2   0   0 | .4  1.6 | chronic
tuberculosis           | A15 |  3   3   8   7   6   5   5   5 | .8  1.2 | catching
hepatitis c            | B18 |  0   0   5  12  12   5   2   1 | .6  1.4 | chronic
threatened miscarriage | O20 |  0   0  60  50   0   0   0   0 | 1   0   |
bronchiolitis          | J21 |110   0   0   0   0   0   0   0 | 1   1   | catching cold
febrile convulsion     | R56 | 55   0   0   0   0   0   0   0 | 1   1   |
"""
_LINES = [[part.strip() for part in line.split("|")] for line in _TABLE.strip().splitlines()]

VALUES: tuple[str, ...] = tuple(line[0] for line in _LINES)
"""Every diagnosis of the feed."""


def marked(mark: str) -> NDArray[np.bool_]:
    """Which of the values have a mark.

    >>> [VALUES[i] for i in marked("once").nonzero()[0]]
    ['appendicitis', 'childbirth']
    """
    return np.array([mark in line[4].split() for line in _LINES])


CHAPTER = np.array([next(i for i, (low, high, _) in enumerate(CHAPTERS) if low <= line[1] <= high) for line in _LINES])
"""For each value the position of its chapter in ``reticent.policy.icd10.CHAPTERS``."""


def profile(age: NDArray[np.int64], sex: NDArray[np.int64], month: NDArray[np.int64]) -> NDArray[np.int64]:
    """The row of the laws below that holds for an age, a sex (0: female) and a month (0: January)."""
    band = np.searchsorted(BANDS, age, side="right") - 1
    return np.asarray((month * len(BANDS) + band) * SEXES + sex)


@cache
def onset() -> Choice:
    """What befalls a person: the shares of ``VALUES`` in each profile."""
    ages = np.array([line[2].split() for line in _LINES], dtype=np.float64)
    sexes = np.array([line[3].split() for line in _LINES], dtype=np.float64)
    seasons = [next((CURVES[mark] for mark in line[4].split() if mark in CURVES), EVEN) for line in _LINES]
    weights = np.einsum("vm,vb,vs->mbsv", np.array(seasons), ages, sexes)
    return Choice(weights.reshape(-1, len(VALUES)))


@cache
def later() -> Choice:
    """What befalls a person who was ill before: the same without what happens once."""
    return Choice(onset().shares * ~marked("once"))


@cache
def related() -> Choice:
    """What follows an illness, another of its chapter; the profile is ``profile(...) * len(VALUES) + illness``."""
    other = later().shares[:, None, :] * ~np.eye(len(VALUES), dtype=np.bool_)
    near = other * (CHAPTER[:, None] == CHAPTER)
    # The only one of its chapter that this person can have is followed by any other.
    weights = np.where(near.any(axis=2, keepdims=True), near, other)
    return Choice(weights.reshape(-1, len(VALUES)))


def law(age: int, sex: str, month: int | None = None) -> NDArray[np.float64]:
    """The true shares of ``VALUES`` among persons of an age and sex, in a month (1 to 12) or over the year.

    Holds for a person's first admission, unless caught at home. Later ones follow the person's own past.

    >>> float(law(30, "male")[VALUES.index("childbirth")])
    0.0
    """
    if age < 0 or sex not in ("female", "male") or month not in (None, *range(1, MONTHS + 1)):
        raise PolicyError("There is no such age, sex or month.", hint="Use female or male, and 1 to 12.")
    months = np.arange(MONTHS) if month is None else np.array([month - 1])
    rows = profile(np.full(len(months), age), np.full(len(months), int(sex == "male")), months)
    return np.asarray(onset().shares[rows].mean(axis=0))


def strata() -> Iterator[tuple[str, str, NDArray[np.float64]]]:
    """Sex, age band as a hierarchy of these cuts names it, and the shares of ``VALUES`` over the year: the public law.

    >>> [(sex, band) for sex, band, _ in strata()][:3]
    [('female', '<5'), ('female', '[5, 15)'), ('female', '[15, 30)')]
    """
    ends = [*BANDS[1:], None]
    for sex in ("female", "male"):
        for low, high in zip(BANDS, ends, strict=True):
            name = f"<{high}" if low == 0 else f"{low}+" if high is None else f"[{low}, {high})"
            yield sex, name, law(low, sex)


def following(same: NDArray[np.float64], within: float) -> NDArray[np.float64]:
    """How illnesses follow one another, over all profiles: rows are the illness before, columns the next.

    Each comes back as often as ``same`` says; of the others so many lie ``within`` its chapter.
    """
    size = len(VALUES)
    weights = onset().shares / np.maximum(onset().shares.sum(axis=0), 1e-300)  # who has an illness, by profile
    near = np.einsum("pv,pvw->vw", weights, related().shares.reshape(-1, size, size))
    other = within * near + (1 - within) * weights.T @ later().shares
    stay = same * ~marked("once")
    return np.asarray(np.diag(stay) + (1 - stay)[:, None] * other)
