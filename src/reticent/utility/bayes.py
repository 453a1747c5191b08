"""Naive Bayes classifier that learns from a release and predicts original records, and its area under the ROC curve.

A generalized cell counts equally for every value that it covers. So the classifier learns values, not labels, and can
be tested on original records.

Cost: O(records) per attribute and class.
Reference: T. Hastie, R. Tibshirani, J. Friedman, "The Elements of Statistical Learning", 2009, section 6.6.3;
    T. Fawcett, "An introduction to ROC analysis", Pattern Recognition Letters 27, 2006.
Differences from the paper: none.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reticent.arrays import Bools, Floats, Int64s


def log_odds(masses: Sequence[Floats], codes: Sequence[Int64s]) -> Floats:
    """Return per record and class the log-likelihood of its values; `masses` has per attribute (classes, values)."""
    odds = np.zeros((len(codes[0]) if codes else 0, len(masses[0]) if masses else 0))
    for mass, code in zip(masses, codes, strict=True):
        smooth = mass + 1.0
        odds += np.log(smooth / smooth.sum(axis=1, keepdims=True))[:, code].T
    return odds


def auc(odds: Floats, target: Int64s) -> float:
    """Return the area under the ROC curve of each class against all others, averaged over the classes that occur.

    >>> auc(np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 3.0], [0.0, 4.0]]), np.array([0, 0, 1, 1]))
    1.0
    """
    shifted = odds - odds.max(axis=1, keepdims=True)
    shares = np.exp(shifted) / np.exp(shifted).sum(axis=1, keepdims=True)
    areas = [_area(shares[:, at], target == at) for at in range(odds.shape[1]) if 0 < (target == at).mean() < 1]
    return float(np.mean(areas)) if areas else 0.5


def _area(score: Floats, hit: Bools) -> float:
    """Return the probability that a hit scores above a miss; equal scores count half."""
    values, place = np.unique(score, return_inverse=True)
    counts = np.bincount(place, minlength=len(values))
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
    hits = int(hit.sum())
    return float((ranks[hit].sum() - hits * (hits + 1) / 2) / (hits * (len(hit) - hits)))
