"""Received: a release as its recipient uses it; ask it, table it, follow it, complete it."""

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
_SMOOTH_NOTE = "Smooth estimates: drawn toward what readers believe beforehand, and not unbiased; the intervals are those of the unbiased ones."
_PREVIEW_ROWS = 5
"""Records that a notebook shows."""
_MIN_STRATUM = 100
"""Records that a stratum of the draws should hold at least, on average."""


def read(place: str | Path, *more: str | Path, sensitive: str | None = None, name: str = "release") -> Received:
    """Opens what was received.

    Args:
        place: a release folder, a stream's file (.ndjson), a Parquet file, or the URL of a database that `export` filled.
        more: the following releases of the same series; the column `release` then tells them apart.
        sensitive: the sensitive column, where the release does not say it.
        name: of the tables in a database.

    Example:
        received = reticent.read("release")
        received.count("type 2 diabetes", where=["age>=60", "sex=female"])
    """
    for each in (place, *more):
        if not isinstance(each, str | PathLike):
            raise PolicyError(
                f"A release is read where it lies; this is of the type {type(each).__name__}.",
                hint="Write it first: reticent.read(release.to_dir(FOLDER)).",
            )
    try:
        parts = [parts_of(each, name=name) for each in (place, *more)]
        return Received.of(parts[0] if len(parts) == 1 else join_series(parts), sensitive)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError, pa.ArrowException):
        raise DataError(
            "What was received has not the form of a release.", hint="`reticent verify` says what is wrong with it."
        ) from None


