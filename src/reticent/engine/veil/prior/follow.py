"""The reader who knows how values follow one another: what she makes of a person's sets over several events.

She gives each slot the likelihood ratio of its trajectory under her kernel and the published one, which is all that
distinguishes the true slot from a decoy. She is even told which candidate became which: releases do not say so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reticent.engine.veil.prior.simulate import candidates, random_orders

if TYPE_CHECKING:
    import numpy.typing as npt

    from reticent.engine.veil.prior.kernel import Kernel, OwnKernel
    from reticent.engine.veil.prior.prior import Prior

    Vector = npt.NDArray[np.float64]
    Codes = npt.NDArray[np.integer]


@dataclass(frozen=True)
class Followed:
    """What a reader who follows persons makes of their last value.

    Attributes:
        events: how many events of each person she has seen.
        persons: whom.
        right: how often her best guess is right.
        error: standard error of that.
        published: how often one is right who knows the published kernel only.
    """

    events: int
    persons: int
    right: float
    error: float
    published: float


def follow(
    prior: Prior,
    kernel: Kernel,
    own: OwnKernel,
    rows: Codes,
    truths: Codes,
    *,
    l: int,
    rng: np.random.Generator,
) -> Followed:
    """Veils persons over their events as the engine would, and lets her guess the last value.

    Args:
        prior: the prior.
        kernel: the published kernel.
        own: the kernel that she knows.
        rows: of the prior, per person.
        truths: persons x events.
        l: candidates per person.
        rng: of the veil.
    """
    orders = random_orders(len(prior.labels), rng)
    slots = candidates(truths[:, 0], rows, prior.stretches(l), orders, rng)
    true = _true_slot(slots, truths[:, 0])
    weight = np.zeros(slots.shape)
    for event in range(1, truths.shape[1]):
        for row in np.unique(rows):
            at = np.flatnonzero(rows == row)
            matrix = kernel.matrix(prior.shares[row])
            after, true[at] = _moved(slots[at], true[at], truths[at, event], matrix, rng)
            weight[at] += _ratio(own.matrix(matrix), matrix, slots[at], after)
            slots[at] = after
    last = truths[:, -1]
    right, plain = (_guessed(slots, each, last, len(prior.labels)) for each in (weight, np.zeros(slots.shape)))
    share = float(right.mean())
    error = float(np.sqrt(share * (1 - share) / len(right)))
    return Followed(truths.shape[1], len(right), share, error, float(plain.mean()))


def _true_slot(slots: Codes, values: Codes) -> Codes:
    """The slot that holds the truth, -1 where none does; copies are as good as one another."""
    same = slots == values[:, None]
    return np.where(same.any(axis=1), same.argmax(axis=1), -1)


def _moved(slots: Codes, true: Codes, values: Codes, matrix: Vector, rng: np.random.Generator) -> tuple[Codes, Codes]:
    """The slots one event later, and which is the true one; a step that the kernel cannot take loses the person."""
    borders = matrix.cumsum(axis=1)
    borders[:, -1] = 1.0
    after = np.empty_like(slots)
    for slot in range(slots.shape[1]):
        draws = rng.random(len(slots))
        after[:, slot] = (draws[:, None] >= borders[slots[:, slot]]).sum(axis=1)
    at = np.flatnonzero(true >= 0)
    reached = matrix[slots[at, true[at]], values[at]] > 0
    true[at[~reached]] = -1
    stays = at[reached]
    after[stays, true[stays]] = values[stays]
    return after, true


def _ratio(own: Vector, matrix: Vector, before: Codes, after: Codes) -> Vector:
    return np.asarray(np.log(own[before, after]) - np.log(matrix[before, after]))


def _guessed(slots: Codes, weight: Vector, truths: Codes, size: int) -> Vector:
    """Probability that the value she thinks most likely is the truth; ties are shared."""
    power = np.exp(weight - weight.max(axis=1, keepdims=True))
    belief = np.zeros((len(slots), size))
    np.add.at(belief, (np.arange(len(slots))[:, None], slots), power)
    best = belief >= belief.max(axis=1, keepdims=True) * (1 - 1e-9)
    return np.asarray(best[np.arange(len(slots)), truths] / best.sum(axis=1))
