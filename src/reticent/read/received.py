"""Received: a release for its recipient; counts, shares, tables, series and completed data sets."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import product
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reticent.arrays import Floats, Int64s
from reticent.errors import DataError, PolicyError
from reticent.frames import pandas_of, polars_of
from reticent.notebook import table_html
from reticent.read.answer import Answer
from reticent.read.cells import ANY, date_extent, known_part, members, number_extent, prefix
from reticent.read.estimate.veil import Counts
from reticent.read.load import META, Parts, check_codebook, join_series, parts_of, sensitive_of, shape_of
from reticent.read.question import Question, Shape, bounded_shares, shares_of, shrink
from reticent.read.shape.labels import combinations, number_combinations
from reticent.read.where import Condition, Match, closest_name, match, match_all, parse_condition, unknown_name_error
from reticent.read.windows import by_records, by_time, find_changes, find_time_column

OneOrMore = str | Sequence[str]
_RESERVED_COLUMNS = ("group", "stratum", "event", "person", "seq")
_SMOOTH_NOTE = "Smooth estimates are shrunk toward the shares among the candidates or in the groups, so they are biased; the intervals are those of the unbiased estimates."
_PREVIEW_ROWS = 5
"""Records that a notebook shows."""
_MIN_STRATUM = 100
"""Smallest average number of records per stratum of the draws."""


def read(place: str | Path, *more: str | Path, sensitive: str | None = None, name: str = "release") -> Received:
    """Open a release.

    Args:
        place: a release folder, a stream file (.ndjson), a Parquet file, or the URL of a database that `export` wrote.
        more: the following releases of the same series; the column `release` then has their numbers.
        sensitive: the sensitive column, if the release does not name it.
        name: prefix of the tables in a database.

    Example:
        received = reticent.read("release")
        received.count("type 2 diabetes", where=["age>=60", "sex=female"])
    """
    for each in (place, *more):
        if not isinstance(each, str | PathLike):
            raise PolicyError(
                f"read expects a path or URL, not {type(each).__name__}.",
                hint="Write the release first: reticent.read(release.to_dir(FOLDER)).",
            )
    try:
        parts = [parts_of(each, name=name) for each in (place, *more)]
        return Received.of(parts[0] if len(parts) == 1 else join_series(parts), sensitive)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError, pa.ArrowException):
        raise DataError(
            "The files do not have the format of a release.", hint="Run `reticent verify` to find the error."
        ) from None


@dataclass(frozen=True, repr=False, eq=False)
class Received:
    """A release that the recipient can query.

    Attributes:
        shape: the records and their estimator.
        parts: tables and metadata as they were read.
        sensitive: name of the sensitive column.
    """

    shape: Shape
    parts: Parts
    sensitive: str

    @classmethod
    def of(cls, parts: Parts, sensitive: str | None = None) -> Self:
        """Build from the parts of a release; name the sensitive column if the parts do not."""
        check_codebook(parts.codebook)
        return cls(shape_of(parts, sensitive), parts, sensitive or sensitive_of(parts) or "value")

    def __repr__(self) -> str:
        fields = ", ".join(self.columns)
        return f"Received({self.records:,} records, {self.parts.shape}, {len(self.values)} values of {self.sensitive}, by {fields})"

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows: a summary and the first records."""
        head = self.shape.table.slice(0, _PREVIEW_ROWS)
        rows = zip(*(column.to_pylist() for column in head.columns), strict=True)
        return table_html(repr(self), head.column_names, rows)

    def __len__(self) -> int:
        return self.records

    @property
    def records(self) -> int:
        """Number of published records."""
        return int(self.shape.table.num_rows)

    @property
    def codebook(self) -> Mapping[str, Any]:
        """The codebook of the release."""
        return self.parts.codebook

    @property
    def values(self) -> tuple[str, ...]:
        """The sensitive values that can be counted."""
        return self.shape.domain

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The published columns that conditions and `by` can use."""
        hidden = {
            self.sensitive,
            *(f"{self.sensitive}_{i}" for i in range(1, 1 + int((self.parts.veil or {}).get("l", 0)))),
        }
        return tuple(
            n for n in self.shape.table.column_names if n not in hidden and n not in ("group", "stratum", "person")
        )

    # -- asking ------------------------------------------------------------------------------------------------------

    def count(
        self,
        values: OneOrMore | None = None,
        where: OneOrMore = (),
        by: OneOrMore = (),
        *,
        interval: float = 0.95,
        smooth: bool = False,
    ) -> Answer:
        """Count the records that have one of the values.

        Args:
            values: labels, hierarchy nodes or prefixes (`E1*`); default: all.
            where: conditions such as "age>=60", "sex=F", "age in 40..59"; all must hold.
            by: published columns to count by; the sensitive column counts by value.
            interval: level of the confidence intervals.
            smooth: shrink the estimate toward the shares among candidates or in groups, if both agree: smaller errors, but
                biased; the interval stays the same.

        Raises:
            PolicyError: an unknown column or value, or a count that cannot be estimated from the release.
        """
        return self._answer(values, _as_list(where), _as_list(by), interval, smooth=smooth)

    def share(
        self,
        values: OneOrMore | None = None,
        where: OneOrMore = (),
        by: OneOrMore = (),
        *,
        interval: float = 0.95,
        smooth: bool = False,
    ) -> Answer:
        """Return the share of the records under the conditions that have one of the values; arguments as in `count`."""
        return self._answer(values, _as_list(where), _as_list(by), interval, share=True, smooth=smooth)

    def table(self, rows: str, columns: str, where: OneOrMore = (), *, interval: float = 0.95) -> Answer:
        """Count by two columns, of which one may be the sensitive column; one row per cell."""
        return self._answer(None, _as_list(where), [rows, columns], interval)

    def series(
        self,
        values: OneOrMore | None = None,
        *,
        every: int | str = 1000,
        time: str | None = None,
        where: OneOrMore = (),
        interval: float = 0.95,
    ) -> Answer:
        """Count over the windows of a stream; `change` marks the windows that start a new level.

        Args:
            values: as in `count`.
            every: a number of records, or minute, hour, day, week, month or year of a column of times.
            time: the column of times; default: the first column that contains times.
            where: conditions.
            interval: level of the confidence intervals.
        """
        name, windows, labels = self._windows(every, time)
        question = Question(self._target(values), self._match(_as_list(where)), windows, len(labels), interval)
        counts = self.shape.counts(question)
        size = np.maximum(np.bincount(windows[self.shape.counted], minlength=len(labels)), 1)
        level = find_changes(counts.estimate / size, np.maximum(counts.variance, 1) / size**2)
        table = _figures({name: labels}, counts).append_column("change", pa.array(level))
        text = self._describe("count", values, _as_list(where), [f"windows of {every}"], interval)
        return Answer(table, text, interval, self.shape.notes)

    def scores(self, values: OneOrMore) -> Floats:
        """Return a response for linear models: per record a number with mean 1 for the values and 0 for others."""
        return self.shape.scores(self._target(values))

    def draws(self, m: int = 10, *, given: OneOrMore | None = None, seed: int | None = None) -> list[pa.Table]:
        """Return completed data sets: the records with a drawn sensitive value; pool the results with `pool`.

        Args:
            m: number of data sets.
            given: columns that the values may depend on: all columns of the analysis. Default: as many columns as the
                number of records allows.
            seed: makes the draws reproducible.
        """
        if m < 1:
            raise PolicyError("The number of draws must be at least 1.", hint="Write draws(10).")
        names = self._choose_strata() if given is None else _as_list(given)
        strata = self._group_by(names)[0]
        rng = np.random.default_rng(seed)
        labels = pa.array(self.values, pa.string())
        plain = self.shape.table.select([name for name in self.columns if name not in _RESERVED_COLUMNS])
        drawn = self.shape.values(strata, m, rng)
        return [plain.append_column(self.sensitive, labels.take(pa.array(codes))) for codes in drawn]

    # -- handing on --------------------------------------------------------------------------------------------------

    def to_arrow(self) -> pa.Table:
        """Return the records as an Arrow table, with typed numbers and dates."""
        return self.shape.table

    def to_pandas(self) -> Any:
        """Return the records as a pandas frame."""
        return pandas_of(self.shape.table)

    def to_polars(self) -> Any:
        """Return the records as a polars frame."""
        return polars_of(self.shape.table)

    def to_parquet(self, file: str | Path) -> Path:
        """Write one Parquet file with the records; its metadata contains all else that `read` needs."""
        about = self.parts.to_metadata()
        listed = self.parts.tables.get("st", self.parts.tables.get("counterfeits"))
        if listed is not None:
            about["listed"] = listed.to_pydict()
        table = self.shape.table.replace_schema_metadata({META: json.dumps(about)})
        pq.write_table(table, file)
        return Path(file)

    # -- parts of an answer ------------------------------------------------------------------------------------------

    def _answer(
        self,
        values: OneOrMore | None,
        where: list[str],
        by: list[str],
        interval: float,
        *,
        share: bool = False,
        smooth: bool = False,
    ) -> Answer:
        _check_level(interval)
        fields = [name for name in by if name != self.sensitive]
        pieces = self._pieces(self._match(where), fields)
        parts = [
            self._part(label, target, piece, fields, interval, share=share, smooth=smooth)
            for label, target in self._targets(values, by)
            for piece in pieces
        ]
        table = pa.concat_tables(parts, promote_options="permissive")
        ordered = [*(name for name in by if name in table.column_names), "estimate", "low", "high"]
        words = self._describe("share" if share else "count", values, where, by, interval)
        notes = (*self.shape.notes, *((_SMOOTH_NOTE,) if smooth else ()), *self._unmatched_notes(where))
        return Answer(table.select(ordered), words, interval, notes)

    def _part(
        self,
        label: str | None,
        target: Floats,
        piece: _Piece,
        fields: list[str],
        interval: float,
        *,
        share: bool,
        smooth: bool,
    ) -> pa.Table:
        """Return the rows of one piece of an answer."""
        cells = piece.cells
        question = Question(target, piece.match, piece.groups, len(cells), interval)
        counts = self.shape.counts(question)
        if smooth:
            counts = shrink(counts, question.sums(piece.match.share * self.shape.shares(target)))
        names = {name: [cell[i] for cell in cells] for i, name in enumerate(fields)}
        names |= {} if label is None else {self.sensitive: [label] * len(cells)}
        if share and self.shape.bounded:
            counts = bounded_shares(counts, self.shape.counts(replace(question, target=1 - target)))
        elif share:
            counts = shares_of(counts, piece.match, piece.groups, self.shape.counted)
        return _figures(names, counts)

    def _pieces(self, match: Match, fields: list[str]) -> list[_Piece]:
        """Return what to count separately: all published cells at once, or label by label if a cell covers several."""
        labels = {name: self._fine_labels(name) for name in fields if name in self.columns}
        coarse = [name for name in fields if labels.get(name)]
        if not coarse:
            return [_Piece(match, *_drop_empty_groups(*self._group_by(fields), match))]
        exact = [name for name in fields if name not in coarse]
        groups, cells = self._group_by(exact)
        pieces = []
        for choice in product(*(labels[name] for name in coarse)):
            part = match
            for name, label in zip(coarse, choice, strict=True):
                part &= self._equal(name, label)
            fine = dict(zip(coarse, choice, strict=True))
            whole = [tuple((fine | dict(zip(exact, cell, strict=True)))[name] for name in fields) for cell in cells]
            pieces.append(_Piece(part, *_drop_empty_groups(groups, whole, part)))
        return pieces

    def _equal(self, name: str, label: str) -> Match:
        return match(Condition(name, "=", (label,)), self.shape.table.column(name), self._nodes(name))

    @cache  # noqa: B019 - there are few releases, and they live as long as their answers
    def _fine_labels(self, name: str) -> tuple[str, ...]:
        """Return the finest labels of a text column with coarser cells; empty for numbers, dates and exact columns."""
        cells = [known_part(cell) for cell in pc.unique(self.shape.table.column(name)).to_pylist() if cell is not None]
        nodes = self._nodes(name)
        sets = [part for cell in cells for part in members(cell) or ()]
        coarse = {cell for cell in cells if cell == ANY or members(cell) or nodes.get(cell, ((), 0))[0]}
        fine = sorted({*cells, *sets} - coarse)
        line = any(number_extent(cell) or date_extent(cell) or prefix(cell) for cell in fine)
        return () if not coarse or line or not fine else tuple(fine)

    def _targets(self, values: OneOrMore | None, by: list[str]) -> list[tuple[str | None, Floats]]:
        """Return the targets: all values together, or each value if `by` names the sensitive column."""
        whole = self._target(values)
        if self.sensitive not in by:
            return [(None, whole)]
        every = np.eye(len(self.values))
        return [(self.values[code], every[code]) for code in np.flatnonzero(whole).tolist()]

    def _target(self, values: OneOrMore | None) -> Floats:
        labels = np.array(self.values)
        if values is None:
            return np.ones(len(labels))
        if not _as_list(values):
            raise PolicyError("values is empty.", hint="Name a value, or omit values to count all.")
        chosen: set[str] = set()
        for value in _as_list(values):
            chosen |= self._labels(value)
        return np.isin(labels, sorted(chosen)).astype(np.float64)

    def _labels(self, value: str) -> set[str]:
        """Return the labels that a value names: the value itself, all labels below a node, or all with a prefix."""
        beginning = prefix(value)
        below = self._nodes(self.sensitive).get(value, ((), 0))[0]
        chosen = {label for label in self.values if label == value or label in below}
        if beginning is not None:
            chosen |= {label for label in self.values if label.startswith(beginning)}
        if not chosen:
            raise self._unknown_value(value)
        return chosen

    def _unknown_value(self, value: str) -> PolicyError:
        table, entries = self.shape.table, self.codebook.get("columns", ())
        others = [entry["name"] for entry in entries if entry.get("role") == "sensitive"]
        for name in (name for name in others if name != self.sensitive and name in table.column_names):
            if value in pc.unique(table.column(name)).to_pylist():
                hint = f"Use --sensitive {name}, or read(PATH, sensitive=...): it is a value of '{name}'."
                return PolicyError(f"'{self.sensitive}' has no value '{value}'.", hint=hint)
        return unknown_name_error("value", value, self.values)

    def _nodes(self, column: str) -> dict[str, tuple[Sequence[str], int]]:
        entries = self.codebook.get("columns", ())
        nodes: dict[str, tuple[Sequence[str], int]] = {}
        for entry in entries:
            if column in (entry.get("name"), entry.get("source_column")):
                nodes |= {n: (node["below"], node["size"]) for n, node in (entry.get("nodes") or {}).items()}
        return nodes

    def _match(self, where: list[str]) -> Match:
        whole = match_all(self.records)
        for text in where:
            condition = parse_condition(text, [*self.columns, self.sensitive])
            if condition.column == self.sensitive:
                raise PolicyError(
                    f"'{self.sensitive}' cannot be used in a condition.", hint="Use values=..., or --value."
                )
            column = condition.column
            whole &= match(condition, self.shape.table.column(column), self._nodes(column), self._classes)
        return whole

    @cached_property
    def _classes(self) -> Int64s | None:
        """The class of each record for Mondrian, whose intervals are the tightest of their class; otherwise None."""
        entries = self.codebook.get("columns", ())
        quasi = [entry["name"] for entry in entries if entry.get("role") == "quasi"]
        if self.codebook.get("method") != "mondrian" or not quasi or not self.records:
            return None
        return combinations([self.shape.table.column(name) for name in quasi])[0]

    def _unmatched_notes(self, where: list[str]) -> list[str]:
        """Return notes on conditions that no record matches, so that a misspelled value does not look like a count of 0."""
        notes = []
        for text in where:
            condition = parse_condition(text, list(self.columns))
            if self.records and not self._match([text]).perhaps.any():
                cells = pc.unique(self.shape.table.column(condition.column)).to_pylist()
                near = closest_name(condition.values[0], [str(cell) for cell in cells if cell is not None])
                hint = f" Did you mean '{near}'?" if near else ""
                notes.append(f"No published record matches '{text}'.{hint}")
        return notes

    def _group_by(self, names: list[str]) -> tuple[Any, list[tuple[Any, ...]]]:
        """Return the group of each record, and the cells of each group."""
        for name in names:
            if name not in self.columns:
                raise unknown_name_error("column", name, [*self.columns, self.sensitive])
        if not names:
            return np.zeros(self.records, dtype=np.int64), [()]
        return number_combinations([self.shape.table.column(name) for name in names])

    def _choose_strata(self) -> list[str]:
        """Choose columns for strata, those with few distinct cells first, while the strata have enough records."""
        table = self.shape.table
        sizes = sorted(
            (pc.count_distinct(table.column(n)).as_py(), n) for n in self.columns if n not in _RESERVED_COLUMNS
        )
        names: list[str] = []
        room = max(self.records / _MIN_STRATUM, 1)
        for size, name in sizes:
            if size <= room:
                names.append(name)
                room /= max(size, 1)
        return names

    def _windows(self, every: int | str, time: str | None) -> tuple[str, Any, list[str]]:
        table = self.shape.table
        if isinstance(every, int) or str(every).isdecimal():
            known = "seq" in table.column_names
            position = table.column("seq").to_numpy().astype(np.int64) if known else np.arange(self.records)
            return ("from", *by_records(position, int(every)))
        name = time or find_time_column(table, list(self.columns))
        if name is None:
            raise PolicyError(
                "No column contains times.", hint="Name a column with time=, or write a number of records."
            )
        if name not in self.columns:
            raise unknown_name_error("column", name, self.columns)
        return (name, *by_time(table.column(name), str(every), name))

    def _describe(self, what: str, values: OneOrMore | None, where: list[str], by: list[str], interval: float) -> str:
        subject = "all records" if values is None else f"{self.sensitive}: {', '.join(_as_list(values))}"
        parts = [f"{what.capitalize()} of {subject}", *(["where " + " and ".join(where)] if where else [])]
        parts += [f"by {', '.join(by)}"] if by else []
        kind = "bounds" if self.shape.bounded else f"{interval:.0%} interval"
        return f"{', '.join(parts)} ({kind})"


@dataclass(frozen=True, repr=False)
class _Piece:
    """Records that are counted together: their match, their groups, and the cells of each group."""

    match: Match
    groups: Any
    cells: list[tuple[Any, ...]]


def _as_list(words: OneOrMore) -> list[str]:
    """Return one or several words as a list of text; a code may be a number."""
    several = isinstance(words, Iterable) and not isinstance(words, str)
    return [str(word) for word in words] if several else [str(words)]


def _check_level(interval: float) -> None:
    if not isinstance(interval, int | float) or not 0 < interval < 1:
        raise PolicyError("The level of an interval must be between 0 and 1.", hint="Write 0.95.")


def _drop_empty_groups(groups: Any, cells: list[tuple[Any, ...]], match: Match) -> tuple[Any, list[tuple[Any, ...]]]:
    """Remove the groups that no matching record can belong to."""
    nonempty = np.bincount(groups[match.perhaps], minlength=len(cells)) > 0
    if len(cells) <= 1 or nonempty.all():
        return groups, cells
    place = np.cumsum(nonempty) - 1
    return np.where(nonempty[groups], place[groups], 0), [
        cell for cell, used in zip(cells, nonempty, strict=True) if used
    ]


def _figures(names: Mapping[str, Sequence[Any]], counts: Counts) -> pa.Table:
    columns: dict[str, Any] = {name: pa.array(list(cells)) for name, cells in names.items()}
    figures = {"estimate": np.clip(counts.estimate, counts.low, counts.high), "low": counts.low, "high": counts.high}
    return pa.table(columns | {name: pa.array(np.asarray(part, dtype=np.float64)) for name, part in figures.items()})
