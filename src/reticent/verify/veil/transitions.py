"""Which value can follow which under the published transition kernel of a veil, in either of its forms.

A matrix lists the transitions of each value. A short kernel (`stay`, `within`, `parents`) depends on the stratum of the prior: a
value stays, or moves to a sibling or to another value that the stratum offers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent.arrays import Bools, Integers

if TYPE_CHECKING:
    from reticent.verify.veil.verifier import CumulativeLine


def transitions_of(kernel: Mapping[str, Any] | None, line: CumulativeLine) -> PossibleTransitions:
    """Return the possible transitions of a kernel of `veil.json`; without a kernel, every value stays.

    Raises:
        ValueError, KeyError, TypeError, OverflowError: the kernel is malformed or does not fit the line.
    """
    if kernel is None:
        return PossibleTransitions(len(line.domain))
    return _StayTransitions(kernel, line) if "stay" in kernel else _MatrixTransitions(kernel, len(line.domain))


class PossibleTransitions:
    """Possible transitions; in this base class, every value stays.

    Attributes:
        by_stratum: whether transitions depend on the stratum of the prior.
        all_stay: whether every value may stay in every stratum, so that an unchanged set needs no check.
    """

    by_stratum, all_stay = False, True

    def __init__(self, size: int) -> None:
        self._size = size

    def can_follow(self, strata: Integers | int, before: Integers, after: Integers) -> Bools:  # noqa: ARG002 - same signature as the subclasses
        """Return whether values can follow others in a stratum; the arrays broadcast."""
        return np.asarray(before == after)

    def core_arguments(self) -> dict[str, Any]:
        """Return arguments for the core's verifier: the targets of every value, or its flags in each stratum."""
        return {}

    def matrix(self, stratum: int, *, correcting: bool) -> Bools:
        """Return the from x to matrix of a stratum; with `correcting`, only values without another target may stay."""
        values = np.arange(self._size)
        steps = self.can_follow(stratum, values[:, None], values[None, :])
        if correcting:
            np.fill_diagonal(steps, steps.sum(axis=1) == steps.diagonal())
        return steps


class _MatrixTransitions(PossibleTransitions):
    def __init__(self, kernel: Mapping[str, Any], size: int) -> None:
        starts, targets, weights = ([int(x) for x in kernel[name]] for name in ("starts", "targets", "weights"))
        if len(starts) != size + 1 or len(weights) != len(targets) or min(weights, default=1) < 1:
            raise ValueError("the kernel does not fit the domain")
        super().__init__(size)
        followers = [set(targets[starts[v] : starts[v + 1]]) for v in range(size)]
        self._pairs = np.sort([v * size + to for v, after in enumerate(followers) for to in after])
        self.all_stay = all(v in after for v, after in enumerate(followers))

    def can_follow(self, strata: Integers | int, before: Integers, after: Integers) -> Bools:  # noqa: ARG002
        keys = before.astype(np.int64) * self._size + after
        at = np.minimum(np.searchsorted(self._pairs, keys), len(self._pairs) - 1)
        return np.asarray(self._pairs[at] == keys)

    def core_arguments(self) -> dict[str, Any]:
        starts = np.searchsorted(self._pairs, np.arange(self._size + 1) * self._size)
        return {"starts": starts.tolist(), "targets": (self._pairs % self._size).tolist()}


class _StayTransitions(PossibleTransitions):
    by_stratum = True

    def __init__(self, kernel: Mapping[str, Any], line: CumulativeLine) -> None:
        stay, parents = np.array(kernel["stay"], dtype=np.uint64), np.array(kernel["parents"], dtype=np.int64)
        if not len(stay) == len(parents) == len(line.domain) or parents.min(initial=0) < 0:
            raise ValueError("the kernel does not fit the domain")
        super().__init__(len(parents))
        self._parents, self._offered = parents, np.asarray(line.segments) > 0
        others = self._offered.sum(axis=1, keepdims=True) - self._offered
        siblings = np.stack([np.bincount(parents, row, parents.max() + 1)[parents] for row in self._offered])
        self._leaves = (stay < line.slot_length) & (others > 0)
        """Strata x values."""
        self._anywhere = (int(kernel["within"]) < line.slot_length) | (siblings - self._offered == 0)
        self._stays = (stay > 0) | ~self._leaves
        self.all_stay = bool(self._stays.all())

    def can_follow(self, strata: Integers | int, before: Integers, after: Integers) -> Bools:
        near = self._anywhere[strata, before] | (self._parents[before] == self._parents[after])
        moves = self._leaves[strata, before] & self._offered[strata, after] & near
        return np.asarray(np.where(before == after, self._stays[strata, before], moves))

    def core_arguments(self) -> dict[str, Any]:
        flags_sum = sum(
            flags.astype(np.uint8) << bit
            for bit, flags in enumerate((self._offered, self._stays, self._leaves, self._anywhere))
        )
        return {"flags": flags_sum, "parents": self._parents.tolist()}
