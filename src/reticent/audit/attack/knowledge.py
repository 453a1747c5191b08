"""Knowledge: a reader's own model of the value given published fields, learnt from persons whose values she knows.

A softmax over all nodes of all published fields, on top of what the release says itself. Its ridge is chosen on persons set
aside. Where she knows candidates only, she learns from those. It shares no code with the one that `reticent prior` measures itself with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from scipy.optimize import minimize
from scipy.sparse import csr_array, hstack

from reticent.audit.groups import codes
from reticent.errors import DataError
from reticent.policy.hierarchy import ladder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from reticent.policy import Policy

    Vector = NDArray[np.float64]
    Codes = NDArray[np.int64]

NODES = 300  # fields with more nodes on a level are read on coarser ones: nobody learns a postcode by heart
_RIDGES = (300.0, 60.0, 20.0, 7.0, 2.0)
_STEPS = 20
_ASIDE = 5  # one in so many persons chooses the ridge
_BINS = 20
_TINY = 1e-300


def marks(table: pa.Table, names: Sequence[str], policy: Policy, *, raw: bool) -> csr_array:
    """Persons x nodes: a one for every node, on every level, that a person lies in.

    Args:
        table: the persons, as text.
        names: the published columns.
        policy: hierarchies and published levels.
        raw: whether the reader knows the fields finer than they are published.
    """
    blocks = [csr_array(np.ones((table.num_rows, 1)))]
    for name in names:
        code, values = codes(table[name])
        for nodes in _levels(values, policy, name, 0 if raw else policy.columns[name].level):
            width = int(nodes.max(initial=-1)) + 1
            if 1 < width <= NODES:
                at = nodes[code]
                blocks.append(csr_array((np.ones(len(at)), (np.arange(len(at)), at)), (len(at), width)))
    return csr_array(hstack(blocks, format="csr"))


def _levels(values: tuple[str | None, ...], policy: Policy, name: str, level: int) -> list[Codes]:
    """Per level the node of every value."""
    spec = policy.columns[name].hierarchy if name in policy.columns else None
    levels = [np.arange(len(values))]
    if spec is not None:
        try:
            rungs = ladder(spec, pa.array(values, pa.string()), column=name, base=policy.base)
            levels = [np.unique(nodes, return_inverse=True)[1].reshape(-1) for nodes in rungs.tables]
        except DataError:  # a stranger to the hierarchy: the values themselves must do
            return levels
    elif len(values) > NODES:
        levels.append(_binned(values))
    return levels[level:]


def _binned(values: tuple[str | None, ...]) -> Codes:
    """Many numbers without a hierarchy: twentieths of them."""
    try:
        numbers = np.array([float(value) if value is not None else -np.inf for value in values])
    except ValueError:
        return np.zeros(len(values), dtype=np.int64)
    rank = np.argsort(np.argsort(numbers, kind="stable"), kind="stable")
    return np.asarray(rank * _BINS // max(len(rank), 1))


@dataclass(frozen=True, repr=False)
class Knowledge:
    """Weights of the marks, on top of the logarithms of what was known before.

    Attributes:
        loss: on records set aside; of several models the one with the least is the best.
    """

    weights: Vector
    loss: float = 0.0

    def belief(self, seen: csr_array, before: Vector) -> Vector:
        """Persons x values."""
        return softmax(np.log(before) + seen @ self.weights)


def learn(seen: csr_array, explains: Vector, before: Vector, rng: np.random.Generator) -> Knowledge:
    """The model that does best on records set aside.

    Args:
        seen: marks of the records.
        explains: records x values, how well each value explains what she sees of the record: a one for a value that is known,
            the likelihood of a set of candidates where only those are.
        before: what the release says of each record without her model, all positive.
        rng: sets records aside.
    """
    aside = rng.permutation(len(before)) % _ASIDE == 0
    weights = np.zeros((seen.shape[1], before.shape[1]))
    judge = _Likelihood(seen[aside], explains[aside], np.log(before[aside]))
    teach = _Likelihood(seen[~aside], explains[~aside], np.log(before[~aside]))
    best, score = weights, judge.loss(weights)
    for ridge in _RIDGES:
        weights = teach.fit(weights, ridge)
        loss = judge.loss(weights)
        if loss >= score:  # what is learnt from here on is the accidents of the sample
            break
        best, score = weights, loss
    return Knowledge(best, score)


def certain(values: Codes, width: int) -> Vector:
    """What explains a value that is known: itself."""
    explains = np.zeros((len(values), width))
    explains[np.arange(len(values)), values] = 1
    return explains


@dataclass(frozen=True, repr=False)
class _Likelihood:
    """Minus the logarithm of how likely it was to see what is seen; its slope is the M-step of expectation and maximisation."""

    seen: csr_array
    explains: Vector
    base: Vector

    def loss(self, weights: Vector) -> float:
        chance = (softmax(self.base + self.seen @ weights) * self.explains).sum(axis=1)
        return float(-np.log(np.maximum(chance, _TINY)).mean()) if len(chance) else 0.0

    def fit(self, start: Vector, ridge: float) -> Vector:
        """The weights of least loss, large ones being dear."""
        turned = csr_array(self.seen.T)

        def penalised(flat: Vector) -> tuple[float, Vector]:
            belief = softmax(self.base + self.seen @ flat.reshape(start.shape))
            joint = belief * self.explains
            chance = np.maximum(joint.sum(axis=1), _TINY)
            slope = turned @ (belief - joint / chance[:, None])
            return float(ridge / 2 * (flat @ flat) - np.log(chance).sum()), np.asarray(slope).ravel() + ridge * flat

        best = minimize(penalised, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": _STEPS})
        return np.asarray(best.x.reshape(start.shape))


def softmax(logits: Vector) -> Vector:
    """Shares from logarithms, a row at a time."""
    power = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(power / power.sum(axis=1, keepdims=True))
