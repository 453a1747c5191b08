"""Rows where they lie: how combinations are counted there, and labels put in the place of values."""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from reticent.errors import DataError
from reticent.publication.identifier_variants import LEADING_ZEROS

MOST_COMBINATIONS = 50_000_000
"""What one machine takes; data with more distinct combinations is too fine for a full-domain release anyway."""
MOST_ROWS = 2**30
LEAF, LABEL, RECORDS, FIRST = "__leaf", "__label", "__records", "__first"
LABEL_TABLE = "ladder"
"""How the tables of labels begin that a recoding joins: they are small."""
_OVERLAP = f"least(r.__until, c.{FIRST} + c.{RECORDS}) - greatest(r.__until - r.{RECORDS}, c.{FIRST})"
"""How many of some equal rows a piece takes."""


@dataclass(frozen=True, repr=False)
class Recoding:
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

    published: Sequence[str]
    labels: Mapping[str, str | pa.Table]
    keys: Sequence[str]
    suppressed: pa.Table | None = None
    classes: pa.Table | None = None
    person_columns: Sequence[str] = field(default=())
    plain: Sequence[str] = field(default=())

    @property
    def class_columns(self) -> list[str]:
        """The columns whose values decide on the class of a row."""
        inside = () if self.classes is None else self.classes.column_names
        return [name for name in inside if name in self.published]

    @property
    def quasi(self) -> list[str]:
        """The columns in whose place labels stand, in the order of their numbers."""
        return [name for name in self.keys if name in self.class_columns]

    @property
    def is_split(self) -> bool:
        """Whether equal rows are published in several ways, so many of them in each."""
        return self.classes is not None and FIRST in self.classes.column_names


