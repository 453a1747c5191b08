"""Support vector machine that predicts one column from others: the utility measure of supervision.

Numbers are standardized (a generalized number is the mean of the values it covers); other values become one indicator
per published value. All classes have equal weight, however rare they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reticent.arrays import Floats, Int64s
from reticent.engine.table.levels import Levels

MAX_PRODUCT_ROWS = 4000
"""Most rows whose pairwise products are computed at once, in 128 MB."""
MAX_INDICATORS = 64
"""Most values of an attribute with an indicator, the most frequent first; limits the cost of wide attributes."""


@dataclass(frozen=True)
class Scores:
    """The five scores of the paper; for more than two classes, means over the classes."""

    sensitivity: float
    specificity: float
    accuracy: float
    precision: float
    f_measure: float


@dataclass(frozen=True)
class CrossValidation:
    """A support vector machine under cross-validation."""

    folds: int = 3
    kernel: str = "rbf"
    seed: int = 0

    def scores(self, features: Floats, target: Int64s, positive: int | None = None) -> Scores:
        """Score the predictions for each fold by a machine trained on the other folds.

        Classes too rare for the folds (after suppression) are not learned: their rows get the most frequent class.
        """
        from sklearn.model_selection import StratifiedKFold

        if not len(target):  # suppression may leave nothing
            return Scores(0.0, 0.0, 0.0, 0.0, 0.0)
        counts = np.bincount(target)
        predicted = np.full(len(target), int(counts.argmax()))
        often = np.flatnonzero(counts[target] >= self.folds)
        if features.shape[1] and np.count_nonzero(counts >= self.folds) > 1:
            splits = StratifiedKFold(self.folds, shuffle=True, random_state=self.seed)
            products = features @ features.T if len(features) <= MAX_PRODUCT_ROWS else None
            for train, test in ((often[a], often[b]) for a, b in splits.split(features[often], target[often])):
                predicted[test] = self._predict(features, products, target[train], train, test)
        return score_predictions(target, predicted, positive)

    def _predict(
        self, features: Floats, products: Floats | None, target: Int64s, train: Int64s, test: Int64s
    ) -> Int64s:
        """Predict the test rows by a machine trained on the train rows; `products` of all rows are optional."""
        from sklearn.svm import SVC

        machine = SVC(
            kernel=self.kernel if products is None else "precomputed", class_weight="balanced", cache_size=100
        )
        known, asked = features[train], features[test]
        if products is not None:
            # Many machines need the same products: they are computed once.
            known, asked = (self._kernel(features, products, rows, train) for rows in (train, test))
        prediction: Int64s = machine.fit(known, target).predict(asked)
        return prediction

    def _kernel(self, features: Floats, products: Floats, rows: Int64s, train: Int64s) -> Floats:
        """Return the kernel between some rows and the train rows, as the machine itself would compute it."""
        between = products[np.ix_(rows, train)]
        if self.kernel == "linear":
            return between
        squares = products.diagonal()
        between *= -2
        between += squares[rows][:, None]
        between += squares[train]
        spread = float(features[train].var())
        between *= -1 / (features.shape[1] * spread) if spread else -1
        return np.exp(between, out=between)


def score_predictions(target: Int64s, predicted: Int64s, positive: int | None = None) -> Scores:
    """Compute the scores for the positive class, or as means over all classes."""
    rows = []
    for value in np.unique(target).tolist() if positive is None else [positive]:
        hit, guess = target == value, predicted == value
        true = float((hit & guess).sum())
        recall = true / max(1, hit.sum())
        precision = true / max(1, guess.sum())
        rejected = float((~hit & ~guess).sum()) / max(1, (~hit).sum())
        f = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        rows.append((recall, rejected, precision, f))
    recall, rejected, precision, f = (float(value) for value in np.mean(rows, axis=0))
    return Scores(recall, rejected, float((target == predicted).mean()), precision, f)


def positive_class(target: Int64s) -> int | None:
    """Return the rarer of two classes as the positive class; None if there are not exactly two."""
    counts = np.bincount(target)
    present = np.flatnonzero(counts)
    return int(present[np.argmin(counts[present])]) if len(present) == 2 else None


def features(attributes: Sequence[Levels], rows: Int64s) -> Floats:
    """Return the feature matrix of some rows of published attributes, without constant columns."""
    blocks = [block for attribute in attributes for block in [_block(attribute, rows)] if block.shape[1]]
    return np.hstack(blocks) if blocks else np.zeros((len(rows), 0))


def _block(attribute: Levels, rows: Int64s) -> Floats:
    codes = attribute.codes[rows]
    level = np.broadcast_to(np.asarray(attribute.level), len(attribute.codes))[rows]
    numbers = _numbers(attribute)
    starts = np.cumsum([0, *(len(names) for names in attribute.hierarchy.labels)])
    nodes = np.zeros(len(rows), dtype=np.int64)
    values = np.zeros(len(rows))
    for step, table in enumerate(attribute.hierarchy.node_ids):
        at = level == step
        block = table[codes[at]]
        nodes[at] = starts[step] + block
        if numbers is not None:
            sums = np.bincount(table, weights=numbers)
            values[at] = (sums / np.maximum(1, np.bincount(table)))[block]
    if numbers is not None:
        spread = values.std()
        return ((values - values.mean()) / spread)[:, None] if spread > 0 else np.zeros((len(rows), 0))
    present, counts = np.unique(nodes, return_counts=True)
    if len(present) < 2:
        return np.zeros((len(rows), 0))
    common = present[np.argsort(-counts, kind="stable")[:MAX_INDICATORS]]
    return np.asarray(nodes[:, None] == common[None, :], dtype=np.float64)


def _numbers(attribute: Levels) -> Floats | None:
    """Return the number of each leaf; None if a leaf is not a number."""
    if attribute.hierarchy.numeric is not None:
        return np.nan_to_num(attribute.hierarchy.numeric)
    try:
        return np.array([float(value) for value in attribute.hierarchy.labels[0].to_pylist()])
    except (TypeError, ValueError):
        return None
