"""The utility tree on the paper's own example, and the path that follows from it."""

from __future__ import annotations

import numpy as np

from reticent.engine.table.classifier import CrossValidation, positive_class, score_predictions
from reticent.engine.table.supervision import NOT_EVALUATED, utility_tree


def paper_example(names):
    """Section 4.2: removing C is best, then D, B, E; F is highest at ABDEF, then at AEF, then at F."""
    spine = {"ABCDEF": 0.80, "ABDEF": 0.85, "ABEF": 0.78, "AEF": 0.82, "AF": 0.70, "F": 0.75, "": 0.0}
    return spine.get("".join(names), 0.5 - 0.01 * len(names))


def test_the_papers_example_gives_its_batches():
    tree = utility_tree("ABCDEF", paper_example)
    assert tree.removal[:4] == ("C", "D", "B", "E")
    assert tree.batches() == [("C",), ("B", "D"), ("A", "E"), ("F",)]
    assert tree.evaluated == 1 + 6 + 5 + 4 + 3 + 2 + 1


def test_every_attribute_is_in_exactly_one_batch():
    rng = np.random.default_rng(4)
    for _ in range(20):
        scores = {}
        tree = utility_tree("ABCDE", lambda names, s=scores: s.setdefault(names, float(rng.random())))
        assert sorted("".join("".join(batch) for batch in tree.batches())) == list("ABCDE")


def test_a_tree_that_runs_out_of_time_goes_on_in_the_order_of_what_it_knows():
    asked = []

    def score(names):
        asked.append(names)
        return paper_example(names)

    # All, then one without each, then two more: the second step is not finished.
    tree = utility_tree("ABCDEF", score, is_late=lambda: len(asked) >= 9)
    assert tree.evaluated == len(asked) == 9
    assert tree.scores[:2] == (0.80, 0.85)
    assert set(tree.scores[2:]) == {NOT_EVALUATED}
    assert tree.removal[0] == "C"
    assert sorted("".join("".join(batch) for batch in tree.batches())) == list("ABCDEF")
    assert all(len(batch) == 1 for batch in tree.batches())


def test_scores_are_the_papers_figures():
    target, said = np.array([1, 1, 1, 0, 0, 0, 0, 0]), np.array([1, 1, 0, 1, 0, 0, 0, 0])
    found = score_predictions(target, said, positive_class(target))
    assert (found.sensitivity, found.specificity, found.accuracy) == (2 / 3, 4 / 5, 6 / 8)
    assert (found.precision, found.f_measure) == (2 / 3, 2 / 3)


def test_more_than_two_classes_are_averaged():
    target = np.array([0, 0, 1, 1, 2, 2])
    found = score_predictions(target, target, positive_class(target))
    assert positive_class(target) is None
    assert (found.sensitivity, found.specificity, found.f_measure) == (1, 1, 1)


def test_classes_that_suppression_leaves_too_rare_are_not_learned():
    features = np.arange(14, dtype=np.float64)[:, None]
    target = np.array([0] * 6 + [1] * 6 + [2, 3])
    assert 0 < CrossValidation(folds=3).scores(features, target).f_measure < 1
    lonely = np.array([0] * 12 + [1, 1])  # one class is left that fills the folds
    assert CrossValidation(folds=3).scores(features, lonely).accuracy == 12 / 14
