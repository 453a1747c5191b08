"""Several records of a person: the products of their values are estimated without bias, and intervals hold without being wide."""

import numpy as np
from tests.unit.read.test_veil import permutations_of, veil_of, world

from reticent.read.estimate.persons import Products, pairs
from reticent.read.estimate.veil import Records, Veil, counts, scores

SIZE, L = 8, 3


def kernel():
    rng = np.random.default_rng(5)
    moves = rng.dirichlet(np.full(SIZE, 0.5), size=SIZE)
    return 0.7 * np.eye(SIZE) + 0.3 * moves


def trajectories(rng, first, true_values, sets, matrix):
    """Candidate sets of all events of each person: the true slot follows the person, the others follow the kernel."""
    n = len(first)
    slot = (sets == first[:, None]).argmax(axis=1)
    out, now = [sets], sets
    for event in range(1, true_values.shape[1]):
        u = rng.random(now.shape)
        now = np.minimum((matrix.cumsum(axis=1)[now] < u[..., None]).sum(axis=2), SIZE - 1)
        now[np.arange(n), slot] = true_values[:, event]
        out.append(now.copy())
    return out


def many(simulate, segments_of, path, n=60_000, seed=3):
    rng, shares = world(4, SIZE, L)
    segments, permutations = segments_of(shares[0], L)[None], permutations_of(SIZE, 24)
    true_values = np.tile(np.array(path), (n, 1))
    sets = simulate(rng, true_values[:, 0], np.zeros(n, dtype=int), segments, permutations)
    return veil_of(segments, permutations), trajectories(
        np.random.default_rng(seed), true_values[:, 0], true_values, sets, kernel()
    )


def test_a_product_has_the_mean_of_both_values_whatever_persons_do(simulate, segments_of):
    target, matrix = np.isin(np.arange(SIZE), [1, 2]).astype(float), kernel()
    for path in ([1, 2, 2], [1, 5, 1], [4, 1, 2], [4, 1, 6], [3, 3, 3]):  # none of them as the kernel would have it
        veil, sets = many(simulate, segments_of, path)
        strata = np.zeros(len(sets[0]), dtype=int)
        products = Products(veil.channel, veil.segments.shape, target, lambda _, goal: matrix @ goal)
        for r, s in ((0, 1), (0, 2), (1, 2)):
            events = np.full(len(strata), r)
            records = Records(strata, sets[r], events=events if r else None, first=sets[0])
            score = scores(veil, records, target, step=lambda _, goal: matrix @ goal).value
            found = products.of(strata, (score, sets[r], sets[0]), sets[s], (events, np.full(len(strata), s)))
            error = found.std() / len(found) ** 0.5
            assert abs(found.mean() - target[path[r]] * target[path[s]]) < 4.5 * error, (path, r, s)


def test_pairs_are_of_one_person_and_in_order():
    left, right = pairs(np.array([7, 7, 3, 7, 3]), np.array([2, 0, 0, 1, 5]))
    assert set(zip(left.tolist(), right.tolist(), strict=True)) == {(1, 3), (3, 0), (1, 0), (2, 4)}


def test_intervals_over_chronic_persons_cover_and_have_the_right_width(simulate, segments_of):
    """Half of the persons have the value at all of four events, the others never."""
    matrix, target = kernel(), np.eye(SIZE)[1]
    rng, times, persons = np.random.default_rng(1), 150, 300
    veil: Veil | None = None
    off, width, covered = [], [], []
    for seed in range(times):
        here = rng.random(persons) < 0.5
        path = np.repeat(np.where(here, 1, 4)[:, None], 4, axis=1)
        _, shares = world(4, SIZE, L)
        segments, permutations = segments_of(shares[0], L)[None], permutations_of(SIZE, 24)
        veil = veil or veil_of(segments, permutations)
        sets = simulate(rng, path[:, 0], np.zeros(persons, dtype=int), segments, permutations)
        events = trajectories(np.random.default_rng(seed), path[:, 0], path, sets, matrix)
        records = Records(
            np.zeros(4 * persons, dtype=int),
            np.concatenate(events),
            persons=np.tile(np.arange(persons), 4),
            events=np.repeat(np.arange(4), persons),
            first=np.tile(sets, (4, 1)),
        )
        answer = counts(veil, records, target, step=lambda _, goal: matrix @ goal)
        off.append(answer.estimate[0] - 4 * here.sum())
        width.append((answer.high - answer.low)[0] / (2 * 1.96))
        covered.append(answer.low[0] <= 4 * here.sum() <= answer.high[0])
    assert np.mean(covered) >= 0.9
    assert np.mean(width) < 1.25 * np.std(off)
