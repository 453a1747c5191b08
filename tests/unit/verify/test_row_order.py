"""Rows in the order of the input disclose who is who."""

import numpy as np
import pytest

from reticent.verify.row_order import check_shuffle


def test_a_random_order_discloses_nothing():
    for size in (0, 1, 2, 30, 1000):
        for seed in range(50):
            assert check_shuffle(np.random.default_rng(seed).permutation(size)).holds


@pytest.mark.parametrize("size", [40, 1000])
def test_the_order_of_the_input_is_refuted(size):
    assert not check_shuffle(np.arange(size)).holds
    assert not check_shuffle(np.arange(size)[::-1]).holds


def test_blocks_of_the_input_are_refuted():
    blocks = np.random.default_rng(1).permutation(100)
    assert not check_shuffle((blocks[:, None] * 10 + np.arange(10)).reshape(-1)).holds
