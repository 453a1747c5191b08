"""Release: data and its guarantee, as one value."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from reticent.errors import PolicyError

Kind = Literal["table", "evolving", "series", "stream"]
Shape = Literal["generalized", "anatomy", "m-distinct", "stream", "veil", "linked"]
_PREVIEW_ROWS = 5
"""Of each table that a notebook shows."""


@dataclass(frozen=True)
class RecordCounts:
    """Where the input rows went: rows_in = published + held + suppressed."""

    input: int = 0
    published: int = 0
    withheld: int = 0
    suppressed: int = 0

    def __add__(self, other: RecordCounts) -> RecordCounts:
        return RecordCounts(
            self.input + other.input,
            self.published + other.published,
            self.withheld + other.withheld,
            self.suppressed + other.suppressed,
        )


@dataclass(frozen=True)
class Guarantee:
    """What is claimed, against whom, and what is not covered; in words that a custodian can read out.

    Attributes:
        claims: model -> parameter, as `{"k": 5, "l": {"distinct": 3}}`; the judge recomputes each.
        against: who cannot learn more than claimed.
        not_covered: what the claim leaves open.
    """

    claims: Mapping[str, Any]
    against: str
    not_covered: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class Release:
    """One publication: tables by name, the guarantee, counts, metrics, and how it came about.

    Attributes:
        kind: what was given away: a table once, an evolving table, a series, a stream.
        shape: "generalized" {data}, "anatomy" {qit, st}, "m-distinct" {data, counterfeits}, "veil" {data}, "stream" {group, tuple | record} or "linked" {the policy's tables}.
        explain: what was done and why: levels reached, nodes checked, what each attribute cost.
        documents: what a recipient needs besides the tables, by name: `veil` becomes `veil.json`.
        store: which store released it, in which of its lives, as which number, and after what; None without a store.
        seeded: the random choices came from a given seed, so this is fit for tests only.
    """

    kind: Kind
    shape: Shape
    method: str
    tables: Mapping[str, pa.Table]
    guarantee: Guarantee
    records: RecordCounts
    policy_hash: str
    metrics: Mapping[str, float] = field(default_factory=dict)
    explain: Mapping[str, Any] = field(default_factory=dict)
    seeded: bool = False
    metadata: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    store: Mapping[str, Any] | None = None

    def __repr__(self) -> str:
        rows = ", ".join(f"{name}: {table.num_rows}" for name, table in self.tables.items())
        return f"Release({self.kind}, {self.shape}, method={self.method}, rows {{{rows}}}, claims {dict(self.guarantee.claims)})"

    def _repr_html_(self) -> str:
        """What a notebook shows: what is claimed, where the rows went, and the first rows as the world sees them."""
        from reticent.notebook import table_html
        from reticent.release.wording import claims_in_words

        facts = [("claim", sentence) for sentence in claims_in_words(self.guarantee.claims)]
        facts += [("holds against", self.guarantee.against)]
        facts += [("not covered", words) for words in self.guarantee.not_covered]
        facts += [(name, f"{number:,}") for name, number in vars(self.records).items()]
        facts += [("", "made with a seed: fit for tests, not for publication")] if self.seeded else []
        parts = [table_html(f"Release of a {self.kind} by {self.method}", ("", ""), facts)]
        for name, table in self.tables.items():
            rows = zip(*(column.to_pylist() for column in table.slice(0, _PREVIEW_ROWS).columns), strict=True)
            parts.append(table_html(f"{name}: {table.num_rows:,} rows", table.column_names, rows))
        return "".join(parts)

    def to_arrow(self, name: str | None = None) -> pa.Table:
        """A table of the release; without a name the first: `data`, or `qit`."""
        if name is not None and name not in self.tables:
            raise PolicyError(f"The release has no table '{name}'.", hint=f"It has: {', '.join(self.tables)}.")
        return self.tables[name or next(iter(self.tables))]

    def to_pandas(self, name: str | None = None) -> Any:
        """A table of the release as a pandas frame; whole numbers and truth values stay what they are where cells are missing."""
        from reticent.frames import pandas_of

        return pandas_of(self.to_arrow(name))

    def to_polars(self, name: str | None = None) -> Any:
        """A table of the release as a polars frame."""
        from reticent.frames import polars_of

        return polars_of(self.to_arrow(name))

    def to_dir(self, path: str | Path, *, format: str = "csv", now: dt.datetime | None = None) -> Path:  # noqa: A002 - the users' word
        """Writes the release as a folder, wholly or not at all."""
        from reticent.release import folder

        return folder.write(self, Path(path), format, now)

    @classmethod
    def from_dir(cls, path: str | Path) -> Release:
        """Reads a folder that `to_dir` wrote."""
        from reticent.release import codec, folder

        manifest, tables, documents = folder.read(Path(path))
        return codec.from_dict(manifest, tables, documents)
