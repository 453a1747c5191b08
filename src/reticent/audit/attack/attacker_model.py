"""Knowledge: a reader's own model of the value given published fields, learnt from persons whose values she knows.

A softmax over all nodes of all published fields, on top of what the release says itself. Its ridge is chosen on persons set
aside. Where she knows candidates only, she learns from those. It shares no code with the one that `reticent prior` measures itself with.

Cost: records that read alike are looked at once, and a few at a time, so that records x values stay near the processor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array

from reticent.arrays import Floats, Int64s
from reticent.audit.attack.person_nodes import PersonNodes

_RIDGES = (300.0, 60.0, 20.0, 7.0, 2.0)
_VALIDATION_SHARE = 5  # one in so many persons chooses the ridge
_STEPS = 20
_TINY = 1e-300
_CELLS = 1 << 17
"""Records x values at a time."""


@dataclass(frozen=True, repr=False)
class AttackerModel:
    """Weights of the marks, on top of the logarithms of what was known before.

    Attributes:
        loss: on records set aside; of several models the one with the least is the best.
    """

    weights: Floats
    loss: float = 0.0

    def belief(self, seen: PersonNodes, before: Floats) -> Floats:
        """Persons x values."""
        return softmax(np.log(before) + seen @ self.weights)


def fit_model(seen: PersonNodes, explains: Floats, before: Floats, rng: np.random.Generator) -> AttackerModel:
    """The model that does best on records set aside.

    `explains` says how well each value explains what she sees of a record: a one for a value that is known, the likelihood of a set of
    candidates where only those are. `before` is what the release says of each record without her model, all positive.
    """
    aside = rng.permutation(len(before)) % _VALIDATION_SHARE == 0
    weights = np.zeros((seen.nodes.shape[1], before.shape[1]))
    judge = Likelihood.of(seen[aside], explains[aside], before[aside])
    teach = Likelihood.of(seen[~aside], explains[~aside], before[~aside])
    best, score = weights, judge.loss(weights)
    for ridge in _RIDGES:
        weights = teach.fit(weights, ridge)
        loss = judge.loss(weights)
        if loss >= score:  # what is learnt from here on is the accidents of the sample
            break
        best, score = weights, loss
    return AttackerModel(best, score)


@dataclass(frozen=True, repr=False)
class Likelihood:
    """Minus the logarithm of how likely it was to see what is seen; its slope is the M-step of expectation and maximisation.

    Attributes:
        seen: marks of the records.
        explains: records x values, how well each value explains what is seen.
        base: records x values, logarithms of what was known before.
        times: how many records read so.
    """

    person_nodes: PersonNodes
    explains: Floats
    base: Floats
    times: Floats

    @classmethod
    def of(cls, seen: PersonNodes, explains: Floats, before: Floats) -> Likelihood:
        """That of some records."""
        first, times = _group_equal_records(seen.patterns, explains, before)
        return cls(seen[first], explains[first], np.log(before[first]), times.astype(np.float64))

    def loss(self, weights: Floats) -> float:
        """The mean over all records."""
        scores, homes = self.person_nodes.nodes @ weights, self.person_nodes.pattern_matrix()
        chances = [self._chance(softmax(homes[part] @ scores + self.base[part]), part) for part in self._parts()]
        return float(-(np.log(np.concatenate(chances)) @ self.times) / self.times.sum()) if len(self.times) else 0.0

    def fit(self, start: Floats, ridge: float) -> Floats:
        """The weights of least loss, large ones being dear."""
        nodes, homes = self.person_nodes.nodes, self.person_nodes.pattern_matrix()
        parts = [(part, homes[part]) for part in self._parts()]
        turned, turned_nodes, rest = csr_array(homes.T), csr_array(nodes.T), np.empty_like(self.base)

        def penalized_loss(flat: Floats) -> tuple[float, Floats]:
            scores, total = nodes @ flat.reshape(start.shape), 0.0
            for part, home in parts:
                belief = softmax(home @ scores + self.base[part])
                joint = belief * self.explains[part]
                chance = np.maximum(joint.sum(axis=1), _TINY)
                total -= float(np.log(chance) @ self.times[part])
                joint /= chance[:, None]
                np.subtract(belief, joint, out=rest[part])
                rest[part] *= self.times[part, None]
            slope = turned_nodes @ (turned @ rest)
            return ridge / 2 * float(flat @ flat) + total, slope.ravel() + ridge * flat

        best = minimize(penalized_loss, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": _STEPS})
        return np.asarray(best.x.reshape(start.shape))

    def _chance(self, belief: Floats, part: slice) -> Floats:
        return np.asarray(np.maximum((belief * self.explains[part]).sum(axis=1), _TINY))

    def _parts(self) -> list[slice]:
        step = max(1, _CELLS // max(1, self.base.shape[1]))
        return [slice(first, first + step) for first in range(0, len(self.base), step)]


def softmax(logits: Floats) -> Floats:
    """Shares from logarithms, a row at a time, in their place."""
    logits -= logits.max(axis=1, keepdims=True)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=1, keepdims=True)
    return logits


def _group_equal_records(patterns: Int64s, explains: Floats, before: Floats) -> tuple[Int64s, Int64s]:
    """The first of all records that are the same in everything, and how many are.

    Rows are told apart by their products with random numbers: rows that differ have different ones, but for an accident of 2^-50.
    """
    dice = np.random.default_rng(0).random((2, explains.shape[1]))
    rows = np.column_stack([patterns, (explains @ dice[0]).view(np.int64), (before @ dice[1]).view(np.int64)])
    _, first, times = np.unique(rows, axis=0, return_index=True, return_counts=True)
    return first, times
