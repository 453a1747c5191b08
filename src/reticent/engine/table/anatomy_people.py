"""Anatomy for persons with several records: a cell has persons with equally many records, and one group per record.

Guarantee: a group contains a person at most once, and no value exceeds 1/l of a group. All groups of a person belong to
    one cell and have l values in common. So an attacker who knows all records of a person and intersects their groups
    still finds l candidates.
Not covered: as `anatomy`; the number of a person's records, which equals the number of groups in the cell.
Cost: O(n log n): the persons with r records are halved at random while both halves keep the guarantee.
Reference: our own method; with one record per person, the groups are those of X. Xiao, Y. Tao, "Anatomy", VLDB 2006.
Differences from the paper: groups are larger than l, since several of them must share values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from reticent.arrays import Int32s, Int64s

MAX_ATTEMPTS = 12
"""Most random halvings that are tried before a cell stays whole."""
_MAX_CELLS_ASKED = 64
"""Most cells that are tried for a left-over record."""


@dataclass
class Cells:
    """Cells of records: one array of row numbers per cell, with a row per person and a column per record."""

    codes: Int32s
    domain: int
    l: int
    rng: np.random.Generator
    finished: list[Int64s] = field(default_factory=list)

    def satisfies(self, cell: Int64s) -> bool:
        """Return whether no value exceeds 1/l in any group and all groups share l values."""
        if len(cell) < self.l:
            return False
        counts = np.stack([np.bincount(column, minlength=self.domain) for column in self.codes[cell].T])
        return bool((counts.max(axis=1) * self.l <= len(cell)).all() and (counts > 0).all(axis=0).sum() >= self.l)

    def shuffle(self, cell: Int64s) -> Int64s:
        """Shuffle the persons of a cell, and the records of each person."""
        shuffled: Int64s = self.rng.permuted(cell[self.rng.permutation(len(cell))], axis=1)
        return shuffled

    def fill(self, cell: Int64s) -> bool:
        """Cut a stratum into cells; return False if even the whole stratum breaks the guarantee."""
        whole = next((mix for mix in (self.shuffle(cell) for _ in range(MAX_ATTEMPTS)) if self.satisfies(mix)), None)
        if whole is None:
            return False
        waiting = [whole]
        while waiting:
            halves = self._halves(waiting.pop())
            if len(halves) == 1:
                self.finished += halves
            else:
                waiting += halves
        return True

    def _halves(self, cell: Int64s) -> list[Int64s]:
        half = len(cell) // 2
        if half >= self.l:
            for _ in range(MAX_ATTEMPTS):
                mix = self.shuffle(cell)
                if self.satisfies(mix[:half]) and self.satisfies(mix[half:]):
                    return [mix[:half], mix[half:]]
        return [cell]

    def drop_record(self, cell: Int64s) -> Int64s:
        """Drop one record of every person: the one whose value is most frequent in the stratum."""
        codes = self.codes[cell]
        frequencies = np.bincount(codes.reshape(-1), minlength=self.domain)[codes]
        dropped = (frequencies + self.rng.random(frequencies.shape)).argmax(axis=1)
        keep = np.arange(cell.shape[1])[None, :] != dropped[:, None]
        rest: Int64s = cell[keep].reshape(len(cell), -1)
        return rest


def group_people(
    codes: Int32s, persons: Int64s, *, domain: int, l: int, seed: bytes, singles: Callable[[Int64s], Int64s]
) -> Int64s:
    """Return the group of each row, -1 for rows to suppress.

    `singles` groups the rows of persons with one record by Anatomy: groups from 0, -1 for rows without a group.
    """
    cells = Cells(codes, domain, l, np.random.default_rng(list(seed)))
    alone = _fill_cells(cells, persons)
    groups = np.full(len(codes), -1, dtype=np.int64)
    if len(alone):
        groups[alone] = singles(alone)
    count = int(groups.max(initial=-1)) + 1
    for cell in cells.finished:
        groups[cell] = count + np.arange(cell.shape[1])
        count += cell.shape[1]
    _attach(cells, groups, alone[groups[alone] < 0])
    return groups


def _fill_cells(cells: Cells, persons: Int64s) -> Int64s:
    """Fill cells, persons with most records first; return the rows of persons who are left with one record."""
    order = np.lexsort((cells.rng.random(len(persons)), persons))
    starts = np.flatnonzero(np.diff(persons[order], prepend=-1))
    sizes = np.diff(np.append(starts, len(order)))
    above = np.zeros((0, int(sizes.max())), dtype=np.int64)
    for records in range(int(sizes.max()), 1, -1):
        own = order[starts[sizes == records][:, None] + np.arange(records)]
        stratum = np.concatenate([own, above])
        above = np.zeros((0, records - 1), dtype=np.int64)
        if len(stratum) and not cells.fill(stratum):
            above = cells.drop_record(stratum)
    return np.concatenate([order[starts[sizes == 1]], above.reshape(-1)])


def _attach(cells: Cells, groups: Int64s, rows: Int64s) -> None:
    """Put left-over records of persons with no other record into the first group of a cell that can take them."""
    if not cells.finished:
        return
    first_groups = [
        (int(groups[cell[0, 0]]), np.bincount(cells.codes[cell[:, 0]], minlength=cells.domain))
        for cell in cells.finished
    ]
    for row in rows:
        for at in cells.rng.permutation(len(first_groups))[:_MAX_CELLS_ASKED]:
            group, counts = first_groups[at]
            if (counts[cells.codes[row]] + 1) * cells.l <= counts.sum() + 1:
                counts[cells.codes[row]] += 1
                groups[row] = group
                break
