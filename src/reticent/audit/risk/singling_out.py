"""Singling out in the original table: how person_count people are unique, and how few columns suffice to find them.

Guarantee: none; the counts are exact for the original table and the columns that an attacker may know.
Not covered: columns that were not named; smaller column combinations that the greedy choice misses.
Cost: one pass over the rows per column and step; the choice uses at most `SAMPLE_SIZE` rows.
Reference: "singling out" of Opinion 05/2014 of the Article 29 Working Party; uniqueness by few facts: L. Sweeney, 2000.
Differences from the paper: columns are chosen greedily, so a smaller set may exist.
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
"""Class size below which regulators call a class small."""


@dataclass(frozen=True)
class Step:
    """What an attacker gains by one more column.

    Attributes:
        column: the column that the attacker learns at this step.
        alone: share of the persons who are then unique.
        small: share of the persons who are then in a class of fewer than five.
    """

    column: str
    unique: float
    small: float


@dataclass(frozen=True, repr=False)
class SinglingOut:
    """How person_count people an attacker can single out in an original table.

    Attributes:
        records, persons: their numbers in the table; equal if there is no person column.
        quasi: the columns that others may know.
        alone, small: share of persons who are unique, and in classes of fewer than five, by all these columns.
        sizes: persons per combination of values.
        steps: the columns that single out most people, in that order.
        told: per sensitive column, the share of persons whose class has only one value.
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
        """Return disclosed values for JSON."""
        return asdict(self)

    def __repr__(self) -> str:
        """Return the figures as text."""
        text = [f"{self._count_words()}; known to others: {', '.join(self.quasi) or 'no column'}."]
        if not self.quasi or not self.persons:
            return text[0]
        text.append(f"{self.unique:.1%} are unique, {self.small:.1%} are in a class of fewer than {SMALL_CLASS}.")
        text.append("An attacker who knows ...")
        width = max(len(step.column) for step in self.steps)
        for number, step in enumerate(self.steps):
            word, bar = "and " if number else "    ", "█" * round(step.unique * 30)
            text.append(f"  {word}{step.column:<{width}}  singles out {step.unique:6.1%}  {bar}".rstrip())
        text += [
            f"'{name}' is disclosed for {share:.1%}: everybody in their class has the same value."
            for name, share in self.disclosed.items()
        ]
        return "\n".join(text)

    def _repr_html_(self) -> str:
        rows = [(step.column, f"{step.unique:.1%}", f"{step.small:.1%}") for step in self.steps]
        heading = f"{self._count_words()}: {self.unique:.1%} are unique"
        return table_html(
            heading, ("column known", "unique", f"in a class of fewer than {SMALL_CLASS}"), rows
        ) + image_html(self.to_svg())

    def to_svg(self) -> str:
        """Draw an SVG with one bar per column that an attacker learns: the share of persons who are then unique."""
        items = [
            Bar(
                f"{'+ ' if number else ''}{step.column}",
                step.unique,
                f"{step.unique:.1%} unique",
                highlight=step.unique > 0,
            )
            for number, step in enumerate(self.steps)
        ]
        return standalone(bars(f"{self.persons:,} persons: share who are unique", items))

    def _count_words(self) -> str:
        persons = f"{self.persons:,} persons"
        return persons if self.records == self.persons else f"{persons} with {self.records:,} records"


def singling_out(
    table: pa.Table, quasi: Sequence[str], *, sensitive: Sequence[str] = (), person: str | None = None
) -> SinglingOut:
    """Measure singling out in an original table; with a person column, count persons instead of records."""
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
    """Return the shares of persons in classes of one, and of fewer than five; and the persons per class."""
    persons = int(who.max(initial=-1)) + 1
    pairs = np.unique(rows * max(persons, 1) + who)
    classes, members = pairs // max(persons, 1), pairs % max(persons, 1)
    sizes = np.bincount(classes, minlength=size)
    person_count = max(1, len(np.unique(members)))
    alone = len(np.unique(members[sizes[classes] == 1])) / person_count
    return alone, len(np.unique(members[sizes[classes] < SMALL_CLASS])) / person_count, sizes


def _disclosure_share(rows: Int64s, size: int, column: pa.ChunkedArray, who: Int64s) -> float:
    """Return the share of persons with a record in a class that has only one value."""
    disclosed = histograms(rows, size, column).distinct()[rows] == 1
    return len(np.unique(who[disclosed])) / max(1, len(np.unique(who)))


def _steps(table: pa.Table, quasi: list[str], who: Int64s) -> tuple[Step, ...]:
    coded = {name: codes(table[name]) for name in quasi}
    sampled = np.unique(who)
    if len(who) > SAMPLE_SIZE:  # whole persons, evenly spread, so that their records stay together
        sampled = sampled[:: -(-len(who) // SAMPLE_SIZE)]
    part = np.isin(who, sampled)
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
