"""The kernel: stays, neighbours and the rest, learned from transitions."""

import numpy as np
import pytest

from reticent.engine.veil.prior.kernel import AttackerKernel, Kernel, fit_few, fit_kernel, misfit
from reticent.errors import DataError

PARENTS = np.array([0, 0, 0, 1, 1, 2], dtype=np.uint32)
SHARES = np.array([0.3, 0.2, 0.1, 0.2, 0.15, 0.05])
KERNEL = Kernel(np.array([0.9, 0.5, 0.2, 0.7, 0.4, 0.6]), 0.6, PARENTS)


def walk(matrix, n, seed):
    rng = np.random.default_rng(seed)
    before = rng.choice(len(SHARES), p=SHARES, size=n)
    return before, (rng.random(n)[:, None] > matrix.cumsum(axis=1)[before]).sum(axis=1)


def test_a_step_is_a_distribution():
    matrix = KERNEL.matrix(SHARES)
    assert matrix.sum(axis=1) == pytest.approx(np.ones(6))
    assert np.diag(matrix) == pytest.approx(KERNEL.stay)
    # From 0: a tenth changes; six tenths of that to 1 and 2, two to one, the rest anywhere.
    assert matrix[0, 1] == pytest.approx(0.1 * (0.6 * 2 / 3 + 0.4 * 0.2 / 0.7))
    # 5 has no sibling: all changes go anywhere.
    assert matrix[5, 0] == pytest.approx(0.4 * 0.3 / 0.95)


def test_values_that_a_stratum_omits_are_not_reached():
    shares = np.array([0.5, 0, 0.5, 0, 0, 0])
    matrix = KERNEL.matrix(shares)
    assert (matrix[[0, 2]][:, [1, 3, 4, 5]] == 0).all()
    alone = KERNEL.matrix(np.eye(6)[3])
    assert alone[3, 3] == 1


def test_it_is_learned_from_transitions():
    before, after = walk(KERNEL.matrix(SHARES), 60_000, 1)
    found = fit_kernel(before, after, PARENTS, SHARES, epsilon=None, rng=np.random.default_rng(0))
    assert found.stay == pytest.approx(KERNEL.stay, abs=0.03)
    # What ends under the parent by chance is not counted as near.
    assert found.within == pytest.approx(KERNEL.within, abs=0.015)


def test_noise_needs_epsilon_and_blurs():
    before, after = walk(KERNEL.matrix(SHARES), 2_000, 2)
    plain, noisy = (
        fit_kernel(before, after, PARENTS, SHARES, epsilon=e, rng=np.random.default_rng(3)) for e in (None, 0.1)
    )
    assert np.abs(plain.stay - noisy.stay).max() > 0.01


def test_no_transitions_no_kernel():
    with pytest.raises(DataError, match="two records"):
        fit_kernel(np.array([], int), np.array([], int), PARENTS, SHARES, epsilon=None, rng=np.random.default_rng(0))


def test_misfit_is_what_a_better_kernel_gains():
    true = KERNEL.matrix(SHARES)
    odd = true.copy()
    odd[0] = [0.5, 0, 0, 0, 0, 0.5]
    for matrix, low, high in ((true, -0.01, 0.02), (odd, 0.1, 2.0)):
        parts = [walk(matrix, 20_000, seed) for seed in (4, 5)]
        held_out = (np.zeros(20_000, int), *parts[1])
        measured = misfit(KERNEL, SHARES[None, :], AttackerKernel(parts[0], 6), held_out)
        assert low < measured.gain < high
        assert measured.events + round(measured.unreached * 20_000) == 20_000
    assert measured.ratio[2] > 2


def test_the_kernel_of_few_persons_has_their_mean_stay_and_their_share_within():
    one = Kernel(np.full(6, 0.7), 0.6, PARENTS)
    before, after = walk(one.matrix(SHARES), 60_000, 4)
    found = fit_few(before, after, PARENTS, SHARES, epsilon=1.0, rng=np.random.default_rng(0))
    assert found.stay == pytest.approx(one.stay, abs=0.01)
    assert found.within == pytest.approx(one.within, abs=0.03)
