"""The attacker's model of the value given the published fields, learned from persons whose values are known.

The model is a softmax over all nodes of all published fields, added to the prior of the release. The ridge penalty is
chosen on held-out persons. Where only candidates are known, the attacker learns from the candidates. The model shares no
code with the one that `reticent prior` uses for its own measurement.

Cost: equal records are processed once, in blocks small enough for the processor cache.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array

from reticent.arrays import Floats, Int64s
from reticent.audit.attack.person_nodes import PersonNodes

_RIDGES = (300.0, 60.0, 20.0, 7.0, 2.0)
_VALIDATION_SHARE = 5  # one in this many persons is used to choose the ridge penalty
_STEPS = 20
_TINY = 1e-300
_CELLS = 1 << 17
"""Cells (records x values) per block."""


@dataclass(frozen=True, repr=False)
class AttackerModel:
    """Weights of the nodes, added to the log prior.

    Attributes:
        loss: the loss on held-out records; the best of several models has the lowest.
    """

    weights: Floats
    loss: float = 0.0

    def belief(self, seen: PersonNodes, before: Floats) -> Floats:
        """Return the belief about each person: persons x values."""
        return softmax(np.log(before) + seen @ self.weights)


def fit_model(seen: PersonNodes, explains: Floats, before: Floats, rng: np.random.Generator) -> AttackerModel:
    """Fit the model with the lowest loss on held-out records.

    `explains` is the likelihood of the attacker's observation given each value: 1 for a known value, the likelihood of
    the candidate set otherwise. `before` is the prior of each record, all positive.
    """
    held_out = rng.permutation(len(before)) % _VALIDATION_SHARE == 0
    weights = np.zeros((seen.nodes.shape[1], before.shape[1]))
    validation = Likelihood.of(seen[held_out], explains[held_out], before[held_out])
    training = Likelihood.of(seen[~held_out], explains[~held_out], before[~held_out])
    best, score = weights, validation.loss(weights)
    for ridge in _RIDGES:
        weights = training.fit(weights, ridge)
        loss = validation.loss(weights)
        if loss >= score:  # a smaller penalty only overfits
            break
        best, score = weights, loss
    return AttackerModel(best, score)


@dataclass(frozen=True, repr=False)
class Likelihood:
    """The negative log likelihood of the observations; its gradient is the M-step of expectation maximization.

    Attributes:
        person_nodes: nodes of the distinct records.
        explains: records x values, the likelihood of the observation given each value.
        base: records x values, the log prior.
        times: how many records are equal to this one.
    """

    person_nodes: PersonNodes
    explains: Floats
    base: Floats
    times: Floats

    @classmethod
    def of(cls, seen: PersonNodes, explains: Floats, before: Floats) -> Likelihood:
        """Build the likelihood of these records."""
        first, times = _group_equal_records(seen.patterns, explains, before)
        return cls(seen[first], explains[first], np.log(before[first]), times.astype(np.float64))

    def loss(self, weights: Floats) -> float:
        """Return the mean loss over all records."""
        scores, homes = self.person_nodes.nodes @ weights, self.person_nodes.pattern_matrix()
        chances = [self._chance(softmax(homes[part] @ scores + self.base[part]), part) for part in self._parts()]
        return float(-(np.log(np.concatenate(chances)) @ self.times) / self.times.sum()) if len(self.times) else 0.0

    def fit(self, start: Floats, ridge: float) -> Floats:
        """Return the weights with the lowest loss plus ridge penalty."""
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
    """Turn logits into shares per row, in place."""
    logits -= logits.max(axis=1, keepdims=True)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=1, keepdims=True)
    return logits


def _group_equal_records(patterns: Int64s, explains: Floats, before: Floats) -> tuple[Int64s, Int64s]:
    """Return the first of each set of equal records, and the size of the set.

    Rows are compared by their products with random numbers; different rows collide with a chance of about 2^-50.
    """
    dice = np.random.default_rng(0).random((2, explains.shape[1]))
    rows = np.column_stack([patterns, (explains @ dice[0]).view(np.int64), (before @ dice[1]).view(np.int64)])
    _, first, times = np.unique(rows, axis=0, return_index=True, return_counts=True)
    return first, times
