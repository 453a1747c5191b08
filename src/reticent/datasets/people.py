"""Names and places of synthetic people."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reticent.datasets.draw import Choice, numbered_ids, strings, zipf

SEXES = ("female", "male")

_WOMEN, _MEN, LAST = map(str.split, Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines())
FIRST: tuple[list[str], list[str]] = (_WOMEN, _MEN)

REGIONS = (
    *("Capital", "North Coast", "South Valley", "East Plain", "West Hills", "Lake District", "River Bend", "High Moor"),
    *("Old Harbour", "Green Marsh", "Stone Ridge", "Long Forest", "Upper Dale", "Lower Dale"),
    *("Salt Islands", "Border March"),
)

_AREAS = 40
_FIRST = Choice(zipf(76, 0.6))
_LAST = Choice(zipf(len(LAST), 0.6))
_REGION = Choice(zipf(len(REGIONS), 0.9))
_AREA = Choice(zipf(_AREAS, 0.7))

# Prefixes 10, 15, 20 ...; within a region every leading digit of an area carries information.
POSTCODES: tuple[str, ...] = tuple(
    f"{10 + 5 * region + area // 10}{area % 10}{(area * 37 + region * 11) % 100:02d}"
    for region in range(len(REGIONS))
    for area in range(_AREAS)
)
"""All postcodes: forty for each region; no two regions share the first two digits."""


def names(rng: np.random.Generator, sex: NDArray[np.int64]) -> pa.Array:
    """Draw a full name for each person; many share one."""
    first = np.where(sex == 0, 0, len(FIRST[0])) + _FIRST.draw(rng, 0, len(sex))
    names = strings([*FIRST[0], *FIRST[1]], first)
    return pc.binary_join_element_wise(names, strings(LAST, _LAST.draw(rng, 0, len(sex))), " ")


def regions(rng: np.random.Generator, count: int) -> NDArray[np.int64]:
    """Draw a region for each person, as position in ``REGIONS``."""
    return _REGION.draw(rng, 0, count)


def postcodes(rng: np.random.Generator, region: NDArray[np.int64]) -> NDArray[np.int64]:
    """Draw a postcode in the region of each person, as position in ``POSTCODES``."""
    return region * _AREAS + _AREA.draw(rng, 0, len(region))


def region_of(postcode: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the region of each postcode."""
    return postcode // _AREAS


def patient_ids(persons: NDArray[np.int64]) -> pa.Array:
    """Return a distinct id for each person number, in no visible order."""
    # Odd and not a multiple of 5, hence one-to-one modulo a power of ten.
    return numbered_ids("P", (persons * 7_368_787 + 104_729) % 10**10, 10)


def household_ids(households: NDArray[np.int64]) -> pa.Array:
    """Return a distinct id for each household number, in no visible order."""
    return numbered_ids("H", (households * 6_180_339 + 99_991) % 10**9, 9)
