"""What a release is for: releases of one table scored by the error of counts, or by what a classifier learns from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from reticent.arrays import Bools, Floats, Int64s
from reticent.encode import Dictionary
from reticent.engine.rng import Rng
from reticent.engine.table.encoded_table import EncodedTable, order_values
from reticent.engine.table.generalized import Outcome
from reticent.errors import PolicyError
from reticent.utility.bayes import auc, log_odds
from reticent.utility.metrics import Metrics
from reticent.utility.workload import Workload

BINS = 20
"""Attributes of more values are learned by as many stretches of equally many records."""
TEST_EVERY = 3
"""One record in so many is not learned from but predicted."""
CLASSES = 10
"""Values of the target beyond the most frequent ones are not predicted."""
MIN_WEIGHT = 0.05
"""Least weight of an attribute that tells nothing of the target: it may still be read by people."""


class CountsPurpose:
    """Releases by the error of count queries."""

    emphasis: tuple[float, ...] | None = None

    def __init__(self, encoded: EncodedTable, rng: Rng) -> None:
        self._encoded = encoded
        places = {name: order_values(encoded.columns.dictionaries[name].values.to_pylist()) for name in encoded.quasi}
        self._workload = Workload.random(places, encoded.weights, _generator(rng))

    def score(self, outcome: Outcome, _: Metrics) -> float:
        """Mean relative error; suppressed records are counted nowhere."""
        published = ~outcome.suppressed
        truth = {name: self._encoded.codes(name) for name in self._encoded.quasi}
        return self._workload.error(truth, lambda name, asked: outcome.attributes[name].match_share(asked) * published)


@dataclass(frozen=True, repr=False)
class Feature:
    """An attribute as the classifier learns it: the bin of every code, and how many there are."""

    name: str
    bins: Int64s
    count: int


class ModelPurpose:
    """Releases by how badly a classifier that learns from them predicts the target of records it has not seen."""

    def __init__(self, encoded: EncodedTable, table: pa.Table, rng: Rng) -> None:
        self._encoded = encoded
        self._name, self._target_codes, self._classes = _target(encoded, table)
        self._features = [_feature(encoded, name) for name in encoded.quasi if name != self._name]
        usable = self._target_codes < self._classes
        self._test = usable & (_generator(rng).integers(0, TEST_EVERY, encoded.rows) == 0)
        self._learn = usable & ~self._test

    @property
    def emphasis(self) -> tuple[float, ...]:
        """How much each quasi-identifier tells of the target, as weights; the target itself weighs most."""
        told = {feature.name: self._information(feature) for feature in self._features}
        most = max(told.values(), default=0.0) or 1.0
        weights = [1.0 if name == self._name else max(MIN_WEIGHT, told[name] / most) for name in self._encoded.quasi]
        own = self._encoded.weights
        return tuple(weight * mine for weight, mine in zip(weights, own, strict=True))

    def score(self, outcome: Outcome, _: Metrics) -> float:
        """One minus the area under the curve."""
        learn = self._learn & ~outcome.suppressed
        if self._name in outcome.attributes:
            learn = learn & outcome.attributes[self._name].exact_rows()
        prior = np.bincount(self._target_codes[learn], minlength=self._classes) + 1.0
        odds = np.tile(np.log(prior / prior.sum()), (int(self._test.sum()), 1))
        if self._features:
            masses = [self._mass(feature, outcome, learn) for feature in self._features]
            codes = [feature.bins[self._encoded.codes(feature.name)[self._test]] for feature in self._features]
            odds += log_odds(masses, codes)
        return 1.0 - auc(odds, self._target_codes[self._test])

    def _mass(self, feature: Feature, outcome: Outcome, learn: Bools) -> Floats:
        attribute = outcome.attributes[feature.name]
        rows = [
            attribute.mass((learn & (self._target_codes == value)).astype(np.float64)) for value in range(self._classes)
        ]
        return np.stack([np.bincount(feature.bins, weights=row, minlength=feature.count) for row in rows])

    def _information(self, feature: Feature) -> float:
        """Mutual information of an attribute and the target, in nats."""
        bins = feature.bins[self._encoded.codes(feature.name)]
        usable = self._target_codes < self._classes
        pairs = np.bincount(
            bins[usable] * self._classes + self._target_codes[usable], minlength=feature.count * self._classes
        )
        joint = pairs.reshape(feature.count, self._classes) / max(1, pairs.sum())
        apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
        at = joint > 0
        return float((joint[at] * np.log(joint[at] / apart[at])).sum())


def _target(encoded: EncodedTable, table: pa.Table) -> tuple[str, Int64s, int]:
    """The column to predict, its values by frequency, and how many of them are predicted."""
    name = encoded.policy.table.target or next(iter(encoded.policy.sensitive), None)
    if name is None or name not in encoded.policy.released:
        raise PolicyError(
            "A release for a model needs a column to predict that is published.",
            hint="Name it in table.target, or give a column the role sensitive.",
        )
    goal = Dictionary().encode(table.column(name)).astype(np.int64)
    places = np.argsort(-np.bincount(goal), kind="stable")
    return name, np.argsort(places)[goal], min(CLASSES, len(places))


def _feature(encoded: EncodedTable, name: str) -> Feature:
    values = encoded.columns.dictionaries[name].values.to_pylist()
    if len(values) <= BINS:
        return Feature(name, np.arange(len(values)), len(values))
    places = order_values(values)
    counts = np.bincount(encoded.codes(name), minlength=len(values))[places]
    bins = np.empty(len(values), dtype=np.int64)
    bins[places] = (np.cumsum(counts) - 1) * BINS // max(1, counts.sum())
    return Feature(name, bins, BINS)


def _generator(rng: Rng) -> np.random.Generator:
    return np.random.default_rng(int.from_bytes(rng.key("purpose")[:8], "big"))
