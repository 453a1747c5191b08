"""The sixty diagnoses of the feed: who gets them, when, and what follows.

Each diagnosis has a weight for eight age bands, a factor for each sex (0: impossible), possibly a season, and flags:
``chronic`` returns with the same person, ``catching`` spreads within a household, ``once`` happens at most once. The code
gives the chapter: the next illness is often in the same chapter. The data is in `illnesses.txt`.
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
    """Return which of the values have a flag.

    >>> [VALUES[i] for i in values_with_flag("once").nonzero()[0]]
    ['appendicitis', 'childbirth']
    """
    return np.array([flag in line[4].split() for line in _LINES])


CHAPTER = np.array([next(i for i, (low, high, _) in enumerate(CHAPTERS) if low <= line[1] <= high) for line in _LINES])
"""The position of each value's chapter in ``reticent.policy.icd10.CHAPTERS``."""


def profile(age: NDArray[np.int64], sex: NDArray[np.int64], month: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the row in the distributions below for an age, a sex (0: female) and a month (0: January)."""
    band = np.searchsorted(BANDS, age, side="right") - 1
    return np.asarray((month * len(BANDS) + band) * SEXES + sex)


@cache
def onset() -> Choice:
    """Return the distribution of first illnesses: the shares of ``VALUES`` in each profile."""
    ages = np.array([line[2].split() for line in _LINES], dtype=np.float64)
    sexes = np.array([line[3].split() for line in _LINES], dtype=np.float64)
    seasons = [next((CURVES[flag] for flag in line[4].split() if flag in CURVES), EVEN) for line in _LINES]
    weights = np.einsum("vm,vb,vs->mbsv", np.array(seasons), ages, sexes)
    return Choice(weights.reshape(-1, len(VALUES)))


@cache
def later_onset() -> Choice:
    """Return the distribution of later illnesses: the same without illnesses that happen once."""
    return Choice(onset().shares * ~values_with_flag("once"))


@cache
def related_onset() -> Choice:
    """Return the distribution of other illnesses of the chapter, by ``profile(...) * len(VALUES) + illness``."""
    other = later_onset().shares[:, None, :] * ~np.eye(len(VALUES), dtype=np.bool_)
    near = other * (CHAPTER[:, None] == CHAPTER)
    # If the chapter has no other illness for this profile, any other may follow.
    weights = np.where(near.any(axis=2, keepdims=True), near, other)
    return Choice(weights.reshape(-1, len(VALUES)))


def true_shares(age: int, sex: str, month: int | None = None) -> NDArray[np.float64]:
    """Return the true shares of ``VALUES`` among persons of an age and sex, in a month (1 to 12) or over the year.

    They apply to first admissions that were not infected at home. Later admissions depend on the person's history.

    >>> float(true_shares(30, "male")[VALUES.index("childbirth")])
    0.0
    """
    if age < 0 or sex not in ("female", "male") or month not in (None, *range(1, MONTHS + 1)):
        raise PolicyError(
            "Age, sex or month is out of range.", hint="Use an age of 0 or more, female or male, and month 1 to 12."
        )
    months = np.arange(MONTHS) if month is None else np.array([month - 1])
    rows = profile(np.full(len(months), age), np.full(len(months), int(sex == "male")), months)
    return np.asarray(onset().shares[rows].mean(axis=0))


def strata() -> Iterator[tuple[str, str, NDArray[np.float64]]]:
    """Yield sex, age band (named as by an interval hierarchy), and the shares of ``VALUES`` over the year.

    >>> [(sex, band) for sex, band, _ in strata()][:3]
    [('female', '<5'), ('female', '[5, 15)'), ('female', '[15, 30)')]
    """
    ends = [*BANDS[1:], None]
    for sex in ("female", "male"):
        for low, high in zip(BANDS, ends, strict=True):
            name = f"<{high}" if low == 0 else f"{low}+" if high is None else f"[{low}, {high})"
            yield sex, name, true_shares(low, sex)


def transition_matrix(same: NDArray[np.float64], within: float) -> NDArray[np.float64]:
    """Return the transition matrix of illnesses over all profiles: rows are the illness before, columns the next.

    ``same`` is the chance that each illness returns; ``within`` is the share of the others in the same chapter.
    """
    size = len(VALUES)
    weights = onset().shares / np.maximum(onset().shares.sum(axis=0), 1e-300)  # the profiles of each illness
    near = np.einsum("pv,pvw->vw", weights, related_onset().shares.reshape(-1, size, size))
    other = within * near + (1 - within) * weights.T @ later_onset().shares
    stay = same * ~values_with_flag("once")
    return np.asarray(np.diag(stay) + (1 - stay)[:, None] * other)


PEAK_FACTOR = 6.5
"""Factor of the diagnosis at the peak of an outbreak; about six times among all admissions, because relatives and
returning persons are affected less."""

_MAX_LENGTH = 50_400  # six weeks of 1,200 admissions a day
_RAMP = 0.2  # share of the outbreak's length for the rise, and again for the fall


@dataclass(frozen=True)
class Outbreak:
    """An outbreak: its diagnosis, first row, and the row after its last."""

    value: str
    first: int
    last: int

    def __post_init__(self) -> None:
        """Refuse a diagnosis that the feed does not have."""
        if self.value not in VALUES:
            raise PolicyError("The feed does not have this diagnosis.", hint=f"Choose one of: {', '.join(VALUES)}.")

    @classmethod
    def in_middle(cls, n: int, value: str = "influenza") -> Outbreak:
        """Return the outbreak of a feed of ``n`` rows: its middle third, at most six weeks.

        >>> Outbreak.in_middle(90_000)
        Outbreak(value='influenza', first=30000, last=60000)
        """
        length = min(n // 3, _MAX_LENGTH)
        first = (n - length) // 2
        return cls(value, first, first + length)

    def strength(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the factor of the diagnosis at each row: 1 outside the outbreak, ``PEAK_FACTOR`` at its peak."""
        part = (rows - self.first) / max(1, self.last - self.first)
        return np.asarray(1 + (PEAK_FACTOR - 1) * np.clip(np.minimum(part, 1 - part) / _RAMP, 0, 1))