@dataclass(frozen=True, repr=False, eq=False)
class Received:
    """A release in the hands of its recipient.

    Attributes:
        shape: the records and their estimator.
        parts: the release as it lay there.
        sensitive: name of the sensitive column.
    """

    shape: Shape
    parts: Parts
    sensitive: str

    @classmethod
    def of(cls, parts: Parts, sensitive: str | None = None) -> Self:
        """A release by its parts, and the sensitive column where they do not say it."""
        check_codebook(parts.codebook)
        return cls(shape_of(parts, sensitive), parts, sensitive or sensitive_of(parts) or "value")

    def __repr__(self) -> str:
        fields = ", ".join(self.columns)
        return f"Received({self.records:,} records, {self.parts.shape}, {len(self.values)} values of {self.sensitive}, by {fields})"

    def _repr_html_(self) -> str:
        """What a notebook shows: what was received, and the first records."""
        head = self.shape.table.slice(0, _PREVIEW_ROWS)
        rows = zip(*(column.to_pylist() for column in head.columns), strict=True)
        return table_html(repr(self), head.column_names, rows)

    def __len__(self) -> int:
        return self.records

    @property
    def records(self) -> int:
        """Published records."""
        return int(self.shape.table.num_rows)

    @property
    def codebook(self) -> Mapping[str, Any]:
        """What the release says of itself."""
        return self.parts.codebook

    @property
    def values(self) -> tuple[str, ...]:
        """The values that can be asked for."""
        return self.shape.domain

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The published fields that conditions and `by` may name."""
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
        """How many records have one of the values.

        Args:
            values: labels, nodes of the hierarchy or beginnings (`E1*`); all if left out.
            where: conditions such as "age>=60", "sex=F", "age in 40..59"; all must hold.
            by: columns to count by, as they are published; the sensitive column counts by value.
            interval: level of the confidence intervals.
            smooth: draw the estimate toward what candidates or groups say at first sight, as far as the two agree: smaller errors, no
                longer unbiased; the interval stays.

        Raises:
            PolicyError: an unknown column or value, or a count that the release does not tell.
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
        """Which share of the records that fulfil the conditions have one of the values; arguments as of `count`."""
        return self._answer(values, _as_list(where), _as_list(by), interval, share=True, smooth=smooth)

    def table(self, rows: str, columns: str, where: OneOrMore = (), *, interval: float = 0.95) -> Answer:
        """Counts by two columns, one of which may be the sensitive one; one line per cell."""
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
        """Counts over the windows of a stream; `change` marks the windows with which a new level begins.

        Args:
            values: as of `count`.
            every: a number of records, or minute, hour, day, week, month, year of a column of times.
            time: the column of times; the first that holds some if left out.
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
        """Per record a number whose mean, given the truth, is 1 for the values and 0 for others: a response for linear models."""
        return self.shape.scores(self._target(values))

    def draws(self, m: int = 10, *, given: OneOrMore | None = None, seed: int | None = None) -> list[pa.Table]:
        """Completed data sets: the records with a drawn value in the sensitive column; pool results with `pool`.

        Args:
            m: how many.
            given: columns that the values may depend on: all that the analysis will relate to them. If left out, as many columns
                as the records carry.
            seed: makes the draws repeatable.
        """
        if m < 1:
            raise PolicyError("One draw at least.", hint="Write draws(10).")
        names = self._choose_strata() if given is None else _as_list(given)
        strata = self._group_by(names)[0]
        rng = np.random.default_rng(seed)
        labels = pa.array(self.values, pa.string())
        plain = self.shape.table.select([name for name in self.columns if name not in _RESERVED_COLUMNS])
        drawn = self.shape.values(strata, m, rng)
        return [plain.append_column(self.sensitive, labels.take(pa.array(codes))) for codes in drawn]

    # -- handing on --------------------------------------------------------------------------------------------------

    def to_arrow(self) -> pa.Table:
        """The records as an Arrow table; numbers and dates are numbers and dates."""
        return self.shape.table

    def to_pandas(self) -> Any:
        """The records as a pandas frame."""
        return pandas_of(self.shape.table)

    def to_polars(self) -> Any:
        """The records as a polars frame."""
        return polars_of(self.shape.table)

    def to_parquet(self, file: str | Path) -> Path:
        """Writes one Parquet file with the records, and all that `read` needs besides in its metadata."""
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
        """The lines of one piece of an answer."""
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
        """What to count apart: the published cells at once, or label by label where a cell may stand for several of them."""
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

    @cache  # noqa: B019 - a release is small in number and lives as long as its answers
    def _fine_labels(self, name: str) -> tuple[str, ...]:
        """The finest labels of a column of names in which coarser ones occur; none for numbers, dates and columns that are exact."""
        cells = [known_part(cell) for cell in pc.unique(self.shape.table.column(name)).to_pylist() if cell is not None]
        nodes = self._nodes(name)
        sets = [part for cell in cells for part in members(cell) or ()]
        coarse = {cell for cell in cells if cell == ANY or members(cell) or nodes.get(cell, ((), 0))[0]}
        fine = sorted({*cells, *sets} - coarse)
        line = any(number_extent(cell) or date_extent(cell) or prefix(cell) for cell in fine)
        return () if not coarse or line or not fine else tuple(fine)

    def _targets(self, values: OneOrMore | None, by: list[str]) -> list[tuple[str | None, Floats]]:
        """What to count: the values together, or each by itself where `by` names the sensitive column."""
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
            raise PolicyError("No value is named.", hint="Name one, or leave values out to count all.")
        chosen: set[str] = set()
        for value in _as_list(values):
            chosen |= self._labels(value)
        return np.isin(labels, sorted(chosen)).astype(np.float64)

    def _labels(self, value: str) -> set[str]:
        """The labels that a value names: itself, all below a node, all that begin so."""
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
                hint = f"It is a value of '{name}': --sensitive {name}, or read(PATH, sensitive=...)."
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
                raise PolicyError(f"'{self.sensitive}' is hidden.", hint="Ask for its values: values=..., or --value.")
            column = condition.column
            whole &= match(condition, self.shape.table.column(column), self._nodes(column), self._classes)
        return whole

    @cached_property
    def _classes(self) -> Int64s | None:
        """The class of each record where its intervals are as tight as can be, as Mondrian publishes them; otherwise none."""
        entries = self.codebook.get("columns", ())
        quasi = [entry["name"] for entry in entries if entry.get("role") == "quasi"]
        if self.codebook.get("method") != "mondrian" or not quasi or not self.records:
            return None
        return combinations([self.shape.table.column(name) for name in quasi])[0]

    def _unmatched_notes(self, where: list[str]) -> list[str]:
        """Conditions that no record can fulfil, with what was perhaps meant: a misspelt value must not pass for a count of 0."""
        notes = []
        for text in where:
            condition = parse_condition(text, list(self.columns))
            if self.records and not self._match([text]).perhaps.any():
                cells = pc.unique(self.shape.table.column(condition.column)).to_pylist()
                near = closest_name(condition.values[0], [str(cell) for cell in cells if cell is not None])
                hint = f" Did you mean '{near}'?" if near else ""
                notes.append(f"No published record fulfils '{text}'.{hint}")
        return notes

    def _group_by(self, names: list[str]) -> tuple[Any, list[tuple[Any, ...]]]:
        """Group of each record, and the cells of each group."""
        for name in names:
            if name not in self.columns:
                raise unknown_name_error("column", name, [*self.columns, self.sensitive])
        if not names:
            return np.zeros(self.records, dtype=np.int64), [()]
        return number_combinations([self.shape.table.column(name) for name in names])

    def _choose_strata(self) -> list[str]:
        """Columns with few cells first, as long as the strata stay full."""
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
                "No column holds moments of time.", hint="Name one with time=, or write a number of records."
            )
        if name not in self.columns:
            raise unknown_name_error("column", name, self.columns)
        return (name, *by_time(table.column(name), str(every), name))

    def _describe(self, what: str, values: OneOrMore | None, where: list[str], by: list[str], interval: float) -> str:
        asked = "all records" if values is None else f"{self.sensitive}: {', '.join(_as_list(values))}"
        parts = [f"{what.capitalize()} of {asked}", *(["where " + " and ".join(where)] if where else [])]
        parts += [f"by {', '.join(by)}"] if by else []
        kind = "bounds" if self.shape.bounded else f"{interval:.0%} interval"
        return f"{', '.join(parts)} ({kind})"


@dataclass(frozen=True, repr=False)
class _Piece:
    """Records that are counted at once: how far each belongs here, its group, and the groups' cells."""

    match: Match
    groups: Any
    cells: list[tuple[Any, ...]]


