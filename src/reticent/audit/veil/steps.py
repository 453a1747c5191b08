"""What the published line and kernel of a veil make possible: sets of first sights, and steps from one set to the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent.arrays import Integers, UInt64s
from reticent.audit.original.matching import matching
from reticent.audit.veil.judge import CumulativeLine
from reticent.audit.veil.moves import moves_of

if TYPE_CHECKING:
    from reticent import _core


class Possible:
    """Sets and steps, by the published document alone.

    Args:
        document: what `veil.json` says.

    Raises:
        ValueError, KeyError, TypeError, OverflowError: the document cannot be read.
    """

    def __init__(self, metadata: Mapping[str, Any]) -> None:
        self.line = CumulativeLine(metadata)
        self.factors = np.random.default_rng(3).integers(1 << 62, size=self.line.l, dtype=np.uint64) * 2 + 1
        """One odd number per slot: the sum of the products with the codes names a set."""
        self._sets: dict[int, UInt64s] = {}
        self._moves = moves_of(metadata.get("kernel"), self.line)
        self._steps: dict[tuple[int, tuple[int, ...], tuple[int, ...]], bool] = {}

    def names(self, stratum: int) -> UInt64s:
        """One number for each set that a row can give."""
        return np.unique(self._names(self.line.sets(stratum)))

    def followed(self, make: Callable[..., _core.judge.TrajectoryVerifier]) -> _core.judge.TrajectoryVerifier:
        """A memory of persons that lets through what is possible; it asks for the names of each row."""
        line = self.line
        return make(values=len(line.domain), rows=len(line.strata), factors=self.factors, **self._moves.numbers())

    def leads(self, stratum: int, before: Sequence[int], after: Sequence[int]) -> bool:
        """Whether a set can follow another under a row: some way leads every slot to one of its own along the kernel."""
        if before == after and self._moves.all_stay:
            return True
        key = stratum if self._moves.by_stratum else 0, tuple(before), tuple(after)
        if key not in self._steps:
            if len(self._steps) > 1 << 16:
                self._steps.clear()
            ways = self._moves.may(stratum, np.array(before)[:, None], np.array(after)[None, :])
            # Mostly each slot went to its neighbour in canonical order, and there is nothing to look for.
            near = bool(ways.diagonal().all())
            self._steps[key] = near or matching([np.flatnonzero(way).tolist() for way in ways]) == len(before)
        return self._steps[key]

    def impossible_sets(self, candidates: Integers, strata: Integers) -> int:
        """How many first sights are no set that their row can give."""
        order, offences = np.argsort(strata, kind="stable"), 0
        starts = np.flatnonzero(np.diff(strata[order], prepend=-1))
        for row, names in zip(
            strata[order][starts].tolist(), np.split(self._names(candidates)[order], starts)[1:], strict=True
        ):
            known = self._sets[row] = self._sets[row] if row in self._sets else self.names(row)
            at = np.minimum(np.searchsorted(known, names), len(known) - 1)
            offences += int((known[at] != names).sum())
        return offences

    def _names(self, candidates: Integers) -> UInt64s:
        """One number per set: two of them meet with a probability of 2**-60."""
        names: UInt64s = candidates.astype(np.uint64) @ self.factors + self.factors.sum()
        return names
