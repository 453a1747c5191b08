"""Anatomy for persons with several records: cells of persons with equally many, one group for each of their records.

Guarantee: a group holds a person once; no value exceeds 1/l of a group; the groups of one cell, which are all groups that a
    person stands in, have l values in common. So a reader who knows all records of a person and intersects their
    groups still finds l candidates.
Not covered: as `anatomy`; that a cell's members have as many records as it has groups.
Cost: O(n log n): the persons with r records are halved at random as long as both halves keep the promise.
Reference: ours; the groups are those of X. Xiao, Y. Tao, "Anatomy", VLDB 2006, where everybody has one record.
Differences from the paper: groups are larger than l, since several of them must share values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from reticent.arrays import Int32s, Int64s

MAX_ATTEMPTS = 12
"""Random halvings of a cell before it stays whole."""
_MAX_CELLS_ASKED = 64
"""Cells that a left-over record asks for a place."""


@dataclass
class Cells:
    """Records by cell: one array of rows per cell, persons down and their records across."""

    codes: Int32s
    domain: int
    l: int
    rng: np.random.Generator
    finished: list[Int64s] = field(default_factory=list)

    def satisfies(self, cell: Int64s) -> bool:
        """No value above 1/l in any group, and l values in all of them."""
        if len(cell) < self.l:
            return False
        counts = np.stack([np.bincount(column, minlength=self.domain) for column in self.codes[cell].T])
        return bool((counts.max(axis=1) * self.l <= len(cell)).all() and (counts > 0).all(axis=0).sum() >= self.l)

    def shuffle(self, cell: Int64s) -> Int64s:
        """Persons in random order, and the records of each in random order."""
        mix: Int64s = self.rng.permuted(cell[self.rng.permutation(len(cell))], axis=1)
        return mix

    def fill(self, cell: Int64s) -> bool:
        """Cuts a stratum into cells; False where not even the whole of it keeps the promise."""
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
        """The stratum with one record less per person: of the value that is most frequent in it."""
        codes = self.codes[cell]
        often = np.bincount(codes.reshape(-1), minlength=self.domain)[codes]
        gone = (often + self.rng.random(often.shape)).argmax(axis=1)
        stay = np.arange(cell.shape[1])[None, :] != gone[:, None]
        rest: Int64s = cell[stay].reshape(len(cell), -1)
        return rest


def group_people(
    codes: Int32s,
    persons: Int64s,
    *,
    domain: int,
    l: int,
    seed: bytes,
    singles: Callable[[Int64s], Int64s],
) -> Int64s:
    """The group of each row, -1 where it must be suppressed.

    `singles` groups the rows of persons with one record as Anatomy does: their groups from 0, -1 where none takes them.
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
    """Fills cells from the persons with most records down; gives the rows of those who are left with one."""
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
    """Puts left-over records of persons who have no other into first groups of cells that can take them."""
    if not cells.finished:
        return
    homes = [
        (int(groups[cell[0, 0]]), np.bincount(cells.codes[cell[:, 0]], minlength=cells.domain))
        for cell in cells.finished
    ]
    for row in rows:
        for at in cells.rng.permutation(len(homes))[:_MAX_CELLS_ASKED]:
            group, counts = homes[at]
            if (counts[cells.codes[row]] + 1) * cells.l <= counts.sum() + 1:
                counts[cells.codes[row]] += 1
                groups[row] = group
                break
