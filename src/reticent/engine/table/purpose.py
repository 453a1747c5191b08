"""The purpose of a release: score outcomes by the error of counts, or by how well a classifier learns from them."""

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
"""Attributes with more values are cut into this many bins with equally many records."""
TEST_EVERY = 3
"""One record in this many is a test record."""
CLASSES = 10
"""Most values of the target that are predicted, the most frequent first."""
MIN_WEIGHT = 0.05
"""Least weight of an attribute that does not predict the target: recipients may still use it."""


class CountsPurpose:
    """Score outcomes by the error of count queries."""

    emphasis: tuple[float, ...] | None = None

    def __init__(self, encoded: EncodedTable, rng: Rng) -> None:
        self._encoded = encoded
        places = {name: order_values(encoded.columns.dictionaries[name].values.to_pylist()) for name in encoded.quasi}
        self._workload = Workload.random(places, encoded.weights, _generator(rng))

    def score(self, outcome: Outcome, _: Metrics) -> float:
        """Return the mean relative error; suppressed records match no query."""
        published = ~outcome.suppressed
        codes = {name: self._encoded.codes(name) for name in self._encoded.quasi}
        return self._workload.error(codes, lambda name, asked: outcome.attributes[name].match_share(asked) * published)


@dataclass(frozen=True, repr=False)
class Feature:
    """An attribute of the classifier: the bin of every code, and the number of bins."""

    name: str
    bins: Int64s
    count: int


class ModelPurpose:
    """Score outcomes by how badly a classifier that learns from them predicts the target of test records."""

    def __init__(self, encoded: EncodedTable, table: pa.Table, rng: Rng) -> None:
        self._encoded = encoded
        self._name, self._target_codes, self._classes = _target(encoded, table)
        self._features = [_feature(encoded, name) for name in encoded.quasi if name != self._name]
        usable = self._target_codes < self._classes
        self._test = usable & (_generator(rng).integers(0, TEST_EVERY, encoded.rows) == 0)
        self._learn = usable & ~self._test

    @property
    def emphasis(self) -> tuple[float, ...]:
        """Return weights by how well each quasi-identifier predicts the target; the target itself has the highest."""
        information = {feature.name: self._information(feature) for feature in self._features}
        most = max(information.values(), default=0.0) or 1.0
        factors = [
            1.0 if name == self._name else max(MIN_WEIGHT, information[name] / most) for name in self._encoded.quasi
        ]
        return tuple(factor * weight for factor, weight in zip(factors, self._encoded.weights, strict=True))

    def score(self, outcome: Outcome, _: Metrics) -> float:
        """Return one minus the area under the ROC curve."""
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
        """Return the mutual information of an attribute and the target, in nats."""
        bins = feature.bins[self._encoded.codes(feature.name)]
        usable = self._target_codes < self._classes
        pairs = np.bincount(
            bins[usable] * self._classes + self._target_codes[usable], minlength=feature.count * self._classes
        )
        joint = pairs.reshape(feature.count, self._classes) / max(1, pairs.sum())
        independent = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
        at = joint > 0
        return float((joint[at] * np.log(joint[at] / independent[at])).sum())


def _target(encoded: EncodedTable, table: pa.Table) -> tuple[str, Int64s, int]:
    """Return the column to predict, its codes by frequency, and the number of predicted values."""
    name = encoded.policy.table.target or next(iter(encoded.policy.sensitive), None)
    if name is None or name not in encoded.policy.released:
        raise PolicyError(
            "A release with purpose: model needs a published column to predict.",
            hint="Name it in table.target, or give a column the role sensitive.",
        )
    codes = Dictionary().encode(table.column(name)).astype(np.int64)
    places = np.argsort(-np.bincount(codes), kind="stable")
    return name, np.argsort(places)[codes], min(CLASSES, len(places))


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
