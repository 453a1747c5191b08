"""Courses of the hospital's patients: further diagnoses of a visit, drugs, procedures, families, deaths.

A course depends only on the seed and the person's id, so it is the same in every batch.
"""

from __future__ import annotations

import datetime as dt
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reticent.datasets.codes import CODES

_DRUGS = tuple(f"{group}{number:02d}" for group in "ABCDGHJLMNRSV" for number in range(1, 12))
_PROCEDURES = tuple(f"{number}-{part}" for number in range(1, 10) for part in range(10, 40))
_MOST_FURTHER = 3
_DEATHS, _FAMILIES = 40, 4
"""One person in 40 dies after the year; one in 4 lives with the person before."""


@dataclass(frozen=True)
class Visit:
    """What happened at one visit in addition to its main diagnosis."""

    further: tuple[str, ...]
    drugs: tuple[str, ...]
    procedures: tuple[str, ...]


@dataclass(frozen=True)
class Person:
    """Additional facts about a person: the day of death, and whether the person lives with the one before."""

    died: dt.date | None
    family: bool


def visits(rows: dict[str, list[Any]], seed: int) -> list[Visit]:
    """Return the course of each row of the hospital."""
    keys = zip(rows["patient_id"], rows.get("visit") or [1] * len(rows["patient_id"]), strict=True)
    return [_visit(f"{seed} {person} {number}") for person, number in keys]


def _visit(key: str) -> Visit:
    def draw_codes(kind: str, words: Sequence[str], most: int) -> tuple[str, ...]:
        count = _number(f"{key} {kind}") % (most + 1)
        return tuple(words[_number(f"{key} {kind} {place}") % len(words)] for place in range(count))

    return Visit(
        draw_codes("further", CODES, _MOST_FURTHER),
        draw_codes("drug", _DRUGS, 2),
        draw_codes("procedure", _PROCEDURES, 1),
    )


def person(key: str, seed: int) -> Person:
    """Return the additional facts about one person."""
    draw = _number(f"{seed} {key} death")
    died = dt.date(2026, 1, 1) + dt.timedelta(draw // _DEATHS % 300) if draw % _DEATHS == 0 else None
    return Person(died, _number(f"{seed} {key} family") % _FAMILIES == 0)


def move_together(rows: dict[str, list[Any]], seed: int) -> dict[str, list[Any]]:
    """Return the rows with family members moved to the address of the person before them."""
    names = ("region", "postcode")
    out = {name: list(cells) for name, cells in rows.items()}
    home: tuple[Any, ...] | None = None
    owner: str | None = None
    for place, key in enumerate(rows["patient_id"]):
        if key != owner:
            own = tuple(out[name][place] for name in names)
            home = home if home is not None and person(key, seed).family else own
            owner = key
        for name, cell in zip(names, home or (), strict=True):
            out[name][place] = cell
    return out


def _number(text: str) -> int:
    return zlib.crc32(text.encode()) ^ (zlib.adler32(text.encode()) << 3)
