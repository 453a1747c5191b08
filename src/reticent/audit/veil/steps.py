"""What the published line and kernel of a veil make possible: sets of first sights, and steps from one set to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reticent.audit.numbers import Numbers
from reticent.audit.veil.judge import Line
from reticent.audit.veil.moves import Moves

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from reticent import _core

    Codes = npt.NDArray[np.integer]


class Possible:
    """Sets and steps, by the published document alone.

    Args:
        document: what `veil.json` says.

    Raises:
        ValueError, KeyError, TypeError, OverflowError: the document cannot be read.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.line = Line(document)
        self.factors = np.random.default_rng(3).integers(1 << 62, size=self.line.l, dtype=np.uint64) * 2 + 1
        """One odd number per slot: the sum of the products with the codes names a set."""
        self._sets: dict[int, Numbers] = {}
        self._moves = Moves(document.get("kernel"), self.line)
        self._steps: dict[tuple[int, tuple[int, ...], tuple[int, ...]], bool] = {}

    def names(self, row: int) -> npt.NDArray[np.uint64]:
        """One number for each set that a row can give."""
        return np.unique(self._names(self.line.sets(row)))

    def followed(self, make: Callable[..., _core.judge.Followed]) -> _core.judge.Followed:
        """A memory of persons that lets through what is possible; it asks for the names of each row."""
        line = self.line
        return make(values=len(line.domain), rows=len(line.rows), factors=self.factors, **self._moves.numbers())

    def leads(self, row: int, before: Sequence[int], after: Sequence[int]) -> bool:
        """Whether a set can follow another under a row; as `impossible_steps`, for one."""
        return (before == after and self._moves.all_stay) or self._follows(row, before, after)

    def _known(self, row: int) -> Numbers:
        if row not in self._sets:
            self._sets[row] = Numbers(self.names(row))
        return self._sets[row]

    def impossible_sets(self, candidates: Codes, rows: Codes) -> int:
        """How many first sights are no set that their row can give."""
        names = self._names(candidates)
        order = np.argsort(rows.astype(np.uint16), kind="stable")  # short keys are sorted by counting
        starts = np.flatnonzero(np.diff(rows[order], prepend=-1))
        parts = zip(rows[order][starts].tolist(), np.split(names[order], starts)[1:], strict=True)
        return sum(self._known(row).strangers(part) for row, part in parts)

    def _names(self, candidates: Codes) -> npt.NDArray[np.uint64]:
        """One number per set: two of them meet with a probability of 2**-60."""
        names: npt.NDArray[np.uint64] = candidates.astype(np.uint64) @ self.factors + self.factors.sum()
        return names

    def impossible_steps(self, before: Codes, after: Codes, rows: Codes) -> int:
        """How many sets cannot follow those before them: no way to lead every slot to another along the kernel."""
        if self._moves.all_stay:
            moved = (before != after).any(axis=1)
            before, after, rows = before[moved], after[moved], rows[moved]
        # Mostly each slot can have gone to its neighbour in canonical order, and there is nothing to look for.
        bent = ~self._moves.may(rows[:, None], before, after).all(axis=1)
        before, after, rows = before[bent], after[bent], rows[bent]
        doubtful = self._doubtful(before, after, rows)
        return sum(not self._follows(int(rows[i]), before[i].tolist(), after[i].tolist()) for i in doubtful)

    def _doubtful(self, before: Codes, after: Codes, rows: Codes) -> Codes:
        """Those for which the first way that comes to mind is closed: the slots with the fewest ways choose first."""
        ways = self._moves.may(rows[:, None, None], before[:, :, None], after[:, None, :])
        out, into = ways.sum(axis=2), ways.sum(axis=1)
        # With so many ways out of every slot and into every slot there must be a matching (Hall).
        unsure = np.flatnonzero(
            out.min(axis=1, initial=self.line.l) + into.min(axis=1, initial=self.line.l) < self.line.l
        )
        ways, into, each = ways[unsure], into[unsure], np.arange(len(unsure))
        lost = np.zeros(len(unsure), dtype=bool)
        for slots in np.argsort(out[unsure], axis=1, kind="stable").T:
            choice = np.where(ways[each, slots], into, self.line.l + 1)
            to = choice.argmin(axis=1)
            lost |= choice[each, to] > self.line.l
            ways[each, :, to] = False
        return unsure[lost]

    def _follows(self, row: int, before: Sequence[int], after: Sequence[int]) -> bool:
        key = row if self._moves.by_row else 0, tuple(before), tuple(after)
        if key not in self._steps:
            if len(self._steps) > 1 << 16:
                self._steps.clear()
            self._steps[key] = self._matched(row, before, after)
        return self._steps[key]

    def _matched(self, row: int, before: Sequence[int], after: Sequence[int]) -> bool:
        """Whether every slot before has a slot after of its own (augmenting paths); mostly its neighbour in canonical order."""
        may = self._moves.one
        if all(may(row, old, new) for old, new in zip(before, after, strict=True)):
            return True
        owner: dict[int, int] = {}

        def place(slot: int, tried: set[int]) -> bool:
            for to, value in enumerate(after):
                if to not in tried and may(row, before[slot], value):
                    tried.add(to)
                    if to not in owner or place(owner[to], tried):
                        owner[to] = slot
                        return True
            return False

        return all(place(slot, set()) for slot in range(len(before)))
