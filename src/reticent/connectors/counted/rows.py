"""What a place that holds rows must be able to do: count combinations, and put labels in the place of values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from reticent.errors import DataError

MOST_COMBINATIONS = 50_000_000
"""What one machine takes; data with more distinct combinations is too fine for a full-domain release anyway."""
MOST_ROWS = 2**30
LEAF, LABEL, RECORDS, FIRST = "__leaf", "__label", "__records", "__first"


@dataclass(frozen=True, repr=False)
class Recoded:
    """How rows are to be published.

    Attributes:
        shown: the published columns, in order.
        owner: the column of persons, where rows are left out person by person.
        labels: what stands in the place of a column's values: one label for all, or pairs of `LEAF` and `LABEL`.
        classes: what stands in the place of a combination of quasi-identifiers, where that decides: the values under their names,
            the labels as `LABEL` and the number of the column among `keys`. Rows of other combinations are left out. Where equal rows
            are parted, sensitive values are among the names, and a piece takes `RECORDS` of the rows from the place `FIRST` on.
        lost: the quasi-identifiers, by their number, of the rows that are left out, as they are published or, beside `classes`, as they
            were; the person behind them.
        keys: the columns that `lost` has numbers for.
        plain: the published columns that the search has not looked at. Without them rows are mostly alike, and are counted before
            they are joined.
    """

    shown: Sequence[str]
    labels: Mapping[str, str | pa.Table]
    keys: Sequence[str]
    lost: pa.Table | None = None
    classes: pa.Table | None = None
    owner: Sequence[str] = field(default=())
    plain: Sequence[str] = field(default=())

    @property
    def known(self) -> list[str]:
        """The columns whose values decide on the class of a row."""
        inside = () if self.classes is None else self.classes.column_names
        return [name for name in inside if name in self.shown]

    @property
    def quasi(self) -> list[str]:
        """The columns in whose place labels stand, in the order of their numbers."""
        return [name for name in self.keys if name in self.known]

    @property
    def parted(self) -> bool:
        """Whether equal rows are published in several ways, so many of them in each."""
        return self.classes is not None and FIRST in self.classes.column_names


class Rows(Protocol):
    """Rows that lie elsewhere."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""

    def collapsed(self, names: Sequence[str]) -> pa.Table:
        """Every distinct combination of some columns once, with its number of rows as `RECORDS`; one too many where there are too many."""

    def nobodies(self, person: str) -> int:
        """Rows without a person."""

    def several(self, person: str) -> bool:
        """Whether somebody has several rows."""

    def namesakes(self, person: str) -> int:
        """Persons who have the name of another but for case or leading zeros."""

    def further(self, name: str) -> int:
        """Rows that repeat a value of a column; those without one do not count."""


def checked(combinations: pa.Table, names: Sequence[str]) -> tuple[pa.Table, npt.NDArray[np.uint32]]:
    """Combinations in a stable order and how many rows have each; refuses more than one machine takes."""
    if combinations.num_rows > MOST_COMBINATIONS:
        raise DataError(
            f"The data has more than {MOST_COMBINATIONS:,} distinct combinations of {', '.join(names)}.",
            hint="Round the finest of these columns before the release.",
        )
    times = combinations.column(RECORDS).to_numpy()
    if int(times.sum()) >= MOST_ROWS:
        raise DataError("The data has too many rows for one release.", hint="Release it in parts that share no person.")
    return combinations.drop_columns([RECORDS]), times.astype(np.uint32)
