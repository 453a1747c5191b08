"""Fit the transition kernel: how the values of one person follow one another, in few numbers.

A value stays with its own probability. After a change the next value lies below the same parent node with one probability for all
values, in proportion to the prior's shares there; otherwise it follows the prior's shares of all values.

Guarantee (to each person of the past, against an attacker who sees the kernel): with one transition per person and noise of scale
2 / epsilon on each of the two tables that share epsilon, the kernel is epsilon-differentially private. For few persons, noise
leaves room for one table of three counts only: all values have one stay probability (`fit_few`).

Not covered: what so few numbers cannot describe; `misfit` measures that on persons who were not counted.

Cost: one pass over the transitions; K x K per stratum of the prior.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reticent.arrays import Floats, Integers, UInt32s
from reticent.engine.veil.prior.noise import add_noise
from reticent.errors import DataError

# Pseudo-transitions: the mean stay in the stay of one value, and the published kernel in an attacker's own.
_SHRINKAGE = 20.0
# Share of epsilon for the share within the parent: two counts of all persons need little.
_WITHIN_SHARE = 0.1


@dataclass(frozen=True, repr=False)
class Kernel:
    """The transition from one event of a person to the next.

    Attributes:
        stay: per value, the probability to stay.
        within: share of the changes that stay below the parent node.
        parents: per value, the number of its parent node.
    """

    stay: Floats
    within: float
    parents: UInt32s

    def matrix(self, shares: Floats) -> Floats:
        """Return the transition matrix in one stratum; a change never reaches a value that the stratum does not offer."""
        anywhere = np.tile(shares, (len(shares), 1))
        np.fill_diagonal(anywhere, 0)
        near = anywhere * (self.parents[:, None] == self.parents)
        moves = _normalize_rows(anywhere)
        alone = near.sum(axis=1) == 0
        moves = np.where(alone[:, None], moves, self.within * _normalize_rows(near) + (1 - self.within) * moves)
        # A value without any target stays.
        stay = np.where(moves.sum(axis=1) > 0, self.stay, 1.0)
        return np.asarray(np.diag(stay) + (1 - stay)[:, None] * moves)


def _normalize_rows(matrix: Floats) -> Floats:
    total = matrix.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(matrix, total, out=np.zeros_like(matrix), where=total > 0))


def fit_kernel(
    before: Integers,
    after: Integers,
    parents: UInt32s,
    shares: Floats,
    *,
    epsilon: float | None,
    rng: np.random.Generator,
) -> Kernel:
    """Fit the kernel to past transitions (codes, one per person), given parent nodes and overall shares.

    `epsilon` is None where the past is public.
    """
    if not len(before) and epsilon is None:  # with noise, that there are none is not disclosed
        raise DataError("The past has no person with two records.", hint="Remove the kernel from the policy.")
    shares_of_epsilon = (_WITHIN_SHARE, 1 - _WITHIN_SHARE)
    within_epsilon, stay_epsilon = (None if epsilon is None else epsilon * share for share in shares_of_epsilon)
    stayed = (before == after).astype(np.int64)
    flat = np.bincount(before * 2 + stayed, minlength=2 * len(parents)).reshape(-1, 2)
    table = np.maximum(add_noise(flat, stay_epsilon, rng), 0)
    siblings = np.bincount(parents)[parents] > 1
    moved = (before != after) & siblings[before]
    near_counts = np.bincount((parents[before] == parents[after])[moved], minlength=2)
    sides = np.maximum(add_noise(near_counts, within_epsilon, rng), 0)
    overall = (table[:, 1].sum() + 1) / (table.sum() + 2)
    stay = (table[:, 1] + _SHRINKAGE * overall) / (table.sum(axis=1) + _SHRINKAGE)
    near = float((sides[1] + 1) / (sides.sum() + 2))
    return Kernel(stay, _excess(near, _sibling_chance(table[:, 0] * siblings, parents, shares)), parents)


def fit_few(
    before: Integers, after: Integers, parents: UInt32s, shares: Floats, *, epsilon: float, rng: np.random.Generator
) -> Kernel:
    """Fit the kernel of few persons as `fit_kernel` does, but with one stay for all values: noise would drown each one."""
    near = parents[before] == parents[after]
    kinds = np.where(before == after, 0, np.where(near, 1, 2))
    stayed, within, elsewhere = np.maximum(add_noise(np.bincount(kinds, minlength=3), epsilon, rng), 0) + 1
    siblings = np.bincount(parents)[parents] > 1
    moved = max((within + elsewhere) * float(shares @ siblings), within)  # only values with siblings move to one
    stay = np.full(len(parents), stayed / (stayed + within + elsewhere))
    return Kernel(stay, _excess(within / moved, _sibling_chance(shares * siblings, parents, shares)), parents)


def _sibling_chance(moves: Floats, parents: UInt32s, shares: Floats) -> float:
    """Return the share of changes that would end below the same parent if they followed the shares alone."""
    family = np.bincount(parents, shares)[parents] - shares
    near = np.divide(family, 1 - shares, out=np.zeros_like(shares), where=shares < 1)
    return float((moves * near).sum() / max(moves.sum(), np.finfo(float).tiny))


def _excess(near: float, chance: float) -> float:
    """Return the share within the parent that chance does not explain."""
    return min(max((near - chance) / max(1 - chance, np.finfo(float).tiny), 0.0), 1.0)


@dataclass(frozen=True)
class Misfit:
    """What an attacker with a better kernel gains per event, on persons who were not counted.

    Attributes:
        events: number of transitions measured.
        gain: mean log ratio of the attacker's probability of the true value to the kernel's; adds up over events.
        ratio: 50th, 90th and 99th percentile of that ratio.
        unreached: share of transitions that the kernel excludes; the later values of these persons are omitted.
    """

    events: int
    gain: float
    ratio: tuple[float, float, float]
    unreached: float


class AttackerKernel:
    """The kernel of an attacker: a full table of counted transitions, shrunk toward the published kernel."""

    def __init__(self, transitions: tuple[Integers, Integers], size: int) -> None:
        flat = np.bincount(transitions[0].astype(np.int64) * size + transitions[1], minlength=size * size)
        self._table = flat.reshape(size, size).astype(np.float64)

    def matrix(self, published: Floats) -> Floats:
        """Return the attacker's transition matrix in a stratum, given the published one."""
        total = self._table.sum(axis=1, keepdims=True)
        return np.asarray((self._table + _SHRINKAGE * published) / (total + _SHRINKAGE))


def misfit(
    kernel: Kernel, shares: Floats, attacker_kernel: AttackerKernel, test: tuple[Integers, Integers, Integers]
) -> Misfit:
    """Compare the kernel with an attacker's full table of transitions, on held-out (stratum, before, after)."""
    strata, before, after = test
    parts = []
    for stratum in np.unique(strata):
        matrix = kernel.matrix(shares[stratum])
        at = before[strata == stratum], after[strata == stratum]
        parts.append(np.stack([attacker_kernel.matrix(matrix)[at], matrix[at]]))
    attacker_probabilities, published_probabilities = np.concatenate(parts, axis=1) if parts else np.zeros((2, 0))
    reached = published_probabilities > 0
    if not reached.any():
        raise DataError("No transition is left to measure the kernel.", hint="Provide more persons with two records.")
    ratio = attacker_probabilities[reached] / published_probabilities[reached]
    low, high, top = np.quantile(ratio, (0.5, 0.9, 0.99))
    gain, unreached = float(np.log(ratio).mean()), float(1 - reached.mean())
    return Misfit(len(ratio), gain, (float(low), float(high), float(top)), unreached)
