"""The sixty diagnoses of the feed: whom they befall, when, and what becomes of them.

Each has a weight for eight age bands and a factor for each sex (0: it cannot be), perhaps a season, and marks: ``chronic``
comes back with the same person, ``catching`` passes within a household, ``once`` happens at most once in a feed. The
code is there for its chapter: what follows an illness often lies in the same one. They stand in `illnesses.txt`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reticent.datasets.draw import Choice
from reticent.datasets.seasons import CURVES, EVEN, MONTHS
from reticent.errors import PolicyError
from reticent.policy.icd10 import CHAPTERS

BANDS = (0, 5, 15, 30, 45, 60, 75, 85)
"""Age bands: each begins at its number and ends before the next."""

SEXES = 2

_TABLE = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
_LINES = [[part.strip() for part in line.split("|")] for line in _TABLE.splitlines()[1:]]

VALUES: tuple[str, ...] = tuple(line[0] for line in _LINES)
"""Every diagnosis of the feed."""


def values_with_flag(flag: str) -> NDArray[np.bool_]:
    """Which of the values have a mark.

    >>> [VALUES[i] for i in marked("once").nonzero()[0]]
    ['appendicitis', 'childbirth']
    """
    return np.array([flag in line[4].split() for line in _LINES])


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
def later_onset() -> Choice:
    """What befalls a person who was ill before: the same without what happens once."""
    return Choice(onset().shares * ~values_with_flag("once"))


@cache
def related_onset() -> Choice:
    """What follows an illness, another of its chapter; the profile is ``profile(...) * len(VALUES) + illness``."""
    other = later_onset().shares[:, None, :] * ~np.eye(len(VALUES), dtype=np.bool_)
    near = other * (CHAPTER[:, None] == CHAPTER)
    # The only one of its chapter that this person can have is followed by any other.
    weights = np.where(near.any(axis=2, keepdims=True), near, other)
    return Choice(weights.reshape(-1, len(VALUES)))


def true_shares(age: int, sex: str, month: int | None = None) -> NDArray[np.float64]:
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
            yield sex, name, true_shares(low, sex)


def transition_matrix(same: NDArray[np.float64], within: float) -> NDArray[np.float64]:
    """How illnesses follow one another, over all profiles: rows are the illness before, columns the next.

    Each comes back as often as ``same`` says; of the others so many lie ``within`` its chapter.
    """
    size = len(VALUES)
    weights = onset().shares / np.maximum(onset().shares.sum(axis=0), 1e-300)  # who has an illness, by profile
    near = np.einsum("pv,pvw->vw", weights, related_onset().shares.reshape(-1, size, size))
    other = within * near + (1 - within) * weights.T @ later_onset().shares
    stay = same * ~values_with_flag("once")
    return np.asarray(np.diag(stay) + (1 - stay)[:, None] * other)


PEAK_FACTOR = 6.5
"""How many times as likely the diagnosis is at the height. Relatives and returning persons follow less than in proportion:
about six times as frequent among all."""

_MAX_LENGTH = 50_400  # six weeks of 1,200 admissions a day
_RAMP = 0.2  # of the outbreak, to rise and again to fall


@dataclass(frozen=True)
class Outbreak:
    """Which diagnosis breaks out, and from which row to before which."""

    value: str
    first: int
    last: int

    def __post_init__(self) -> None:
        """Refuses a diagnosis that the feed does not have."""
        if self.value not in VALUES:
            raise PolicyError("The feed has no such diagnosis.", hint=f"Choose one of: {', '.join(VALUES)}.")

    @classmethod
    def in_middle(cls, n: int, value: str = "influenza") -> Outbreak:
        """The outbreak of a feed of ``n`` rows: its middle third, at most six weeks.

        >>> Outbreak.amid(90_000)
        Outbreak(value='influenza', first=30000, last=60000)
        """
        length = min(n // 3, _MAX_LENGTH)
        first = (n - length) // 2
        return cls(value, first, first + length)

    def strength(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """How many times as likely the diagnosis is at each row: 1 outside, ``FACTOR`` at the height."""
        part = (rows - self.first) / max(1, self.last - self.first)
        return np.asarray(1 + (PEAK_FACTOR - 1) * np.clip(np.minimum(part, 1 - part) / _RAMP, 0, 1))
