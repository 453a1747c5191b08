"""The kernel: how the values of one person follow one another, in few numbers.

A value stays with its own probability; given a change, the next value lies under the same node of the hierarchy with one
probability for all, by the prior's shares there; the rest goes by the prior's shares anywhere.

Guarantee (to each person of the past): with one transition per person and noise of scale 2 / epsilon on the two tables
that share epsilon evenly, the kernel is epsilon-differentially private.

Not covered: what the few numbers leave out; `misfit` measures it on persons who were not counted.

Cost: one pass over the transitions; K x K per row of the prior.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reticent.engine.veil.prior.noise import noised
from reticent.errors import DataError

if TYPE_CHECKING:
    import numpy.typing as npt

    Vector = npt.NDArray[np.float64]
    Codes = npt.NDArray[np.integer]

# Transitions that the stay of all values counts for in the stay of one; and T in a reader's own kernel.
_PULL = 20.0


@dataclass(frozen=True, repr=False)
class Kernel:
    """The step from one event of a person to the next.

    Attributes:
        stay: per value, probability to stay.
        within: share of the changes that stay under the parent node.
        parents: per value, number of its parent node.
    """

    stay: Vector
    within: float
    parents: npt.NDArray[np.int32]

    def __repr__(self) -> str:
        return f"Kernel({len(self.stay)} values, within {self.within:.2f})"

    def matrix(self, shares: Vector) -> Vector:
        """T under one row of the prior: from x to. A value that the row does not offer is never reached by a change."""
        anywhere = np.tile(shares, (len(shares), 1))
        np.fill_diagonal(anywhere, 0)
        near = anywhere * (self.parents[:, None] == self.parents)
        moves = _scaled(anywhere)
        alone = near.sum(axis=1) == 0
        moves = np.where(alone[:, None], moves, self.within * _scaled(near) + (1 - self.within) * moves)
        # Where there is nowhere to go, staying is all that is left.
        stay = np.where(moves.sum(axis=1) > 0, self.stay, 1.0)
        return np.asarray(np.diag(stay) + (1 - stay)[:, None] * moves)

    def correction(self, shares: Vector) -> Vector:
        """T given that the value changes: corrections never stay."""
        matrix = self.matrix(shares)
        np.fill_diagonal(matrix, 0)
        return _scaled(matrix)


def _scaled(matrix: Vector) -> Vector:
    total = matrix.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(matrix, total, out=np.zeros_like(matrix), where=total > 0))


def fit_kernel(
    before: Codes,
    after: Codes,
    parents: npt.NDArray[np.int32],
    *,
    epsilon: float | None,
    rng: np.random.Generator,
) -> Kernel:
    """The kernel of past transitions, one per person.

    Args:
        before: codes of the values.
        after: codes of the next values of the same persons.
        parents: per code, the number of its parent node.
        epsilon: of the noise; None where the past is public.
        rng: of the noise.
    """
    if not len(before):
        raise DataError("The past has no person with two records.", hint="Leave the kernel out.")
    half = None if epsilon is None else epsilon / 2
    stayed = (before == after).astype(np.int64)
    flat = np.bincount(before * 2 + stayed, minlength=2 * len(parents)).reshape(-1, 2)
    table = np.maximum(noised(flat, half, rng), 0)
    moved = before != after
    near = parents[before] == parents[after]
    sides = np.maximum(noised(np.bincount(near[moved], minlength=2), half, rng), 0)
    overall = (table[:, 1].sum() + 1) / (table.sum() + 2)
    stay = (table[:, 1] + _PULL * overall) / (table.sum(axis=1) + _PULL)
    return Kernel(stay, float((sides[1] + 1) / (sides.sum() + 2)), parents)


@dataclass(frozen=True)
class Misfit:
    """What a reader with a kernel of her own gains per event, on persons who were not counted.

    Attributes:
        events: transitions it was measured on.
        gain: mean of the logarithm of her probability of the truth over the kernel's; multiply by the events of a person.
        ratio: 50th, 90th and 99th percentile of that ratio.
    """

    events: int
    gain: float
    ratio: tuple[float, float, float]


def misfit(kernel: Kernel, shares: Vector, learn: tuple[Codes, Codes], judge: tuple[Codes, Codes]) -> Misfit:
    """Compares the kernel with the full table of transitions that a reader could have counted.

    Args:
        kernel: the published one.
        shares: one row of the prior.
        learn: before and after of the persons she has counted.
        judge: before and after of others.
    """
    size = len(shares)
    matrix = kernel.matrix(shares)
    table = np.bincount(learn[0] * size + learn[1], minlength=size * size).reshape(size, size)
    own = (table + _PULL * matrix) / (table.sum(axis=1, keepdims=True) + _PULL)
    reached = matrix[judge] > 0
    ratio = own[judge][reached] / matrix[judge][reached]
    if not len(ratio):
        raise DataError("No transition was left to measure the kernel on.", hint="Give more persons with two records.")
    low, high, top = np.quantile(ratio, (0.5, 0.9, 0.99))
    return Misfit(len(ratio), float(np.log(ratio).mean()), (float(low), float(high), float(top)))
