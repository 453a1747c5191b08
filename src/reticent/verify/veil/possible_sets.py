"""What a veil's published line and kernel make possible: sets of first events, and steps from set to set."""

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
    """Possible sets and steps, computed from the published parameters alone.

    Args:
        metadata: the content of `veil.json`.

    Raises:
        ValueError, KeyError, TypeError, OverflowError: the metadata is malformed.
    """

    def __init__(self, metadata: Mapping[str, Any]) -> None:
        self.line = CumulativeLine(metadata)
        self.factors = np.random.default_rng(3).integers(1 << 62, size=self.line.l, dtype=np.uint64) * 2 + 1
        """One odd number per slot: the sum of its products with the codes is the hash of a set."""
        self._sets: dict[int, UInt64s] = {}
        self._transitions = transitions_of(metadata.get("kernel"), self.line)
        self._steps: dict[tuple[int, tuple[int, ...], tuple[int, ...]], bool] = {}

    def set_hashes(self, stratum: int) -> UInt64s:
        """Return the hashes of all sets that are possible in a stratum."""
        return np.unique(self._hash_sets(self.line.sets(stratum)))

    def person_memory(self, make: Callable[..., _core.verify.TrajectoryVerifier]) -> _core.verify.TrajectoryVerifier:
        """Make a memory of persons that accepts possible sets and steps; it asks for the set hashes of each stratum."""
        line = self.line
        return make(
            values=len(line.domain), strata=len(line.strata), factors=self.factors, **self._transitions.core_arguments()
        )

    def can_step(self, stratum: int, before: Sequence[int], after: Sequence[int]) -> bool:
        """Return whether a set can follow another in a stratum: the kernel can lead the slots one to one."""
        if before == after and self._transitions.all_stay:
            return True
        key = stratum if self._transitions.by_stratum else 0, tuple(before), tuple(after)
        if key not in self._steps:
            if len(self._steps) > 1 << 16:
                self._steps.clear()
            ways = self._transitions.can_follow(stratum, np.array(before)[:, None], np.array(after)[None, :])
            # Usually each slot can lead to the slot at its place in canonical order; then no matching is needed.
            near = bool(ways.diagonal().all())
            self._steps[key] = near or matching_size([np.flatnonzero(way).tolist() for way in ways]) == len(before)
        return self._steps[key]

    def count_impossible_sets(self, candidates: Integers, strata: Integers) -> int:
        """Count the first events whose set is impossible in their stratum."""
        order, impossible = np.argsort(strata, kind="stable"), 0
        starts = np.flatnonzero(np.diff(strata[order], prepend=-1))
        for stratum, hashes in zip(
            strata[order][starts].tolist(), np.split(self._hash_sets(candidates)[order], starts)[1:], strict=True
        ):
            known = self._sets[stratum] = self._sets[stratum] if stratum in self._sets else self.set_hashes(stratum)
            at = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
            impossible += int((known[at] != hashes).sum())
        return impossible

    def _hash_sets(self, candidates: Integers) -> UInt64s:
        """Hash each set; two sets collide with a probability of 2**-60."""
        hashes: UInt64s = candidates.astype(np.uint64) @ self.factors + self.factors.sum()
        return hashes
