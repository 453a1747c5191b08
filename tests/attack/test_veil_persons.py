"""Persons over several visits: what a reader who knows the true kernel makes of published sets, and what is quoted of it."""

import numpy as np
import pytest
from bench import kernels_of_persons as attack


@pytest.fixture(scope="module")
def figures():
    return attack.figures(None, quick=True)


def test_a_reader_with_the_true_kernel_stays_below_one_and_a_half(figures):
    later = [figures["times_one_in_l"][events] for events in (2, 3, 4, 5)]
    assert np.mean(later) < 1.5
    assert figures["eta"] < 0.02


def test_fresh_veils_for_each_value_do_not_hold(figures):
    assert figures["fresh_veils"][2] > 2.1


def test_the_quoted_figure_is_what_the_attack_finds(figures):
    for events, (right, error) in figures["quoted"].items():
        both = np.hypot(error, figures["standard_error"])
        assert abs(right - figures["times_one_in_l"][events]) < 3 * both, events
