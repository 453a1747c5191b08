"""Knowledge: a reader's own model of the value given published fields, learnt from persons whose values she knows.

A softmax over all nodes of all published fields, on top of what the release says itself. Its ridge is chosen on persons set
aside. Where she knows candidates only, she learns from those. It shares no code with the one that `reticent prior` measures itself with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from reticent.audit.attack.likelihood import Likelihood, softmax

if TYPE_CHECKING:
    from reticent.audit.arrays import Vector
    from reticent.audit.attack.marks import Marks


_RIDGES = (300.0, 60.0, 20.0, 7.0, 2.0)
_ASIDE = 5  # one in so many persons chooses the ridge


@dataclass(frozen=True, repr=False)
class Knowledge:
    """Weights of the marks, on top of the logarithms of what was known before.

    Attributes:
        loss: on records set aside; of several models the one with the least is the best.
    """

    weights: Vector
    loss: float = 0.0

    def belief(self, seen: Marks, before: Vector) -> Vector:
        """Persons x values."""
        return softmax(np.log(before) + seen @ self.weights)


def learn(seen: Marks, explains: Vector, before: Vector, rng: np.random.Generator) -> Knowledge:
    """The model that does best on records set aside.

    `explains` says how well each value explains what she sees of a record: a one for a value that is known, the likelihood of a set of
    candidates where only those are. `before` is what the release says of each record without her model, all positive.
    """
    aside = rng.permutation(len(before)) % _ASIDE == 0
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
    return Knowledge(best, score)
