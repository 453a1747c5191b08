"""Classifier scores: train on the release, test on the original.

Reference: Wu, He, Zaiane, utility supervision.
Differences: naive Bayes on the published labels, for speed; `reticent anonymize` supervises with SVMs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from reticent.arrays import Floats, Int64s
from reticent.errors import PolicyError
from reticent.report.reconstruction import Column, Reconstruction

ROWS = 5_000
CLASSES = 20  # the most frequent values; all others are one class


def classifier_scores(
    reconstruction: Reconstruction, rng: np.random.Generator, target: str | None = None
) -> dict[str, Any]:
    """Return accuracy and macro F1 on original records, trained on the original, on the release, and as a constant guess.

    The target is a published quasi-identifier, by default the sensitive value.
    """
    from sklearn.metrics import f1_score
    from sklearn.naive_bayes import CategoricalNB

    rows = np.sort(rng.permutation(len(reconstruction.sensitive))[: 2 * ROWS])
    rng.shuffle(rows)
    learn, test = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    released = np.sort(rng.permutation(len(reconstruction.group))[:ROWS])
    task = _task(reconstruction, released, rng, target)
    if len(learn) < 10 or len(released) < 10 or len(np.unique(task.true_classes)) < 2 or not task.columns:
        return {}
    true_classes = task.true_classes[test]
    out: dict[str, Any] = {"target": target or "the sensitive value"}
    sets = {
        "original": (_covering_labels(task.columns, learn), task.true_classes[learn]),
        "release": (np.stack([c.label[released] for c in task.columns], axis=1), task.drawn_classes),
    }
    width = [column.within.shape[0] for column in task.columns]
    for name, (features, wanted) in sets.items():
        guess = CategoricalNB(min_categories=width).fit(features, wanted).predict(_covering_labels(task.columns, test))
        out[f"{name}_accuracy"] = float((guess == true_classes).mean())
        out[f"{name}_f"] = float(f1_score(true_classes, guess, average="macro", zero_division=0))
    out["constant_accuracy"] = float(np.bincount(true_classes).max() / len(true_classes))
    return out


@dataclass(frozen=True, repr=False)
class _Task:
    """A prediction task: feature columns, the true class per original record, and a drawn class per published record."""

    columns: list[Column]
    true_classes: Int64s
    drawn_classes: Int64s


def _task(reconstruction: Reconstruction, released: Int64s, rng: np.random.Generator, target: str | None) -> _Task:
    if target is None:
        labels = _targets(reconstruction.sensitive, len(reconstruction.values))
        drawn = labels[_draw(reconstruction.value_probabilities(released), rng)]
        return _Task(list(reconstruction.columns.values()), labels[reconstruction.sensitive], drawn)
    if target not in reconstruction.columns:
        raise PolicyError(
            f"The classifier cannot predict '{target}': it is not a quasi-identifier of both release and original.",
            hint="Choose one of " + ", ".join(reconstruction.columns) + ", or omit the target for the sensitive value.",
        )
    column = reconstruction.columns[target]
    labels = _targets(column.source, column.within.shape[1])
    drawn = labels[_draw(column.within[column.label[released]].toarray(), rng)]
    return _Task([one for name, one in reconstruction.columns.items() if name != target], labels[column.source], drawn)


def _targets(values: Int64s, size: int) -> Int64s:
    """Return the class of every value: one per frequent value, one for all others."""
    often = np.bincount(values, minlength=size)
    rank = np.empty(len(often), dtype=np.int64)
    rank[np.argsort(-often, kind="stable")] = np.arange(len(often))
    return np.minimum(rank, CLASSES)


def _covering_labels(columns: list[Column], rows: Int64s) -> Int64s:
    """Return the published labels that cover the original records, the narrowest if there are several."""
    return np.stack([column.narrowest_label[column.source[rows]] for column in columns], axis=1)


def _draw(chances: Floats, rng: np.random.Generator) -> Int64s:
    running = chances.cumsum(axis=1)
    below = running < (rng.random(len(running)) * running[:, -1])[:, None]
    return np.asarray(np.minimum(below.sum(axis=1), chances.shape[1] - 1))