def _as_list(words: OneOrMore) -> list[str]:
    """One word or several; a code may come as the number it is."""
    several = isinstance(words, Iterable) and not isinstance(words, str)
    return [str(word) for word in words] if several else [str(words)]


def _check_level(interval: float) -> None:
    if not isinstance(interval, int | float) or not 0 < interval < 1:
        raise PolicyError("The level of an interval lies between 0 and 1.", hint="Write .95.")


def _drop_empty_groups(groups: Any, cells: list[tuple[Any, ...]], match: Match) -> tuple[Any, list[tuple[Any, ...]]]:
    """Without the groups that no record of the question can belong to."""
    some = np.bincount(groups[match.perhaps], minlength=len(cells)) > 0
    if len(cells) <= 1 or some.all():
        return groups, cells
    place = np.cumsum(some) - 1
    return np.where(some[groups], place[groups], 0), [cell for cell, used in zip(cells, some, strict=True) if used]


def _figures(names: Mapping[str, Sequence[Any]], counts: Counts) -> pa.Table:
    columns: dict[str, Any] = {name: pa.array(list(cells)) for name, cells in names.items()}
    figures = {"estimate": np.clip(counts.estimate, counts.low, counts.high), "low": counts.low, "high": counts.high}
    return pa.table(columns | {name: pa.array(np.asarray(part, dtype=np.float64)) for name, part in figures.items()})
