"""The kernel: how the values of one person follow one another, in few numbers.

A value stays with its own probability; given a change, the next value lies under the same node of the hierarchy with one
probability for all, by the prior's shares there; the rest goes by the prior's shares anywhere.

Guarantee (to each person of the past): with one transition per person and noise of scale 2 / epsilon on each of the two
tables that share epsilon, the kernel is epsilon-differentially private. Of few persons one table of three counts is all
that noise leaves: everybody stays with one probability (`fit_few`).

Not covered: what the few numbers leave out; `misfit` measures it on persons who were not counted.

Cost: one pass over the transitions; K x K per row of the prior.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reticent.arrays import Floats, Integers, UInt32s
from reticent.engine.veil.prior.noise import add_noise
from reticent.errors import DataError

# Transitions that the stay of all values counts for in the stay of one; and T in a reader's own kernel.
_SHRINKAGE = 20.0
# Of epsilon, for the share within the parent: two counts of all persons need little.
_WITHIN_SHARE = 0.1


@dataclass(frozen=True, repr=False)
class Kernel:
    """The step from one event of a person to the next.

    Attributes:
        stay: per value, probability to stay.
        within: share of the changes that stay under the parent node.
        parents: per value, number of its parent node.
    """

    stay: Floats
    within: float
    parents: UInt32s

    def matrix(self, shares: Floats) -> Floats:
        """T under one row of the prior: from x to. A value that the row does not offer is never reached by a change."""
        anywhere = np.tile(shares, (len(shares), 1))
        np.fill_diagonal(anywhere, 0)
        near = anywhere * (self.parents[:, None] == self.parents)
        moves = _normalize_rows(anywhere)
        alone = near.sum(axis=1) == 0
        moves = np.where(alone[:, None], moves, self.within * _normalize_rows(near) + (1 - self.within) * moves)
        # Where there is nowhere to go, staying is all that is left.
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
    """The kernel of past transitions, one per person, by codes: of their parent nodes, and of their shares over everybody.

    `epsilon` is None where the past is public.
    """
    if not len(before) and epsilon is None:  # with noise nobody learns that there are none
        raise DataError("The past has no person with two records.", hint="Leave the kernel out.")
    few, many = (None if epsilon is None else epsilon * share for share in (_WITHIN_SHARE, 1 - _WITHIN_SHARE))
    stayed = (before == after).astype(np.int64)
    flat = np.bincount(before * 2 + stayed, minlength=2 * len(parents)).reshape(-1, 2)
    table = np.maximum(add_noise(flat, many, rng), 0)
    siblings = np.bincount(parents)[parents] > 1
    moved = (before != after) & siblings[before]
    sides = np.maximum(add_noise(np.bincount((parents[before] == parents[after])[moved], minlength=2), few, rng), 0)
    overall = (table[:, 1].sum() + 1) / (table.sum() + 2)
    stay = (table[:, 1] + _SHRINKAGE * overall) / (table.sum(axis=1) + _SHRINKAGE)
    near = float((sides[1] + 1) / (sides.sum() + 2))
    return Kernel(stay, _excess(near, _sibling_chance(table[:, 0] * siblings, parents, shares)), parents)


def fit_few(
    before: Integers,
    after: Integers,
    parents: UInt32s,
    shares: Floats,
    *,
    epsilon: float,
    rng: np.random.Generator,
) -> Kernel:
    """The kernel of few persons, as `fit_kernel`: one stay for all values, since noise would drown the stay of each."""
    near = parents[before] == parents[after]
    kinds = np.where(before == after, 0, np.where(near, 1, 2))
    stayed, within, elsewhere = np.maximum(add_noise(np.bincount(kinds, minlength=3), epsilon, rng), 0) + 1
    siblings = np.bincount(parents)[parents] > 1
    moved = max((within + elsewhere) * float(shares @ siblings), within)  # who has no sibling cannot move to one
    stay = np.full(len(parents), stayed / (stayed + within + elsewhere))
    return Kernel(stay, _excess(within / moved, _sibling_chance(shares * siblings, parents, shares)), parents)


def _sibling_chance(moves: Floats, parents: UInt32s, shares: Floats) -> float:
    """Share of the changes that end under the same parent though they go by the shares alone."""
    family = np.bincount(parents, shares)[parents] - shares
    near = np.divide(family, 1 - shares, out=np.zeros_like(shares), where=shares < 1)
    return float((moves * near).sum() / max(moves.sum(), np.finfo(float).tiny))


def _excess(near: float, chance: float) -> float:
    """The share within the parent that chance does not explain."""
    return min(max((near - chance) / max(1 - chance, np.finfo(float).tiny), 0.0), 1.0)


@dataclass(frozen=True)
class Misfit:
    """What a reader with a kernel of her own gains per event, on persons who were not counted.

    Attributes:
        events: transitions it was measured on.
        gain: mean of the logarithm of her probability of the truth over the kernel's; multiply by the events of a person.
        ratio: 50th, 90th and 99th percentile of that ratio.
        unreached: share of the transitions that the kernel cannot take: these persons are not offered any more.
    """

    events: int
    gain: float
    ratio: tuple[float, float, float]
    unreached: float


class AttackerKernel:
    """The kernel of a reader: the full table of transitions that she has counted, drawn toward the published one."""

    def __init__(self, transitions: tuple[Integers, Integers], size: int) -> None:
        flat = np.bincount(transitions[0].astype(np.int64) * size + transitions[1], minlength=size * size)
        self._table = flat.reshape(size, size).astype(np.float64)

    def matrix(self, published: Floats) -> Floats:
        """Her T under one row of the prior, whose published T is given."""
        total = self._table.sum(axis=1, keepdims=True)
        return np.asarray((self._table + _SHRINKAGE * published) / (total + _SHRINKAGE))


def misfit(
    kernel: Kernel, shares: Floats, attacker_kernel: AttackerKernel, test: tuple[Integers, Integers, Integers]
) -> Misfit:
    """Compares the kernel with the full table of transitions that a reader could have counted, on others: row of the prior, before and after."""
    rows, before, after = test
    parts = []
    for row in np.unique(rows):
        matrix = kernel.matrix(shares[row])
        at = before[rows == row], after[rows == row]
        parts.append(np.stack([attacker_kernel.matrix(matrix)[at], matrix[at]]))
    hers, ours = np.concatenate(parts, axis=1) if parts else np.zeros((2, 0))
    reached = ours > 0
    if not reached.any():
        raise DataError("No transition was left to measure the kernel on.", hint="Give more persons with two records.")
    ratio = hers[reached] / ours[reached]
    low, high, top = np.quantile(ratio, (0.5, 0.9, 0.99))
    gain, lost = float(np.log(ratio).mean()), float(1 - reached.mean())
    return Misfit(len(ratio), gain, (float(low), float(high), float(top)), lost)
