"""The estimator on what the real mechanism publishes: first events of many persons, and a step along the kernel."""

import numpy as np
import pytest

from reticent._core import veil as core
from reticent.engine.veil.prior.kernel import Kernel
from reticent.read.estimate.veil import Records, Veil, counts

SIZE, L, PERSONS, TIMES = 16, 4, 150, 400
PARENTS = (np.arange(SIZE) // 4).astype(np.int32)


def make_veil(kernel=None):
    rng = np.random.default_rng(1)
    shares = np.minimum(rng.dirichlet(np.ones(SIZE), size=2), 0.2)
    shares /= shares.sum(axis=1, keepdims=True)
    shares[1, :2] = 0
    shares[1] /= shares[1].sum()
    segments = core.segments_of_counts((shares * 2**53).astype(np.uint64), l=L)
    permutations = core.random_permutations(SIZE, count=64, seed=bytes(32))
    labels = tuple(f"v{code:02}" for code in range(SIZE))
    no_omission = np.zeros(2)
    return core.Veil(key=bytes(range(32)), l=L, segments=segments, permutations=permutations, kernel=kernel), Veil(
        labels, segments, permutations, no_omission, no_omission
    )


def people(rng):
    """Persons whose values follow nobody's prior; stratum 1 has no value that it omits."""
    n = PERSONS * TIMES
    strata = rng.integers(2, size=n).astype(np.uint32)
    values = rng.integers(2, SIZE, size=n).astype(np.int32)
    return np.arange(n, dtype=np.uint64), strata, values, np.repeat(np.arange(TIMES), PERSONS)


@pytest.mark.parametrize("asked", [[3], [2, 7, 11]])
def test_first_events_are_counted_without_bias(asked):
    mechanism, veil = make_veil()
    persons, strata, values, groups = people(np.random.default_rng(2))
    target = np.isin(np.arange(SIZE), asked).astype(float)
    answer = counts(
        veil, Records(strata.astype(int), mechanism.candidates(persons, strata, values), groups), target, groups=TIMES
    )
    true = np.bincount(groups, target[values], minlength=TIMES)
    assert abs(((answer.estimate - true) / np.sqrt(answer.variance)).mean()) < 4 / np.sqrt(TIMES)
    assert 0.93 <= ((answer.low <= true) & (true <= answer.high)).mean() <= 0.98


def test_later_events_are_counted_with_the_kernel_that_was_fitted():
    stay, within = np.full(SIZE, 0.6), 0.5
    whole = core.SLOT_LENGTH
    steps = core.Kernel.from_stays(
        np.full(SIZE, int(0.6 * whole), dtype=np.uint64), within=int(within * whole), parents=PARENTS.astype(np.uint32)
    )
    mechanism, veil = make_veil(steps)
    rng = np.random.default_rng(3)
    persons, strata, values, groups = people(rng)
    first = mechanism.begin(persons, strata, values)
    later = np.where(rng.random(len(values)) < 0.7, values, rng.integers(2, SIZE, size=len(values))).astype(np.int32)
    second = mechanism.step(persons, first.memories, later, kind="visit")
    kernel = Kernel(stay, within, PARENTS)
    matrices = [kernel.matrix(shares) for shares in veil.shares]
    records = Records(
        strata.astype(int), second.candidates, groups, events=second.events.astype(int), first=first.candidates
    )
    target = np.isin(np.arange(SIZE), [3, 9]).astype(float)
    answer = counts(veil, records, target, groups=TIMES, step=lambda stratum, goal: matrices[stratum] @ goal)
    true = np.bincount(groups, target[later], minlength=TIMES)
    assert abs(((answer.estimate - true) / np.sqrt(answer.variance)).mean()) < 4 / np.sqrt(TIMES)
    assert 0.93 <= ((answer.low <= true) & (true <= answer.high)).mean() <= 0.98
