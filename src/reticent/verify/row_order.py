"""Orders that tell nothing: rows and group numbers of Anatomy must follow from what is public anyway, and the rows of a series.

Guarantee: where the findings hold, positions and numbers are a function of the published quasi-identifiers alone, and
    of the values' own text in the second table; so they cannot say who has which value.
Not covered: groups whose rows read alike, which may stand in any order among themselves.
Cost: one sort of the rows.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reticent.arrays import Int64s
from reticent.verify.groups import arrow_codes
from reticent.verify.result import Finding, none_of

_DRIFT = 5.0
"""Standard deviations: a random order is beyond them once in a million and more."""
_TOGETHER, _FEW = 20, 100
_LARGE = 10**18
_DIGITS = 18
"""As many as fit a number of 64 bits in any case."""


def check_row_order(qit: pa.Table, st: pa.Table) -> list[Finding]:
    """Rows by group and text; groups numbered from 0 in the order of their rows."""
    code, names = _group_numbers(qit["group"])
    row = _ranks(qit, [name for name in qit.column_names if name != "group"])
    owner, listed = _group_numbers(st["group"])
    lines = _pair_ranks(listed[owner], _ranks(st, ["value"]))
    shown, place = np.unique(names, return_inverse=True)
    group = place.reshape(-1)[code]
    falls = _count_descents(_pair_ranks(group, row))
    return [
        none_of("rows of 'st' stand by group and value", _count_descents(lines)),
        none_of("rows of 'qit' stand by group and text", falls),
        none_of("groups are numbered from 0", int((shown != np.arange(len(shown))).sum())),
        none_of("groups are numbered in the order of their rows", _count_list_descents(group, row, sorted_=not falls)),
        check_number_notation(qit["group"], st["group"], st["count"]),
    ]


def check_table_order(table: pa.Table, name: str, columns: list[str]) -> list[Finding]:
    """Rows by group and by the text of some columns; groups numbered from 1, in one way of writing numbers."""
    code, names = _group_numbers(table["group"])
    lines = _pair_ranks(names[code], _ranks(table, columns))
    return [
        none_of(f"rows of '{name}' stand by group and text", _count_descents(lines)),
        check_number_notation(table["group"]),
    ]


def check_number_notation(*columns: pa.ChunkedArray) -> Finding:
    """Groups and counts are written as whole numbers in one way: 7, and not 07 or +7, which would say something besides."""
    texts = pa.chunked_array([arrow_codes(column)[1] for column in columns])
    padded = pc.and_(pc.starts_with(texts, "0"), pc.greater(pc.binary_length(texts), 1))
    plain = pc.and_not(pc.ascii_is_decimal(texts), padded)
    return none_of("groups and counts are written in one way", len(texts) - int(pc.sum(plain).as_py() or 0))


def _group_numbers(column: pa.ChunkedArray) -> tuple[Int64s, NDArray[Any]]:
    """Which group stands in each row, and its number; what is no number stands before all.

    Those of more than eighteen digits are compared as Python does.
    """
    code, names = arrow_codes(column)
    plain = pc.and_(pc.ascii_is_decimal(names), pc.less_equal(pc.binary_length(names), _DIGITS))
    if pc.all(plain, skip_nulls=False).as_py():
        return code, names.cast(pa.int64()).to_numpy(zero_copy_only=False)
    values = [int(name) if name is not None and name.isdecimal() else -1 for name in names.to_pylist()]
    return code, np.array(values, dtype=object if any(value >= _LARGE for value in values) else np.int64)


def _ranks(table: pa.Table, columns: list[str]) -> Int64s:
    """The place of every row among all by the texts of some columns, a missing cell first; the same for rows that read alike."""
    place, size = np.zeros(table.num_rows, dtype=np.int64), 1
    for name in columns:
        code, texts = arrow_codes(table[name])
        width = max(1, len(texts))
        rank = np.empty(len(texts), dtype=np.int64)
        # By the bytes of UTF-8, which is by the signs' own numbers; what is missing comes last there.
        rank[np.roll(pc.sort_indices(texts).to_numpy(), texts.null_count)] = np.arange(len(texts))
        if size >= _LARGE // width:
            place = np.unique(place, return_inverse=True)[1].reshape(-1)
            size = len(place)
        place *= width
        place += rank[code]
        size *= width
    return place


def _pair_ranks(first: NDArray[Any], second: Int64s) -> Int64s:
    """The place of each pair among all."""
    width = int(second.max(initial=0)) + 1
    if first.dtype == object or int(first.max(initial=0)) + 1 >= _LARGE // width:
        first = np.unique(first, return_inverse=True)[1]
    return np.asarray(first * width + second, dtype=np.int64)


def _count_descents(places: Int64s) -> int:
    return int((places[1:] < places[:-1]).sum())


def _count_list_descents(group: Int64s, row: Int64s, *, sorted_: bool) -> int:
    """How many groups stand before the one before them, each as the sorted list of its rows."""
    rows, sizes = row if sorted_ else row[np.lexsort((row, group))], np.bincount(group)
    starts = np.cumsum(sizes) - sizes
    pairs, falls = np.arange(len(sizes) - 1), 0
    place = 0
    while len(pairs):  # those that have been alike so far
        left, right = (_nth(rows, starts[at], sizes[at], place) for at in (pairs, pairs + 1))
        falls += int((left > right).sum())
        pairs, place = pairs[(left == right) & (left >= 0)], place + 1
    return falls


def _nth(rows: Int64s, starts: Int64s, sizes: Int64s, place: int) -> Int64s:
    """A row of every list, -1 behind its end: a list stands behind those that it begins with."""
    there = place < sizes
    return np.where(there, rows[np.where(there, starts + place, 0)], -1)


def _ranks_of(places: Int64s) -> Int64s:
    """Each one's place among all of them."""
    there = np.zeros(int(places.max(initial=-1)) + 1, dtype=np.bool_)
    if int(places.min(initial=0)) >= 0:
        there[places] = True
        if int(there.sum()) == len(places):  # all different
            return np.asarray((np.cumsum(there) - 1)[places])
    ranks = np.empty(len(places), dtype=np.int64)
    ranks[np.argsort(places, kind="stable")] = np.arange(len(places))
    return ranks


def drift(cells: NDArray[Any]) -> float:
    """How far numbers go with their place, in standard deviations of a random order."""
    if not len(cells) or not np.ptp(cells):
        return 0.0
    return float(np.corrcoef(cells, np.arange(len(cells)))[0, 1]) * math.sqrt(len(cells) - 1)


def check_shuffle(places: Int64s) -> Finding:
    """Whether positions depend on those in the input: their rank correlation, and neighbours that stayed neighbours."""
    size = len(places)
    ranks = _ranks_of(places)
    moved = abs(drift(ranks))
    # In a random order about two pairs of neighbours stay together, whatever the size.
    together = int((np.abs(np.diff(ranks)) == 1).sum())
    holds = moved < _DRIFT and (size < _FEW or together < _TOGETHER)
    return Finding("rows do not stand in the order of the input", holds, round(moved, 2), _DRIFT)
