"""Match rows of an input with published rows that cover them, without comparing all pairs.

Both sides become trees with one column per depth: rows that agree in the first columns share a node. Only children of
matching nodes are compared, and the children that a label covers are adjacent.

Cost: the number of pairs that match in the first columns; the most selective columns come first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from reticent.arrays import Int64s
from reticent.policy import Policy
from reticent.verify.groups import codes
from reticent.verify.labels.coverage import Segments, expand_counts

_CHUNK = 1 << 18
"""Pairs that are extended to the next column together."""


@dataclass(frozen=True, repr=False)
class Field:
    """A column of both sides: codes of values and of labels by row, and which labels cover which values."""

    values: Int64s
    labels: Int64s
    fits: Segments

    @classmethod
    def from_labels(cls, source: pa.Table, shown: pa.Table, policy: Policy, name: str) -> Field:
        """Build for a quasi-identifier of an input and of a release, by the policy's hierarchy."""
        (value, values), (label, labels) = codes(source[name]), codes(shown[name])
        return cls(value, label, Segments.from_labels(values, labels, policy, name))

    @classmethod
    def from_equal_texts(cls, cells: pa.ChunkedArray, shown: pa.ChunkedArray) -> Field:
        """Build for a column that is published unchanged."""
        (value, values), (label, labels) = codes(cells), codes(shown)
        return cls(value, label, Segments.from_equal_texts(values, labels))


@dataclass(frozen=True, repr=False)
class RowMatch:
    """Kinds of input rows, kinds of published rows, and which of them match; equal rows are one kind.

    Attributes:
        source_kind, published_kind: the kind of each input row, and of each published row.
        pairs: the kinds that match, input kinds in the first row and published kinds in the second.
    """

    source_kind: Int64s
    published_kind: Int64s
    pairs: Int64s

    @property
    def source_counts(self) -> Int64s:
        """Number of input rows of each kind."""
        return np.bincount(self.source_kind)

    @property
    def candidate_counts(self) -> Int64s:
        """Number of input rows that each published row may come from."""
        fit = np.bincount(self.pairs[1], self.source_counts[self.pairs[0]], minlength=len(self.published_counts))
        return fit.astype(np.int64)[self.published_kind]

    @property
    def published_counts(self) -> Int64s:
        """Number of published rows of each kind."""
        return np.bincount(self.published_kind)


def match_rows(fields: list[Field], source_size: int, published_size: int) -> RowMatch:
    """Return all pairs of kinds that match in all fields."""
    fields = sorted(fields, key=lambda field: field.fits.fit_probability(field.values, field.labels))
    ours = _Tree.of([field.fits.rank[field.values] for field in fields], source_size)
    theirs = _Tree.of([field.labels for field in fields], published_size)
    start = np.zeros(min(1, source_size, published_size), dtype=np.int64)
    parts = list(_descend([field.fits for field in fields], ours, theirs, start, start))
    return RowMatch(ours.leaf, theirs.leaf, np.concatenate([np.empty((2, 0), dtype=np.int64), *parts], axis=1))


@dataclass(frozen=True, repr=False)
class _Tree:
    """Distinct rows as a tree.

    Attributes:
        parents, codes: per column, the parent of every node and its code in the column; sorted by both.
        leaf: the last node of every row.
    """

    parents: list[Int64s]
    codes: list[Int64s]
    leaf: Int64s

    @classmethod
    def of(cls, columns: list[Int64s], size: int) -> _Tree:
        order = np.lexsort(columns[::-1]) if columns else np.arange(size)
        node, fresh = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.bool_)
        fresh[:1] = True
        parents, codes = [], []
        for column in columns:
            code = column[order]
            fresh = fresh | np.append(True, code[1:] != code[:-1])[:size]
            starts = np.flatnonzero(fresh)
            parents.append(node[starts])
            codes.append(code[starts])
            node = np.cumsum(fresh) - 1
        leaf = np.empty(size, dtype=np.int64)
        leaf[order] = node
        return cls(parents, codes, leaf)


def _descend(fits: list[Segments], ours: _Tree, theirs: _Tree, mine: Int64s, shown: Int64s) -> Iterator[Int64s]:
    """Yield the pairs of matching leaves below pairs of matching nodes."""
    depth = len(ours.parents) - len(fits)
    if not fits:
        yield np.stack([mine, shown])
        return
    for start in range(0, len(mine), _CHUNK):
        part = slice(start, start + _CHUNK)
        below = _children(fits[0], ours, theirs, depth, (mine[part], shown[part]))
        yield from _descend(fits[1:], ours, theirs, *below)


def _children(
    fits: Segments, ours: _Tree, theirs: _Tree, depth: int, pairs: tuple[Int64s, Int64s]
) -> tuple[Int64s, Int64s]:
    """Return the children of each pair that match in the column of this depth."""
    mine, shown = pairs
    begin, end = (np.searchsorted(theirs.parents[depth], shown, side=side) for side in ("left", "right"))
    pair, at = expand_counts(end - begin)
    child = begin[pair] + at
    label = theirs.codes[depth][child]
    one, at = expand_counts(fits.first[label + 1] - fits.first[label])
    segment, parent = fits.first[label[one]] + at, mine[pair[one]]
    width = len(fits.rank) + 1
    keys = ours.parents[depth] * width + ours.codes[depth]
    low = np.searchsorted(keys, parent * width + fits.low[segment])
    which, at = expand_counts(np.searchsorted(keys, parent * width + fits.high[segment]) - low)
    return low[which] + at, child[one[which]]
