"""Before any policy: how many persons stand alone, and how few facts about them suffice.

Guarantee: none; exact counts over the table as it is, by columns that somebody may know.
Not covered: columns that were not named; persons who stand alone only by a combination that the greedy choice passes by.
Cost: one pass over the rows per column and step, on at most `SAMPLE` rows while choosing.
Reference: "singling out" of Opinion 05/2014 of the Article 29 Working Party; uniqueness by few facts: L. Sweeney, 2000.
Differences from the paper: the columns of a step are chosen greedily, so a smaller set may exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.arrays import Bools, Int64s
from reticent.audit.risk.class_sizes import ClassSizes, class_sizes
from reticent.notebook import image_html, table_html
from reticent.svg import Bar, bars, standalone
from reticent.verify.groups import codes, histograms, number_rows
from reticent.verify.variants import merge_person_names

SAMPLE_SIZE = 100_000
MAX_STEPS = 6
SMALL_CLASS = 5
"""Persons in a class below which regulators ask."""


@dataclass(frozen=True)
class Step:
    """What a reader gains by one column more.

    Attributes:
        column: the column she learns at this step.
        alone: share of the persons who are then the only ones to fit.
        small: share of the persons who fit with fewer than five.
    """

    column: str
    unique: float
    small: float


@dataclass(frozen=True, repr=False)
class SinglingOut:
    """Who could be found in a table as it is.

    Attributes:
        records, persons: of the table; the same number where no person is named.
        quasi: the columns that others may know.
        alone, small: share of persons alone, and with fewer than five like them, by all these columns together.
        sizes: persons per combination.
        steps: the columns that tell most, one after the other.
        told: per sensitive column the share of persons whose value is the only one in their class.
    """

    records: int
    persons: int
    quasi: tuple[str, ...]
    unique: float
    small: float
    sizes: ClassSizes
    steps: tuple[Step, ...]
    disclosed: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    def __repr__(self) -> str:
        """The figures on one screen."""
        text = [f"{self._count_words()}; known to others: {', '.join(self.quasi) or 'no column'}."]
        if not self.quasi or not self.persons:
            return text[0]
        text.append(f"{self.unique:.1%} stand alone, {self.small:.1%} with fewer than {SMALL_CLASS} like them.")
        text.append("Who knows ...")
        width = max(len(step.column) for step in self.steps)
        for number, step in enumerate(self.steps):
            word, bar = "and " if number else "    ", "█" * round(step.unique * 30)
            text.append(f"  {word}{step.column:<{width}}  singles out {step.unique:6.1%}  {bar}".rstrip())
        text += [
            f"'{name}' is plain for {share:.1%}: everybody who fits has the same."
            for name, share in self.disclosed.items()
        ]
        return "\n".join(text)

    def _repr_html_(self) -> str:
        rows = [(step.column, f"{step.unique:.1%}", f"{step.small:.1%}") for step in self.steps]
        heading = f"{self._count_words()}: {self.unique:.1%} stand alone"
        return table_html(
            heading, ("who knows, and ...", "unique", f"with fewer than {SMALL_CLASS}"), rows
        ) + image_html(self.to_svg())

    def to_svg(self) -> str:
        """A picture (SVG): one bar per column that a reader learns, the share of persons who then stand alone."""
        items = [
            Bar(
                f"{'+ ' if number else ''}{step.column}",
                step.unique,
                f"{step.unique:.1%} alone",
                highlight=step.unique > 0,
            )
            for number, step in enumerate(self.steps)
        ]
        return standalone(bars(f"{self.persons:,} persons: who stands alone", items))

    def _count_words(self) -> str:
        persons = f"{self.persons:,} persons"
        return persons if self.records == self.persons else f"{persons} with {self.records:,} records"


def singling_out(
    table: pa.Table, quasi: Sequence[str], *, sensitive: Sequence[str] = (), person: str | None = None
) -> SinglingOut:
    """Measures a table as it is; with a person, persons are counted and not their records."""
    rows, size = number_rows(table, list(quasi))
    who = np.arange(table.num_rows) if person is None else codes(merge_person_names(table, person)[person])[0]
    alone, small, sizes = _exposure(rows, size, who)
    return SinglingOut(
        records=table.num_rows,
        persons=len(np.unique(who)),
        quasi=tuple(quasi),
        unique=alone,
        small=small,
        sizes=class_sizes(sizes),
        steps=_steps(table, list(quasi), who),
        disclosed={name: _disclosure_share(rows, size, table[name], who) for name in sensitive},
    )


def _exposure(rows: Int64s, size: int, who: Int64s) -> tuple[float, float, Int64s]:
    """Shares of persons with a record that only they, or fewer than five, fit; and the persons per class."""
    persons = int(who.max(initial=-1)) + 1
    pairs = np.unique(rows * max(persons, 1) + who)
    classes, members = pairs // max(persons, 1), pairs % max(persons, 1)
    sizes = np.bincount(classes, minlength=size)
    many = max(1, len(np.unique(members)))
    alone = len(np.unique(members[sizes[classes] == 1])) / many
    return alone, len(np.unique(members[sizes[classes] < SMALL_CLASS])) / many, sizes


def _disclosure_share(rows: Int64s, size: int, column: pa.ChunkedArray, who: Int64s) -> float:
    """Share of persons with a record in a class that holds one value only."""
    plain = histograms(rows, size, column).distinct()[rows] == 1
    return len(np.unique(who[plain])) / max(1, len(np.unique(who)))


def _steps(table: pa.Table, quasi: list[str], who: Int64s) -> tuple[Step, ...]:
    coded = {name: codes(table[name]) for name in quasi}
    inside = np.unique(who)
    if len(who) > SAMPLE_SIZE:  # whole persons, evenly spread, so that their records stay together
        inside = inside[:: -(-len(who) // SAMPLE_SIZE)]
    part = np.isin(who, inside)
    key, steps = np.zeros(len(who), dtype=np.int64), list[Step]()
    while quasi and len(steps) < MAX_STEPS and not (steps and steps[-1].unique == 1):
        best = max(
            quasi, key=lambda name: _exposure(*_join_codes(key[part], *_select(coded[name], part)), who[part])[:2]
        )
        quasi = [name for name in quasi if name != best]
        key, size = _join_codes(key, coded[best][0], len(coded[best][1]))
        alone, small, _ = _exposure(key, size, who)
        steps.append(Step(best, alone, small))
    return tuple(steps)


def _select(coded: tuple[Int64s, tuple[str | None, ...]], part: Bools) -> tuple[Any, int]:
    return coded[0][part], len(coded[1])


def _join_codes(key: Int64s, code: Int64s, width: int) -> tuple[Int64s, int]:
    distinct, inverse = np.unique(key * max(width, 1) + code, return_inverse=True)
    return inverse.reshape(-1).astype(np.int64), len(distinct)
