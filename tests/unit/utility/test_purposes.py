"""Query workloads and the naive classifier against figures worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.utility.bayes import auc, log_odds
from reticent.utility.workload import Workload


def test_exact_cells_have_no_error_and_vague_ones_do():
    codes = {"a": np.array([0, 0, 1, 2], dtype=np.int32)}
    workload = Workload(({"a": np.array([1.0, 0.0, 0.0])},))
    assert workload.error(codes, lambda name, asked: asked[codes[name]]) == 0.0
    # Everything `*`: a third of four records is guessed where there are two.
    guess = workload.error(codes, lambda _, asked: np.full(4, asked.mean()))
    assert guess == pytest.approx((2 - 4 / 3) / 2)


def test_random_queries_ask_for_ranges_of_heavy_attributes():
    places = {"a": np.array([2, 0, 1, 3]), "b": np.arange(10), "c": np.arange(3)}
    workload = Workload.random(places, [1.0, 1.0, 0.0], np.random.default_rng(1))
    assert all(set(query) == {"a", "b"} for query in workload.queries)
    for query in workload.queries:
        at = np.flatnonzero(query["b"])
        assert len(at) == 3
        assert at[-1] - at[0] == 2


def test_the_area_under_the_curve_counts_pairs():
    odds = np.array([[0.0, 0.1], [0.0, 0.9], [0.0, 0.4], [0.0, 0.4]])
    target = np.array([0, 1, 0, 1])
    # Pairs of a 1 and a 0: above, above, above, equal.
    assert auc(odds, target) == pytest.approx(3.5 / 4)
    assert auc(odds, np.zeros(4, dtype=np.int64)) == 0.5


def test_bayes_learns_which_value_goes_with_which_class():
    masses = [np.array([[9.0, 1.0], [1.0, 9.0]])]
    odds = log_odds(masses, [np.array([0, 1])])
    assert odds[0, 0] - odds[0, 1] == pytest.approx(np.log(10 / 2))
    assert odds[1, 1] > odds[1, 0]
