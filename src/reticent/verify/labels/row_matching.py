"""Rows of an input meet the published rows that may stand for them, without comparing each with each.

Both sides are trees, a column at each depth: rows that are the same in the first columns are one node. Only children of nodes that fit
are compared, and the children of a row's node that a label may stand for lie side by side.

Cost: the pairs that fit in the first columns, the choosiest of which come first.
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
"""Pairs that are followed into the next column together."""


@dataclass(frozen=True, repr=False)
class Field:
    """A column of both sides: codes of values and of labels by row, and which labels may stand for which values."""

    values: Int64s
    labels: Int64s
    fits: Segments

    @classmethod
    def from_labels(cls, source: pa.Table, shown: pa.Table, policy: Policy, name: str) -> Field:
        """A quasi-identifier of an input and of a release, by the policy's hierarchy."""
        (value, values), (label, labels) = codes(source[name]), codes(shown[name])
        return cls(value, label, Segments.from_labels(values, labels, policy, name))

    @classmethod
    def from_equal_texts(cls, cells: pa.ChunkedArray, shown: pa.ChunkedArray) -> Field:
        """A column that is published as it is."""
        (value, values), (label, labels) = codes(cells), codes(shown)
        return cls(value, label, Segments.from_equal_texts(values, labels))


@dataclass(frozen=True, repr=False)
class RowMatch:
    """Kinds of rows of the input, kinds of published rows, and which of them fit.

    Attributes:
        row, place: the kind of each row, and of each published row.
        pairs: the kinds that fit, a row of the input's above and a published row's below.
    """

    source_kind: Int64s
    published_kind: Int64s
    pairs: Int64s

    @property
    def source_counts(self) -> Int64s:
        """How many rows of the input each kind has."""
        return np.bincount(self.source_kind)

    @property
    def candidate_counts(self) -> Int64s:
        """How many rows of the input each published row may be."""
        fit = np.bincount(self.pairs[1], self.source_counts[self.pairs[0]], minlength=len(self.published_counts))
        return fit.astype(np.int64)[self.published_kind]

    @property
    def published_counts(self) -> Int64s:
        """How many published rows each kind has."""
        return np.bincount(self.published_kind)


def match_rows(fields: list[Field], source_size: int, published_size: int) -> RowMatch:
    """All kinds that fit in all fields."""
    fields = sorted(fields, key=lambda field: field.fits.fit_probability(field.values, field.labels))
    ours = _Tree.of([field.fits.rank[field.values] for field in fields], source_size)
    theirs = _Tree.of([field.labels for field in fields], published_size)
    start = np.zeros(min(1, source_size, published_size), dtype=np.int64)
    parts = list(_descend([field.fits for field in fields], ours, theirs, start, start))
    return RowMatch(ours.leaf, theirs.leaf, np.concatenate([np.empty((2, 0), dtype=np.int64), *parts], axis=1))


@dataclass(frozen=True, repr=False)
class _Tree:
    """Different rows as a tree.

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
    """From pairs of nodes that fit, the pairs of leaves below them."""
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
    """The children of each pair that fit in the column of this depth."""
    mine, shown = pairs
    begin, end = (np.searchsorted(theirs.parents[depth], shown, side=side) for side in ("left", "right"))
    pair, at = expand_counts(end - begin)
    child = begin[pair] + at
    label = theirs.codes[depth][child]
    one, at = expand_counts(fits.first[label + 1] - fits.first[label])
    stretch, parent = fits.first[label[one]] + at, mine[pair[one]]
    width = len(fits.rank) + 1
    keys = ours.parents[depth] * width + ours.codes[depth]
    low = np.searchsorted(keys, parent * width + fits.low[stretch])
    which, at = expand_counts(np.searchsorted(keys, parent * width + fits.high[stretch]) - low)
    return low[which] + at, child[one[which]]
