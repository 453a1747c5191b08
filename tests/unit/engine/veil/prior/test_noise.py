"""Noise: two-sided geometric, of the scale that epsilon asks for, from the generator it is given."""

import numpy as np
import pytest

from reticent.engine.veil.prior.noise import add_noise, noise_floor, noise_scale


def test_a_public_past_has_no_noise_and_is_not_changed():
    counts = np.array([3, 0, 7])
    again = add_noise(counts, None, np.random.default_rng(1))
    again[0] = 99
    assert counts.tolist() == [3, 0, 7]
    assert noise_floor(None) == 0


def test_the_distribution_is_two_sided_geometric():
    """P(x + 1) / P(x) = exp(-epsilon / 2) for x >= 0: two counts that differ by one record differ by no larger factor."""
    draws = add_noise(np.zeros(400_000, dtype=np.int64), 1.0, np.random.default_rng(2))
    counts = np.array([(draws == x).sum() for x in range(-6, 7)])
    assert counts[7:] / counts[6:-1] == pytest.approx(np.exp(-0.5), abs=0.03)
    assert counts[::-1] == pytest.approx(counts, rel=0.06)
    share = np.tanh(0.25)
    assert counts[6] / len(draws) == pytest.approx(share, abs=0.003)


def test_less_epsilon_is_more_noise():
    assert noise_scale(0.5) == 4
    assert noise_floor(0.5) == 16
    spread = [add_noise(np.zeros(20_000, dtype=np.int64), e, np.random.default_rng(3)).std() for e in (2, 1, 0.25)]
    assert spread == pytest.approx([np.sqrt(2), np.sqrt(8), np.sqrt(128)], rel=0.06)


def test_the_generator_decides():
    counts = np.arange(50)
    same = [add_noise(counts, 1.0, np.random.default_rng(4)) for _ in range(2)]
    assert (same[0] == same[1]).all()
    assert (same[0] != add_noise(counts, 1.0, np.random.default_rng(5))).any()
