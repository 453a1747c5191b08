"""Orders that tell nothing: rows and group numbers of Anatomy must follow from what is public anyway.

Guarantee: where the findings hold, positions and numbers are a function of the published quasi-identifiers alone, and
    of the values' own text in the second table; so they cannot say who has which value.
Not covered: groups whose rows read alike, which may stand in any order among themselves.
Cost: one sort of the rows.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent.audit.groups import codes
from reticent.audit.verdict import Finding, none_of

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

_DRIFT = 5.0
"""Standard deviations: a random order is beyond them once in a million and more."""
_TOGETHER, _FEW = 20, 100
_LARGE = 10**18


def check_order(qit: pa.Table, st: pa.Table) -> list[Finding]:
    """Rows by group and text; groups numbered from 0 in the order of their rows."""
    owner, row = _group_numbers(qit["group"]), _ranks(qit, [name for name in qit.column_names if name != "group"])
    lines = _pairs(_group_numbers(st["group"]), _ranks(st, ["value"]))
    shown = sorted(set(owner.tolist()))
    group = np.searchsorted(np.array(shown, dtype=owner.dtype), owner) if shown else np.zeros(0, dtype=np.int64)
    return [
        none_of("rows of 'st' stand by group and value", _falls(lines)),
        none_of("rows of 'qit' stand by group and text", _falls(_pairs(group, row))),
        none_of("groups are numbered from 0", sum(a != b for a, b in enumerate(shown))),
        none_of("groups are numbered in the order of their rows", _lists_that_fall(group, row)),
    ]


def _group_numbers(column: pa.ChunkedArray) -> NDArray[Any]:
    """Group numbers; what is no number stands before all. Those of more than eighteen digits are compared as Python does."""
    code, names = codes(column)
    numbers = [int(name) if name is not None and name.isdecimal() else -1 for name in names]
    large = any(number >= _LARGE for number in numbers)
    return np.array(numbers, dtype=object if large else np.int64)[code]


def _ranks(table: pa.Table, columns: list[str]) -> NDArray[np.int64]:
    """The place of every row among all by the texts of some columns, a missing cell first; the same for rows that read alike."""
    place = np.zeros(table.num_rows, dtype=np.int64)
    for name in columns:
        code, texts = codes(table[name])
        order = sorted(range(len(texts)), key=lambda at: (texts[at] is not None, texts[at] or ""))
        rank = np.empty(len(texts), dtype=np.int64)
        rank[order] = np.arange(len(texts))
        place = _pairs(place, rank[code])
    return place


def _pairs(first: NDArray[Any], second: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place of each pair among all."""
    width = int(second.max(initial=0)) + 1
    if first.dtype == object or int(first.max(initial=0)) + 1 >= _LARGE // width:
        first = np.unique(first, return_inverse=True)[1]
    return np.asarray(first * width + second, dtype=np.int64)


def _falls(places: NDArray[np.int64]) -> int:
    return int((places[1:] < places[:-1]).sum())


def _lists_that_fall(group: NDArray[np.int64], row: NDArray[np.int64]) -> int:
    """How many groups stand before the one before them, each as the sorted list of its rows."""
    order = np.lexsort((row, group))
    rows, sizes = row[order], np.bincount(group)
    starts = np.cumsum(sizes) - sizes
    pairs, falls = np.arange(len(sizes) - 1), 0
    place = 0
    while len(pairs):  # those that have been alike so far
        left, right = (_nth(rows, starts[at], sizes[at], place) for at in (pairs, pairs + 1))
        falls += int((left > right).sum())
        pairs, place = pairs[(left == right) & (left >= 0)], place + 1
    return falls


def _nth(rows: NDArray[np.int64], starts: NDArray[np.int64], sizes: NDArray[np.int64], place: int) -> NDArray[np.int64]:
    """A row of every list, -1 behind its end: a list stands behind those that it begins with."""
    there = place < sizes
    return np.where(there, rows[np.where(there, starts + place, 0)], -1)


def check_shuffled(places: NDArray[np.int64]) -> Finding:
    """Whether positions depend on those in the input: their rank correlation, and neighbours that stayed neighbours."""
    size = len(places)
    ranks = np.empty(size, dtype=np.int64)
    ranks[np.argsort(places, kind="stable")] = np.arange(size)
    spread = float(np.std(ranks)) if size else 0.0
    drift = float(np.corrcoef(ranks, np.arange(size))[0, 1]) * math.sqrt(size - 1) if spread else 0.0
    # In a random order about two pairs of neighbours stay together, whatever the size.
    together = int((np.abs(np.diff(ranks)) == 1).sum())
    holds = abs(drift) < _DRIFT and (size < _FEW or together < _TOGETHER)
    return Finding("rows do not stand in the order of the input", holds, round(abs(drift), 2), _DRIFT)
