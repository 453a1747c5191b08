"""What the published line and kernel of a veil make possible: sets of first sights, and steps from one set to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reticent.audit.numbers import Numbers
from reticent.audit.veil import Line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    Codes = npt.NDArray[np.integer]

_WORD = (1 << 64) - 1
# Values up to which the kernel is written out as a matrix.
_DENSE = 4_096


class Possible:
    """Sets and steps, by the published document alone.

    Args:
        document: what `veil.json` says.

    Raises:
        ValueError, KeyError, TypeError, OverflowError: the document cannot be read.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.line = Line(document)
        self._factors = np.random.default_rng(3).integers(1 << 62, size=self.line.l, dtype=np.uint64) * 2 + 1
        self._plain = [int(factor) for factor in self._factors]
        self._sets: dict[int, Numbers] = {}
        self._followers = _followers(document.get("kernel"), len(self.line.domain))
        self._matrix = (
            _matrix(self._followers) if self._followers is not None and len(self._followers) <= _DENSE else None
        )
        self._all_stay = self._followers is None or all(v in after for v, after in enumerate(self._followers))
        """Whether every value may stay, so that a set that did not change needs no look."""
        self._steps: dict[tuple[tuple[int, ...], tuple[int, ...]], bool] = {}

    def gives(self, row: int, codes: Sequence[int]) -> bool:
        """Whether a row can give this set; as `impossible_sets`, for one."""
        return sum((code + 1) * factor for code, factor in zip(codes, self._plain, strict=True)) & _WORD in self._known(
            row
        )

    def leads(self, before: Sequence[int], after: Sequence[int]) -> bool:
        """Whether a set can follow another; as `impossible_steps`, for one."""
        if before == after and self._all_stay:
            return True
        return self._followers is not None and self._follows(before, after)

    def _known(self, row: int) -> Numbers:
        if row not in self._sets:
            self._sets[row] = Numbers(np.unique(self._names(self.line.sets(row))))
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
        names: npt.NDArray[np.uint64] = candidates.astype(np.uint64) @ self._factors + self._factors.sum()
        return names

    def impossible_steps(self, before: Codes, after: Codes) -> int:
        """How many sets cannot follow those before them: no way to lead every slot to another along the kernel."""
        if self._all_stay:
            moved = (before != after).any(axis=1)
            before, after = before[moved], after[moved]
        if self._followers is None:
            return len(before)
        if self._matrix is not None:
            # Mostly each slot can have gone to its neighbour in canonical order, and there is nothing to look for.
            bent = ~self._matrix[before, after].all(axis=1)
            before, after = before[bent], after[bent]
        doubtful = np.arange(len(before)) if self._matrix is None else self._doubtful(before, after, self._matrix)
        return sum(not self._follows(before[i].tolist(), after[i].tolist()) for i in doubtful)

    def _doubtful(self, before: Codes, after: Codes, matrix: npt.NDArray[np.bool_]) -> Codes:
        """Those for which the first way that comes to mind is closed: the slots with the fewest ways choose first."""
        ways = matrix[before[:, :, None], after[:, None, :]]
        out, into = ways.sum(axis=2), ways.sum(axis=1)
        # With so many ways out of every slot and into every slot there must be a matching (Hall).
        unsure = np.flatnonzero(out.min(axis=1) + into.min(axis=1) < self.line.l)
        ways, into, each = ways[unsure], into[unsure], np.arange(len(unsure))
        lost = np.zeros(len(unsure), dtype=bool)
        for slots in np.argsort(out[unsure], axis=1, kind="stable").T:
            choice = np.where(ways[each, slots], into, self.line.l + 1)
            to = choice.argmin(axis=1)
            lost |= choice[each, to] > self.line.l
            ways[each, :, to] = False
        return unsure[lost]

    def _follows(self, before: Sequence[int], after: Sequence[int]) -> bool:
        key = tuple(before), tuple(after)
        if key not in self._steps:
            if len(self._steps) > 1 << 16:
                self._steps.clear()
            self._steps[key] = self._matched(before, after)
        return self._steps[key]

    def _matched(self, before: Sequence[int], after: Sequence[int]) -> bool:
        """Whether every slot before has a slot after of its own (augmenting paths)."""
        assert self._followers is not None  # noqa: S101 - asked only where there is a kernel
        owner: dict[int, int] = {}
        followers = self._followers

        def place(slot: int, tried: set[int]) -> bool:
            for to, value in enumerate(after):
                if to not in tried and value in followers[before[slot]]:
                    tried.add(to)
                    if to not in owner or place(owner[to], tried):
                        owner[to] = slot
                        return True
            return False

        return all(place(slot, set()) for slot in range(len(before)))


def _followers(kernel: Any, size: int) -> list[frozenset[int]] | None:
    """Per value those that may follow it; None without a kernel: nothing moves."""
    if kernel is None:
        return None
    starts, targets, weights = ([int(x) for x in kernel[name]] for name in ("starts", "targets", "weights"))
    if len(starts) != size + 1 or len(weights) != len(targets) or min(weights, default=1) < 1:
        raise ValueError("the kernel does not fit the domain")
    return [frozenset(targets[starts[v] : starts[v + 1]]) for v in range(size)]


def _matrix(followers: list[frozenset[int]]) -> npt.NDArray[np.bool_]:
    matrix = np.zeros((len(followers), len(followers)), dtype=bool)
    for value, after in enumerate(followers):
        matrix[value, list(after)] = True
    return matrix
