"""What the published line and kernel of a veil make possible: sets of first sights, and steps from one set to the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent.arrays import Integers, UInt64s
from reticent.verify.original.maximum_matching import matching_size
from reticent.verify.veil.transitions import transitions_of
from reticent.verify.veil.verifier import CumulativeLine

if TYPE_CHECKING:
    from reticent import _core


class PossibleSets:
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
        self._transitions = transitions_of(metadata.get("kernel"), self.line)
        self._steps: dict[tuple[int, tuple[int, ...], tuple[int, ...]], bool] = {}

    def set_hashes(self, stratum: int) -> UInt64s:
        """One number for each set that a row can give."""
        return np.unique(self._hash_sets(self.line.sets(stratum)))

    def person_memory(self, make: Callable[..., _core.verify.TrajectoryVerifier]) -> _core.verify.TrajectoryVerifier:
        """A memory of persons that lets through what is possible; it asks for the names of each row."""
        line = self.line
        return make(
            values=len(line.domain), strata=len(line.strata), factors=self.factors, **self._transitions.core_arguments()
        )

    def can_step(self, stratum: int, before: Sequence[int], after: Sequence[int]) -> bool:
        """Whether a set can follow another under a row: some way leads every slot to one of its own along the kernel."""
        if before == after and self._transitions.all_stay:
            return True
        key = stratum if self._transitions.by_stratum else 0, tuple(before), tuple(after)
        if key not in self._steps:
            if len(self._steps) > 1 << 16:
                self._steps.clear()
            ways = self._transitions.can_follow(stratum, np.array(before)[:, None], np.array(after)[None, :])
            # Mostly each slot went to its neighbour in canonical order, and there is nothing to look for.
            near = bool(ways.diagonal().all())
            self._steps[key] = near or matching_size([np.flatnonzero(way).tolist() for way in ways]) == len(before)
        return self._steps[key]

    def count_impossible_sets(self, candidates: Integers, strata: Integers) -> int:
        """How many first sights are no set that their row can give."""
        order, offences = np.argsort(strata, kind="stable"), 0
        starts = np.flatnonzero(np.diff(strata[order], prepend=-1))
        for row, names in zip(
            strata[order][starts].tolist(), np.split(self._hash_sets(candidates)[order], starts)[1:], strict=True
        ):
            known = self._sets[row] = self._sets[row] if row in self._sets else self.set_hashes(row)
            at = np.minimum(np.searchsorted(known, names), len(known) - 1)
            offences += int((known[at] != names).sum())
        return offences

    def _hash_sets(self, candidates: Integers) -> UInt64s:
        """One number per set: two of them meet with a probability of 2**-60."""
        names: UInt64s = candidates.astype(np.uint64) @ self.factors + self.factors.sum()
        return names