class Rows(ABC):
    """Rows that lie elsewhere, behind the SQL that DuckDB and Spark share; a class of its own has what each says otherwise."""

    source: str
    """What stands behind FROM."""
    columns: list[str]
    quote: ClassVar[str]
    """Stands around the name of a column, and twice where the name has it."""
    escapes: ClassVar[dict[str, str | int | None]]
    """What stands in a text in the place of signs that mean something there."""
    hash: ClassVar[str]
    """Of some `{cells}` under a `{key}`."""
    replacement: ClassVar[str]
    """How `regexp_replace` puts back two groups, wherever the pattern fits."""
    null_position: ClassVar[str]
    """Where missing cells stand among published rows."""

    @abstractmethod
    def is_text(self, name: str) -> bool:
        """Whether a column is of texts."""

    @abstractmethod
    def count_combinations(self, names: Sequence[str]) -> pa.Table:
        """Every distinct combination of some columns once, in a stable order, with its number of rows as `RECORDS`; one too many where there are too many."""

    @abstractmethod
    def _select(self, query: str) -> Self:
        """The rows that a query gives."""

    @abstractmethod
    def _scalar(self, query: str) -> int:
        """The one number that a query gives."""

    def _quote_name(self, name: str) -> str:
        return f"{self.quote}{name.replace(self.quote, 2 * self.quote)}{self.quote}"

    @classmethod
    def _quote_text(cls, words: str) -> str:
        return f"'{words.translate(str.maketrans(cls.escapes))}'"

    def _quote_names(self, names: Iterable[str]) -> str:
        return ", ".join(map(self._quote_name, names))

    def _count_query(self, names: Sequence[str]) -> str:
        keys = self._quote_names(names)
        return f"SELECT {keys}, count(*) AS {RECORDS} FROM {self.source} GROUP BY {keys}"  # noqa: S608 - names are quoted

    def without_markers(self, words: Sequence[str]) -> Self:
        """The rows with nothing where a cell is a marker that the policy declares."""
        if not words:
            return self
        markers = ", ".join(map(self._quote_text, words))
        names = map(self._quote_name, self.columns)
        cells = [f"CASE WHEN CAST({n} AS STRING) IN ({markers}) THEN NULL ELSE {n} END AS {n}" for n in names]
        return self._select(f"SELECT {', '.join(cells)} FROM {self.source}")  # noqa: S608

    def count_nulls(self, person: str) -> int:
        """Rows without a person."""
        return self._scalar(f"SELECT count(*) FROM {self.source} WHERE {self._quote_name(person)} IS NULL")  # noqa: S608

    def has_several_records(self, person: str) -> bool:
        """Whether somebody has several rows."""
        repeated = f"SELECT 1 FROM {self.source} GROUP BY {self._quote_name(person)} HAVING count(*) > 1 LIMIT 1"  # noqa: S608
        return bool(self._scalar(f"SELECT count(*) FROM ({repeated})"))  # noqa: S608

    def count_identifier_variants(self, person: str) -> int:
        """Persons who have the name of another but for case or leading zeros."""
        if not self.is_text(person):
            return 0
        names = f"SELECT DISTINCT CAST({self._quote_name(person)} AS STRING) AS p FROM {self.source}"  # noqa: S608
        loose = f"lower(regexp_replace(p, {self._quote_text(LEADING_ZEROS)}, {self.replacement}))"
        return self._scalar(f"SELECT count(p) - count(DISTINCT {loose}) FROM ({names})")  # noqa: S608

    def count_repeats(self, name: str) -> int:
        """Rows that repeat a value of a column; those without one do not count."""
        cells = self._quote_name(name)
        return self._scalar(f"SELECT count({cells}) - count(DISTINCT {cells}) FROM {self.source}")  # noqa: S608

    def _recoding_query(self, recoding: Recoding) -> tuple[str, dict[str, pa.Table]]:
        """The query for the rows as they are published, sorted by their cells, and the tables that it joins.

        Equal rows come once, with their number as `RECORDS`: they are counted, not sorted one by one.
        """
        tag = secrets.token_hex(4)  # a session may have names of its own
        tables: dict[str, pa.Table] = {}
        joins: list[str] = []
        shown = {name: f"r.{self._quote_name(name)}" for name in [*recoding.published, *recoding.person_columns]}
        for name, labels in recoding.labels.items():
            if isinstance(labels, str):
                shown[name] = self._quote_text(labels)
                continue
            ladder = f"{LABEL_TABLE}{len(tables)}_{tag}"
            tables[ladder] = labels
            joins.append(f"JOIN {ladder} ON r.{self._quote_name(name)} IS NOT DISTINCT FROM {ladder}.{LEAF}")
            shown[name] = f"{ladder}.{LABEL}"
        lost = shown
        if recoding.classes is not None:
            tables[f"classes_{tag}"] = recoding.classes
            same = [
                f"r.{self._quote_name(name)} IS NOT DISTINCT FROM c.{self._quote_name(name)}"
                for name in recoding.class_columns
            ]
            joins.append(
                f"JOIN classes_{tag} c ON {' AND '.join([*same, *([f'{_OVERLAP} > 0'] if recoding.is_split else [])])}"
            )
            lost = shown | {name: f"r.{self._quote_name(name)}" for name in recoding.quasi}
            shown |= {name: f"c.{LABEL}{i}" for i, name in enumerate(recoding.quasi)}
        if recoding.suppressed is not None:
            tables[f"lost_{tag}"] = recoding.suppressed
            gone = (f"{lost[name]} IS NOT DISTINCT FROM l.__{i}" for i, name in enumerate(recoding.keys))
            joins.append(f"ANTI JOIN lost_{tag} l ON {' AND '.join(gone)}")
        rows, number = self.source, "count(*)"
        if recoding.is_split:
            rows, number = f"({self._position_query(recoding)})", f"sum({_OVERLAP})"
        elif recoding.classes is not None and not recoding.plain and not recoding.person_columns:
            rows, number = f"({self._count_query(recoding.published)})", f"sum(r.{RECORDS})"
        cells = ", ".join(f"{shown[name]} AS {self._quote_name(name)}" for name in recoding.published)
        total = f"CAST({number} AS BIGINT) AS {RECORDS}"
        order = ", ".join(f"{self._quote_name(name)} {self.null_position}" for name in recoding.published)
        return f"SELECT {cells}, {total} FROM {rows} r {' '.join(joins)} GROUP BY ALL ORDER BY {order}", tables  # noqa: S608

    def _position_query(self, recoding: Recoding) -> str:
        """Equal rows with their number, and where they end among the rows of their combination.

        Those stand in an order of their other cells that a key decides which nobody keeps: else a reader could tell from the cells of one
        piece what those of another are not. The order is the same whenever the query is computed again.
        """
        until, cells = RECORDS, self._quote_names(recoding.plain)
        if cells:
            key = self.hash.format(key=self._quote_text(secrets.token_hex(16)), cells=cells)
            among = f"PARTITION BY {self._quote_names(recoding.class_columns)} ORDER BY {key}, {cells} ROWS UNBOUNDED PRECEDING"
            until = f"sum({RECORDS}) OVER ({among})"
        return f"SELECT *, {until} AS __until FROM ({self._count_query(recoding.published)})"  # noqa: S608


def split_counts(combinations: pa.Table, names: Sequence[str]) -> tuple[pa.Table, npt.NDArray[np.uint32]]:
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
