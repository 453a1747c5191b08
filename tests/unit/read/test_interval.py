"""Intervals: the ends solve what they are defined by."""

import numpy as np
import pytest

from reticent.read.estimate.interval import LinearVariance, normal_interval, quantile, score_interval


def test_quantile_is_that_of_the_normal_curve():
    assert quantile(0.95) == pytest.approx(1.959964, abs=1e-5)


def test_the_ends_of_a_score_interval_are_z_errors_away():
    spread, estimate = LinearVariance(np.array([40.0]), np.array([3.0])), np.array([30.0])
    low, high = score_interval(estimate, spread, np.array([500]), 2)
    for end, moved in ((low, 29.5), (high, 30.5)):
        assert (moved - end) ** 2 == pytest.approx(4 * (40 + 3 * end))
    assert low[0] < 30 < high[0]


def test_none_drawn_is_no_certainty():
    low, high = score_interval(np.array([0.0]), LinearVariance(np.array([0.0]), np.array([2.0])), np.array([50]), 2)
    assert low[0] == 0
    assert high[0] > 8


def test_intervals_stay_within_what_a_count_can_be():
    for low, high in (
        normal_interval(np.array([-3.0, 9.0]), np.array([1.0, 4.0]), np.array([10, 10]), 2),
        score_interval(np.array([-9.0, 9.0]), LinearVariance(np.ones(2), np.ones(2)), np.array([10, 10]), 2),
    ):
        assert (low >= 0).all()
        assert (high <= 10).all()
        assert (low <= high).all()


def test_a_spread_is_widened_to_what_was_seen_and_never_narrowed():
    spread = LinearVariance(np.array([10.0, 10.0]), np.array([2.0, 2.0])).at_least(
        np.array([40.0, 5.0]), np.array([5.0, 5.0])
    )
    assert spread.variance(np.array([5.0, 5.0])) == pytest.approx([40, 20])
    assert spread.slope == pytest.approx([4, 2])


def test_an_unlucky_estimate_below_nothing_leaves_room_above_it():
    low, high = score_interval(
        np.array([-90.0]), LinearVariance(np.array([400.0]), np.array([1.0])), np.array([500]), 2
    )
    assert low[0] == 0
    assert high[0] >= 10
