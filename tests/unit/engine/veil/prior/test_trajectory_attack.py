"""The attacker who follows persons along a kernel."""

from itertools import permutations

import numpy as np
import pytest

from reticent.engine.veil.prior import trajectory_attack as module
from reticent.engine.veil.prior.kernel import AttackerKernel, Kernel
from reticent.engine.veil.prior.prior import Prior
from reticent.engine.veil.prior.trajectory_attack import attack_trajectories, minor_permanents

PARENTS = np.repeat(np.arange(4, dtype=np.uint32), 5)
SHARES = np.full((1, 20), 0.05)
PRIOR = Prior(tuple(f"v{code:02}" for code in range(20)), ({},), SHARES, np.array([1000.0]))
KERNEL = Kernel(np.full(20, 0.5), 0.5, PARENTS)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_minor_permanents_equal_their_definition(size):
    matrices = np.random.default_rng(1).random((3, size, size))
    for row in range(size):
        for column in range(size):
            rest = np.delete(np.delete(matrices, row, axis=1), column, axis=2)
            ways = [np.prod(rest[:, range(size - 1), way], axis=1) for way in map(list, permutations(range(size - 1)))]
            assert minor_permanents(matrices)[:, row, column] == pytest.approx(np.sum(ways, axis=0))


def walk(matrix, n, seed, events):
    rng = np.random.default_rng(seed)
    paths = np.empty((n, events), dtype=np.int64)
    paths[:, 0] = rng.integers(20, size=n)
    for event in range(1, events):
        paths[:, event] = (rng.random((n, 1)) >= matrix.cumsum(axis=1)[paths[:, event - 1]]).sum(axis=1).clip(0, 19)
    return paths


def attack(matrix, own, seed=1, events=4, n=1500):
    true_values = walk(matrix, n, seed, events)
    rng = np.random.default_rng(9)
    return attack_trajectories(PRIOR, KERNEL, own, np.zeros(n, dtype=np.int64), true_values, l=4, rng=rng)


def test_an_attacker_with_the_published_kernel_gains_nothing():
    matrix = KERNEL.matrix(SHARES[0])
    nothing = AttackerKernel((np.zeros(0, int), np.zeros(0, int)), 20)
    found = attack(matrix, nothing)
    assert found.right == pytest.approx(found.published)
    assert found.events == 4
    assert 0.25 - 3 * found.error < found.right < 0.25 * 1.4


def test_an_attacker_with_a_better_kernel_gains_and_the_bound_for_many_candidates_is_higher(monkeypatch):
    """The true value circles within its chapter; the published kernel does not say so."""
    ring = np.zeros((20, 20))
    ring[np.arange(20), np.arange(20) // 5 * 5 + (np.arange(20) + 1) % 5] = 1.0
    steps = walk(ring, 4000, 3, 2)
    own = AttackerKernel((steps[:, 0], steps[:, 1]), 20)
    found = attack(ring, own)
    assert found.right > 0.8
    monkeypatch.setattr(module, "MAX_EXACT", 0)
    bound = attack(ring, own)
    assert bound.right >= found.right - 2 * found.error


def test_a_person_whom_the_kernel_does_not_permit_is_lost():
    still = Kernel(np.ones(20), 0.0, PARENTS)
    moved = np.stack([np.arange(20), (np.arange(20) + 7) % 20], axis=1).repeat(50, axis=0)
    own = AttackerKernel((np.zeros(0, int), np.zeros(0, int)), 20)
    found = attack_trajectories(
        PRIOR, still, own, np.zeros(1000, dtype=np.int64), moved, l=4, rng=np.random.default_rng(2)
    )
    assert found.right < 0.3
