"""Classifier score: learn the sensitive value from the release, and test on the original.

Reference: Wu, He, Zaiane, utility supervision: train on what is released, test on what is true.
Differences: a naive Bayes on the published labels, so that a report is quick; `reticent anonymize` supervises with SVMs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reticent.report.spread import Spread

ROWS = 5_000
CLASSES = 20  # the most frequent sensitive values; the rest counts as one


def classifier_scores(beside: Spread, rng: np.random.Generator) -> dict[str, float]:
    """Accuracy and macro F on original records, learnt from the original, from the release, and by always saying one."""
    from sklearn.metrics import f1_score
    from sklearn.naive_bayes import CategoricalNB

    rows = np.sort(rng.permutation(len(beside.sensitive))[: 2 * ROWS])
    rng.shuffle(rows)
    learn, test = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    released = np.sort(rng.permutation(len(beside.group))[:ROWS])
    labels = _targets(beside)
    if len(learn) < 10 or len(released) < 10 or len(np.unique(labels)) < 2:
        return {}
    width = [column.within.shape[0] for column in beside.columns.values()]
    truth = labels[beside.sensitive[test]]
    drawn = labels[_draw(beside.offered(released), rng)]
    out: dict[str, float] = {}
    sets = {
        "original": (_homes(beside, learn), labels[beside.sensitive[learn]]),
        "release": (np.stack([c.label[released] for c in beside.columns.values()], axis=1), drawn),
    }
    for name, (features, target) in sets.items():
        guess = CategoricalNB(min_categories=width).fit(features, target).predict(_homes(beside, test))
        out[f"{name}_accuracy"] = float((guess == truth).mean())
        out[f"{name}_f"] = float(f1_score(truth, guess, average="macro", zero_division=0))
    out["constant_accuracy"] = float(np.bincount(truth).max() / len(truth))
    return out


def _targets(beside: Spread) -> NDArray[np.int64]:
    often = np.bincount(beside.sensitive, minlength=len(beside.values))
    rank = np.empty(len(often), dtype=np.int64)
    rank[np.argsort(-often, kind="stable")] = np.arange(len(often))
    return np.minimum(rank, CLASSES)


def _homes(beside: Spread, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Original records as the published labels that cover them, the narrowest where several do."""
    columns = [column.home[column.source[rows]] for column in beside.columns.values()]
    return np.stack(columns, axis=1)


def _draw(chances: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    running = chances.cumsum(axis=1)
    below = running < (rng.random(len(running)) * running[:, -1])[:, None]
    return np.asarray(np.minimum(below.sum(axis=1), chances.shape[1] - 1))
