"""Check that row order and group numbers of Anatomy and of a series follow from published content.

Guarantee: if the findings hold, positions and numbers depend only on the published quasi-identifiers and, in the second
    table, on the text of the values. An attacker cannot learn from the order who has which value.
Not covered: the order among groups whose rows have the same text.
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
from reticent.verify.result import Finding, FormCheck, none_of

_DRIFT = 5.0
"""Standard deviations that a random order exceeds less than once in a million cases."""
_TOGETHER, _FEW = 20, 100
_LARGE = 10**18
_DIGITS = 18
"""Decimal digits that always fit 64 bits."""


def check_row_order(qit: pa.Table, st: pa.Table) -> list[Finding]:
    """Check that rows are sorted by group and text, and groups numbered from 0 in the order of their rows."""
    code, names = _group_numbers(qit["group"])
    row = _ranks(qit, [name for name in qit.column_names if name != "group"])
    owner, listed = _group_numbers(st["group"])
    lines = _pair_ranks(listed[owner], _ranks(st, ["value"]))
    shown, place = np.unique(names, return_inverse=True)
    group = place.reshape(-1)[code]
    falls = _count_descents(_pair_ranks(group, row))
    return [
        none_of("rows of 'st' are sorted by group and value", _count_descents(lines)),
        none_of("rows of 'qit' are sorted by group and text", falls),
        none_of("groups are numbered from 0", int((shown != np.arange(len(shown))).sum())),
        none_of("groups are numbered in the order of their rows", _count_list_descents(group, row, sorted_=not falls)),
        check_number_notation(qit["group"], st["group"], st["count"]),
    ]


def check_table_order(table: pa.Table, name: str, columns: list[str]) -> list[Finding]:
    """Check that rows are sorted by group and by the text of some columns, and that group numbers are canonical."""
    code, names = _group_numbers(table["group"])
    lines = _pair_ranks(names[code], _ranks(table, columns))
    return [
        none_of(f"rows of '{name}' are sorted by group and text", _count_descents(lines)),
        check_number_notation(table["group"]),
    ]


def check_number_notation(*columns: pa.ChunkedArray) -> Finding:
    """Check that groups and counts are canonical whole numbers: 7, not 07 or +7, which could carry a message."""
    texts = pa.chunked_array([arrow_codes(column)[1] for column in columns])
    padded = pc.and_(pc.starts_with(texts, "0"), pc.greater(pc.binary_length(texts), 1))
    plain = pc.and_not(pc.ascii_is_decimal(texts), padded)
    return none_of("groups and counts are canonical whole numbers", len(texts) - int(pc.sum(plain).as_py() or 0))


def _group_numbers(column: pa.ChunkedArray) -> tuple[Int64s, NDArray[Any]]:
    """Return the group code of each row and the number of each group; -1 for a name that is no number.

    Numbers of more than eighteen digits become Python integers.
    """
    code, names = arrow_codes(column)
    plain = pc.and_(pc.ascii_is_decimal(names), pc.less_equal(pc.binary_length(names), _DIGITS))
    if pc.all(plain, skip_nulls=False).as_py():
        return code, names.cast(pa.int64()).to_numpy(zero_copy_only=False)
    values = [int(name) if name is not None and name.isdecimal() else -1 for name in names.to_pylist()]
    return code, np.array(values, dtype=object if any(value >= _LARGE for value in values) else np.int64)


def _ranks(table: pa.Table, columns: list[str]) -> Int64s:
    """Rank the rows by the texts of some columns, missing cells first; rows with equal texts share a rank."""
    place, size = np.zeros(table.num_rows, dtype=np.int64), 1
    for name in columns:
        code, texts = arrow_codes(table[name])
        width = max(1, len(texts))
        rank = np.empty(len(texts), dtype=np.int64)
        # Arrow sorts by UTF-8 bytes, which is by code point, and puts missing texts last.
        rank[np.roll(pc.sort_indices(texts).to_numpy(), texts.null_count)] = np.arange(len(texts))
        if size >= _LARGE // width:
            place = np.unique(place, return_inverse=True)[1].reshape(-1)
            size = len(place)
        place *= width
        place += rank[code]
        size *= width
    return place


def _pair_ranks(first: NDArray[Any], second: Int64s) -> Int64s:
    """Rank the pairs."""
    width = int(second.max(initial=0)) + 1
    if first.dtype == object or int(first.max(initial=0)) + 1 >= _LARGE // width:
        first = np.unique(first, return_inverse=True)[1]
    return np.asarray(first * width + second, dtype=np.int64)


def _count_descents(places: Int64s) -> int:
    return int((places[1:] < places[:-1]).sum())


def _count_list_descents(group: Int64s, row: Int64s, *, sorted_: bool) -> int:
    """Count the groups whose sorted list of rows is smaller than that of the group before."""
    rows, sizes = row if sorted_ else row[np.lexsort((row, group))], np.bincount(group)
    starts = np.cumsum(sizes) - sizes
    pairs, falls = np.arange(len(sizes) - 1), 0
    place = 0
    while len(pairs):  # pairs that are equal so far
        left, right = (_nth(rows, starts[at], sizes[at], place) for at in (pairs, pairs + 1))
        falls += int((left > right).sum())
        pairs, place = pairs[(left == right) & (left >= 0)], place + 1
    return falls


def _nth(rows: Int64s, starts: Int64s, sizes: Int64s, place: int) -> Int64s:
    """Return one row of every list, -1 past its end, so that a list sorts after its prefixes."""
    inside = place < sizes
    return np.where(inside, rows[np.where(inside, starts + place, 0)], -1)


def _ranks_of(places: Int64s) -> Int64s:
    """Return the rank of each place."""
    used = np.zeros(int(places.max(initial=-1)) + 1, dtype=np.bool_)
    if int(places.min(initial=0)) >= 0:
        used[places] = True
        if int(used.sum()) == len(places):  # all distinct
            return np.asarray((np.cumsum(used) - 1)[places])
    ranks = np.empty(len(places), dtype=np.int64)
    ranks[np.argsort(places, kind="stable")] = np.arange(len(places))
    return ranks


def drift(cells: NDArray[Any]) -> float:
    """Return the correlation of numbers with their position, in standard deviations of a random order."""
    if not len(cells) or not np.ptp(cells):
        return 0.0
    return float(np.corrcoef(cells, np.arange(len(cells)))[0, 1]) * math.sqrt(len(cells) - 1)


def check_shuffle(places: Int64s) -> Finding:
    """Check that positions do not depend on the input's: by rank correlation, and by neighbors that stayed together."""
    size = len(places)
    ranks = _ranks_of(places)
    correlation = abs(drift(ranks))
    # In a random order about two pairs of neighbors stay together, whatever the size.
    together = int((np.abs(np.diff(ranks)) == 1).sum())
    holds = correlation < _DRIFT and (size < _FEW or together < _TOGETHER)
    return FormCheck("the order of rows does not follow the input", holds, round(correlation, 2), _DRIFT)
