"""An attribute published by Mondrian's cuts: one interval or set of values per class."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.arrays import Bools, Floats, Int32s, Int64s, distinct
from reticent.utility.recoding import Recoding

ROOT = "*"
MISSING_SUFFIX = " or missing"
"""Suffix of an interval, a set or a value: the cell may also have been empty."""


@dataclass(frozen=True, repr=False)
class Cuts:
    """Ranks of an attribute's values and the class of each row.

    Attributes:
        values: the distinct values in order; at most the first is missing.
        ranks: the rank of each row's value.
        scale: the position of each value on a scale from 0 to 1.
        classes: the class of each row.
        numeric: whether classes are published as intervals; otherwise as sets of values.
        size: the number of leaves of the hierarchy, or of distinct values without a hierarchy.
        value_order: the code of each value.
        ends: the text of each value as the end of an interval; by default the value.
    """

    values: list[Any]
    ranks: Int32s
    scale: Floats
    classes: Int64s
    numeric: bool
    size: int
    value_order: Int64s
    ends: list[str | None] | None = None

    uniform = False

    @cached_property
    def _rank_spans(self) -> tuple[Int64s, Int64s, Int64s]:
        """Per class: lowest and highest rank of its known values, and its number of distinct values, missing included."""
        owner, rank = self._members
        starts = np.searchsorted(owner, np.arange(int(self.classes.max()) + 2))
        sizes = np.diff(starts)
        skip_missing = (rank[starts[:-1]] == 0) & (sizes > 1) & (self.values[0] is None)
        return rank[starts[:-1] + skip_missing], rank[starts[1:] - 1], sizes

    @cached_property
    def _has_missing(self) -> Bools:
        """Per class, whether it has both missing and known values."""
        owner, rank = self._members
        empty = np.zeros(int(self.classes.max()) + 1, dtype=bool)
        empty[owner[rank == 0]] = self.values[0] is None
        return np.asarray(empty & (self._rank_spans[2] > 1))

    @cached_property
    def _cell_sizes(self) -> Int64s:
        """Per class, the number of values that its cell covers."""
        low, high, sizes = self._rank_spans
        return np.asarray(high - low + 1 + self._has_missing if self.numeric else sizes)

    def exact_rows(self) -> Bools:
        """Return which rows keep their exact value."""
        return np.asarray((self._cell_sizes == 1)[self.classes])

    def match_share(self, asked: Floats) -> Floats:
        """Return per row the share of asked values (by code) among the values that its published cell covers."""
        asked = asked[self.value_order]
        low, high, sizes = self._rank_spans
        if self.numeric:
            below = np.concatenate([[0.0], np.cumsum(asked)])
            hits = below[high + 1] - below[low] + asked[0] * self._has_missing
        else:
            owner, rank = self._members
            hits = np.bincount(owner, weights=asked[rank], minlength=len(sizes))
        return np.asarray((hits / self._cell_sizes)[self.classes])

    def mass(self, weights: Floats) -> Floats:
        """Return the weight of each value (by code); a row spreads its weight over the values of its published cell."""
        low, high, sizes = self._rank_spans
        share = np.bincount(self.classes, weights=weights, minlength=len(sizes)) / self._cell_sizes
        values = np.zeros(len(self.values) + 1)
        if self.numeric:
            np.add.at(values, low, share)
            np.add.at(values, high + 1, -share)
            values = np.cumsum(values)
            values[0] += share[self._has_missing].sum()
        else:
            owner, rank = self._members
            np.add.at(values, rank, share[owner])
        mass = np.empty(len(self.values))
        mass[self.value_order] = values[:-1]
        return mass

    @cached_property
    def _members(self) -> tuple[Int64s, Int64s]:
        """The distinct pairs of class and rank, as two arrays."""
        pairs = distinct(self.classes * len(self.values) + self.ranks)
        return pairs // len(self.values), pairs % len(self.values)

    def labels(self, rows: Int64s) -> pa.Array:
        """Return the labels to publish, as text."""
        if self.numeric:
            low, high, _ = self._rank_spans
            texts = [self._interval(int(a), int(b)) for a, b in zip(low, high, strict=True)]
        else:
            texts = self._sets()
        missing = self._has_missing
        covers_all = (self._cell_sizes == len(self.values)) & (missing | (not self.numeric)) & (len(self.values) > 1)
        cells = [
            ROOT if root else f"{text}{MISSING_SUFFIX}" if or_missing else text
            for text, or_missing, root in zip(texts, missing.tolist(), covers_all.tolist(), strict=True)
        ]
        return pa.array(cells, type=pa.string()).take(pa.array(self.classes[rows]))

    def _interval(self, low: int, high: int) -> str | None:
        if low == high:
            return None if self.values[low] is None else str(self.values[low])
        ends = self.ends or self.values
        return f"[{ends[low]}, {ends[high]}]"

    def _sets(self) -> list[str | None]:
        members: list[list[str]] = [[] for _ in range(int(self.classes.max()) + 1)]
        for owner, rank in zip(*(column.tolist() for column in self._members), strict=True):
            if self.values[rank] is not None:
                members[owner].append(str(self.values[rank]))
        return ["{" + ", ".join(known) + "}" if len(known) > 1 else next(iter(known), None) for known in members]

    def recoding_of(self, rows: Int64s) -> Recoding:
        """Return the recoding of some rows for the utility measures; a class covers its set or its interval."""
        low, high, _ = self._rank_spans
        covered, mixed = self._cell_sizes, self._has_missing
        step = 1 / max(1, self.size - 1)
        spans = np.minimum(1.0, self.scale[high] - self.scale[low] + mixed * step)
        whole = (covered == len(self.values)) & (covered > 1) & (mixed | (not self.numeric))
        loss = np.where(whole, 1.0, spans if self.numeric else (covered - 1) * step)
        covered = np.where(whole, self.size, covered)
        at = self.classes[rows]
        _, node = np.unique(np.stack([low, high, mixed]), axis=1, return_inverse=True)
        return Recoding(
            source=self.ranks[rows],
            node=node.reshape(-1).astype(np.int64)[at] if self.numeric else at,
            share=(covered / self.size)[at],
            ncp=loss[at],
            size=self.size,
            level=None,
            height=1,
        )

    def summary(self, published: Bools) -> dict[str, Any]:
        """Return the number of published records with their exact value."""
        return {"exact_records": int(self.exact_rows()[published].sum())}
