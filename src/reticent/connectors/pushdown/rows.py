"""SQL for rows in Spark or DuckDB: count combinations there, and replace values with labels."""

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
"""Limit for one machine; data with more distinct combinations is too fine for a full-domain release anyway."""
MOST_ROWS = 2**30
LEAF, LABEL, RECORDS, FIRST = "__leaf", "__label", "__records", "__first"
LABEL_TABLE = "labels"
"""Prefix of the label tables that a recoding joins; they are small."""
_OVERLAP = f"least(r.__until, c.{FIRST} + c.{RECORDS}) - greatest(r.__until - r.{RECORDS}, c.{FIRST})"
"""Number of equal rows that fall into a piece."""


@dataclass(frozen=True, repr=False)
class Recoding:
    """How rows are published.

    Attributes:
        published: the published columns, in order.
        labels: replacement for a column's values: one label for all, or pairs of `LEAF` and `LABEL`.
        keys: the columns that `suppressed` numbers.
        suppressed: the quasi-identifiers (by number) of the suppressed rows, as published or, with `classes`, as in the
            input; the person comes last.
        classes: labels per combination of quasi-identifiers, if the labels depend on it: the values under their names,
            the labels as `LABEL` and the column's number among `keys`. Rows of other combinations are suppressed. If
            equal rows are split, sensitive values are among the names, and a piece takes `RECORDS` rows from position
            `FIRST` on.
        person_columns: the person column, if rows are suppressed person by person.
        plain: the published columns that the search does not use. Without them, equal rows are counted before the join.
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
        """The columns whose values decide the class of a row."""
        inside = () if self.classes is None else self.classes.column_names
        return [name for name in inside if name in self.published]

    @property
    def quasi(self) -> list[str]:
        """The columns that labels replace, in the order of their numbers."""
        return [name for name in self.keys if name in self.class_columns]

    @property
    def is_split(self) -> bool:
        """Whether equal rows are published with different labels, a given number with each."""
        return self.classes is not None and FIRST in self.classes.column_names


class Rows(ABC):
    """Rows outside Python, with the SQL that DuckDB and Spark share; a subclass has the differences."""

    source: str
    """The table expression after FROM."""
    columns: list[str]
    quote: ClassVar[str]
    """Quotes a column name; doubled inside the name."""
    escapes: ClassVar[dict[str, str | int | None]]
    """Replacements for special characters in a text."""
    hash: ClassVar[str]
    """Hash of `{cells}` under a `{key}`."""
    replacement: ClassVar[str]
    """Arguments of `regexp_replace` that keep two groups, at every match."""
    null_position: ClassVar[str]
    """Position of missing cells in the sort order of published rows."""

    @abstractmethod
    def is_text(self, name: str) -> bool:
        """Return whether a column holds text."""

    @abstractmethod
    def count_combinations(self, names: Sequence[str]) -> pa.Table:
        """Return every combination of the columns with its row count, in a stable order, up to the limit + 1."""

    @abstractmethod
    def _select(self, query: str) -> Self:
        """Return the rows of a query."""

    @abstractmethod
    def _scalar(self, query: str) -> int:
        """Return the single number of a query."""

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
        """Return the rows with null in place of the policy's missing-value markers."""
        if not words:
            return self
        markers = ", ".join(map(self._quote_text, words))
        names = map(self._quote_name, self.columns)
        cells = [f"CASE WHEN CAST({n} AS STRING) IN ({markers}) THEN NULL ELSE {n} END AS {n}" for n in names]
        return self._select(f"SELECT {', '.join(cells)} FROM {self.source}")  # noqa: S608

    def count_nulls(self, person: str) -> int:
        """Count the rows without a person."""
        return self._scalar(f"SELECT count(*) FROM {self.source} WHERE {self._quote_name(person)} IS NULL")  # noqa: S608

    def has_several_records(self, person: str) -> bool:
        """Return whether any person has several rows."""
        repeated = f"SELECT 1 FROM {self.source} GROUP BY {self._quote_name(person)} HAVING count(*) > 1 LIMIT 1"  # noqa: S608
        return bool(self._scalar(f"SELECT count(*) FROM ({repeated})"))  # noqa: S608

    def count_identifier_variants(self, person: str) -> int:
        """Count the identifiers that differ from another one only in case or leading zeros."""
        if not self.is_text(person):
            return 0
        names = f"SELECT DISTINCT CAST({self._quote_name(person)} AS STRING) AS p FROM {self.source}"  # noqa: S608
        normalized = f"lower(regexp_replace(p, {self._quote_text(LEADING_ZEROS)}, {self.replacement}))"
        return self._scalar(f"SELECT count(p) - count(DISTINCT {normalized}) FROM ({names})")  # noqa: S608

    def count_repeats(self, name: str) -> int:
        """Count the rows that repeat a value of a column; null does not count."""
        cells = self._quote_name(name)
        return self._scalar(f"SELECT count({cells}) - count(DISTINCT {cells}) FROM {self.source}")  # noqa: S608

    def _recoding_query(self, recoding: Recoding) -> tuple[str, dict[str, pa.Table]]:
        """Return the query for the published rows, sorted by their cells, and the tables that it joins.

        Equal rows appear once, with their number as `RECORDS`: they are counted, not sorted one by one.
        """
        tag = secrets.token_hex(4)  # avoids names of the session
        tables: dict[str, pa.Table] = {}
        joins: list[str] = []
        expressions = {name: f"r.{self._quote_name(name)}" for name in [*recoding.published, *recoding.person_columns]}
        for name, labels in recoding.labels.items():
            if isinstance(labels, str):
                expressions[name] = self._quote_text(labels)
                continue
            label_table = f"{LABEL_TABLE}{len(tables)}_{tag}"
            tables[label_table] = labels
            joins.append(f"JOIN {label_table} ON r.{self._quote_name(name)} IS NOT DISTINCT FROM {label_table}.{LEAF}")
            expressions[name] = f"{label_table}.{LABEL}"
        original = expressions
        if recoding.classes is not None:
            tables[f"classes_{tag}"] = recoding.classes
            same = [
                f"r.{self._quote_name(name)} IS NOT DISTINCT FROM c.{self._quote_name(name)}"
                for name in recoding.class_columns
            ]
            joins.append(
                f"JOIN classes_{tag} c ON {' AND '.join([*same, *([f'{_OVERLAP} > 0'] if recoding.is_split else [])])}"
            )
            original = expressions | {name: f"r.{self._quote_name(name)}" for name in recoding.quasi}
            expressions |= {name: f"c.{LABEL}{i}" for i, name in enumerate(recoding.quasi)}
        if recoding.suppressed is not None:
            tables[f"lost_{tag}"] = recoding.suppressed
            conditions = (f"{original[name]} IS NOT DISTINCT FROM l.__{i}" for i, name in enumerate(recoding.keys))
            joins.append(f"ANTI JOIN lost_{tag} l ON {' AND '.join(conditions)}")
        rows, number = self.source, "count(*)"
        if recoding.is_split:
            rows, number = f"({self._position_query(recoding)})", f"sum({_OVERLAP})"
        elif recoding.classes is not None and not recoding.plain and not recoding.person_columns:
            rows, number = f"({self._count_query(recoding.published)})", f"sum(r.{RECORDS})"
        cells = ", ".join(f"{expressions[name]} AS {self._quote_name(name)}" for name in recoding.published)
        total = f"CAST({number} AS BIGINT) AS {RECORDS}"
        order = ", ".join(f"{self._quote_name(name)} {self.null_position}" for name in recoding.published)
        return f"SELECT {cells}, {total} FROM {rows} r {' '.join(joins)} GROUP BY ALL ORDER BY {order}", tables  # noqa: S608

    def _position_query(self, recoding: Recoding) -> str:
        """Return the query for equal rows with their count and their end position among the rows of their combination.

        A secret key, which is not stored, decides the order by the other cells. Otherwise an attacker could infer from
        the cells of one piece what is not in another. The order is the same whenever the query is computed again.
        """
        until, cells = RECORDS, self._quote_names(recoding.plain)
        if cells:
            key = self.hash.format(key=self._quote_text(secrets.token_hex(16)), cells=cells)
            window = f"PARTITION BY {self._quote_names(recoding.class_columns)} ORDER BY {key}, {cells} ROWS UNBOUNDED PRECEDING"
            until = f"sum({RECORDS}) OVER ({window})"
        return f"SELECT *, {until} AS __until FROM ({self._count_query(recoding.published)})"  # noqa: S608


def split_counts(combinations: pa.Table, names: Sequence[str]) -> tuple[pa.Table, npt.NDArray[np.uint32]]:
    """Return the combinations in a stable order and the row count of each; refuse more than one machine can handle."""
    if combinations.num_rows > MOST_COMBINATIONS:
        raise DataError(
            f"The data has more than {MOST_COMBINATIONS:,} distinct combinations of {', '.join(names)}.",
            hint="Round the finest of these columns before the release.",
        )
    times = combinations.column(RECORDS).to_numpy()
    if int(times.sum()) >= MOST_ROWS:
        raise DataError(
            "The data has too many rows for one release.", hint="Release it in parts that have no person in common."
        )
    return combinations.drop_columns([RECORDS]), times.astype(np.uint32)
