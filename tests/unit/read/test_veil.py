"""HT2: unbiased for every value by exact enumeration; intervals cover under the prior, under another reality, and for few."""

import dataclasses

import numpy as np
import pytest

from reticent.errors import DataError, PolicyError
from reticent.read.estimate.calibration import NoisyCounts
from reticent.read.estimate.channel import SLOT_LENGTH, build_channel
from reticent.read.estimate.veil import Records, Veil, cells, counts, scores

SHARES = {
    "even": [0.2, 0.2, 0.2, 0.2, 0.2],
    "skewed": [0.35, 0.3, 0.15, 0.12, 0.08],
    "frequent": [0.7, 0.1, 0.09, 0.06, 0.05],
    "unseen": [0.4, 0.0, 0.3, 0.2, 0.1],
}


def orders_of(size, number, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([rng.permutation(size) for _ in range(number)])


def veil_of(stretches, orders, eta=0.0, eta_variance=0.0):
    rows, size = stretches.shape
    labels = tuple(f"v{code:03}" for code in range(size))
    return Veil(labels, stretches, orders, np.full(rows, eta), np.full(rows, eta_variance))


def enumerate_sets(stretches, orders, truth, grid):
    """Every set and its probability given the truth, by walking U in steps of one grid cell; no code under test."""
    lengths = stretches.astype(np.int64) // (SLOT_LENGTH // grid)
    l = int(lengths.sum() // grid)
    for order in orders:
        line = np.repeat(order, lengths[order])
        for start in range(grid):
            members = line[start + np.arange(l) * grid]
            copies = (members == truth).sum() if lengths[truth] else 1
            whole = lengths[truth] or grid
            yield members, copies / whole / len(orders)


def exact_mean(stretches, orders, truth, coefficients, grid):
    return sum(
        weight * coefficients[members].sum() for members, weight in enumerate_sets(stretches, orders, truth, grid)
    )


@pytest.mark.parametrize("name", SHARES)
@pytest.mark.parametrize("l", [2, 3])
@pytest.mark.parametrize("asked", [[0], [3], [0, 2], [1, 4]])
def test_the_mean_given_every_truth_is_the_indicator(name, l, asked):
    grid = 100
    stretches = (np.round(np.array(SHARES[name]) * l * grid).astype(np.int64) * (SLOT_LENGTH // grid)).astype(np.int64)
    stretches[0] += l * SLOT_LENGTH - stretches.sum()  # ONE is no multiple of the grid: the rest is far below one cell
    orders = orders_of(5, 12)
    row = build_channel(stretches.astype(np.uint64), orders)
    target = np.isin(np.arange(5), asked).astype(float)
    coefficients = row.coefficients(target)
    for truth in range(5):
        mean = exact_mean(stretches, orders, truth, coefficients, grid)
        wanted = target[truth] if stretches[truth] else row.shares @ target
        assert mean == pytest.approx(wanted, abs=1e-6)


def test_moments_are_those_of_every_set():
    grid, orders = 100, orders_of(5, 6)
    stretches = np.round(np.array(SHARES["frequent"]) * 3 * grid).astype(np.int64) * (SLOT_LENGTH // grid)
    stretches[0] += 3 * SLOT_LENGTH - stretches.sum()
    row = build_channel(stretches.astype(np.uint64), orders)
    moments = np.zeros((5, 5))
    for order in orders:
        line = np.repeat(order, (stretches // (SLOT_LENGTH // grid))[order])
        for start in range(grid):
            copies = np.bincount(line[start + np.arange(3) * grid], minlength=5)
            moments += np.outer(copies, copies) / grid / len(orders)
    assert row.moments == pytest.approx(moments, abs=1e-6)
    assert row.weights.sum() == pytest.approx(1)
    assert row.moments.sum(axis=1) == pytest.approx(3 * row.pi)


def test_squares_are_the_second_moments_given_the_truth(simulate, stretched):
    rng, orders = np.random.default_rng(3), orders_of(12, 8)
    stretches = stretched(rng.dirichlet(np.ones(12)), 3)
    row = build_channel(stretches, orders)
    coefficients = row.coefficients(np.eye(12)[4])
    truth = np.full(60_000, 7)
    sets = simulate(rng, truth, np.zeros_like(truth), stretches[None], orders)
    assert (coefficients[sets].sum(axis=1) ** 2).mean() == pytest.approx(row.squares(coefficients)[7], rel=0.05)


def test_a_value_in_every_set_cannot_be_counted(stretched):
    stretches = stretched([0.5, 0.3, 0.2], 2)[None]
    veil = veil_of(stretches, orders_of(3, 4))
    records = Records(np.zeros(2, dtype=int), np.array([[0, 1], [0, 2]]))
    for code in range(3):
        with pytest.raises(PolicyError, match="1 of 1 strata"):
            counts(veil, records, np.eye(3)[code])
    assert counts(veil, records, np.ones(3)).estimate == pytest.approx([2])
    assert counts(veil, records, np.zeros(3)).estimate == pytest.approx([0])


def test_rows_without_records_do_not_matter(stretched):
    stretches = np.array([stretched([0.5, 0.3, 0.2], 2), stretched([0.3, 0.45, 0.25], 2)])
    records = Records(np.ones(1, dtype=int), np.array([[0, 1]]))
    assert np.isfinite(counts(veil_of(stretches, orders_of(3, 4)), records, np.eye(3)[0]).estimate[0])


def test_a_line_that_is_not_filled_is_refused():
    with pytest.raises(DataError, match="do not sum to l"):
        build_channel(np.array([SLOT_LENGTH, 5], dtype=np.uint64), np.array([[0, 1]]))


def world(seed, size, l, rows=1):
    rng = np.random.default_rng(seed)
    shares = np.minimum(rng.dirichlet(np.full(size, 0.7), size=rows), 0.8 / l)
    return rng, shares / shares.sum(axis=1, keepdims=True)


def coverage(simulate, stretched, reality, *, size=40, l=5, n=400, code=3, times=600, seed=11):
    rng, shares = world(seed, size, l)
    stretches, orders = stretched(shares[0], l)[None], orders_of(size, 64)
    veil, odds = veil_of(stretches, orders), reality(shares[0].copy())
    odds = odds / odds.sum()
    truth = rng.choice(size, p=odds, size=n * times)
    sets = simulate(rng, truth, np.zeros_like(truth), stretches, orders)
    groups = np.repeat(np.arange(times), n)
    answer = counts(veil, Records(np.zeros_like(truth), sets, groups), np.eye(size)[code], groups=times)
    true = np.bincount(groups, truth == code, minlength=times)
    bias = (answer.estimate - true).mean() / (answer.estimate - true).std() * np.sqrt(times)
    assert abs(bias) < 4
    return float(((answer.low <= true) & (true <= answer.high)).mean())


def scaled(code, factor):
    def reality(shares):
        shares[code] *= factor
        return shares

    return reality


REALITIES = {
    "as the prior says": (scaled(3, 1), {}),
    "an outbreak of the value": (scaled(3, 8), {}),
    "an outbreak of another": (scaled(5, 20), {}),
    "a wholly other reality": (lambda shares: shares[::-1], {}),
    "few": (scaled(3, 0.2), {"n": 60, "times": 2_000}),
    "many values": (scaled(3, 6), {"size": 139, "l": 10, "n": 1_000}),
}


@pytest.mark.parametrize("name", REALITIES)
def test_intervals_cover_whatever_is_true_of_the_prior(simulate, stretched, name):
    reality, size = REALITIES[name]
    assert 0.93 <= coverage(simulate, stretched, reality, **size) <= 0.98


@pytest.mark.parametrize("reality", [scaled(17, 10), np.ones_like])
def test_intervals_of_a_handful_are_on_the_safe_side(simulate, stretched, reality):
    """The channel's variance is that of the prior's records, the estimated one is rough: the larger of them counts."""
    assert 0.93 <= coverage(simulate, stretched, reality, n=12, code=17, times=4_000) <= 0.995


def test_a_rare_candidate_that_shows_up_once_does_not_exclude_none(simulate, stretched):
    """At 25 records this value is offered in one group of ten, mostly as a decoy."""
    assert coverage(simulate, stretched, scaled(3, 1), n=25, times=4_000) >= 0.93


def test_none_is_covered(simulate, stretched):
    assert coverage(simulate, stretched, scaled(17, 0), n=60, code=17, times=2_000) >= 0.93


def test_frequent_values_are_counted(simulate, stretched):
    rng, orders = np.random.default_rng(5), orders_of(6, 64)
    shares = np.array([0.55, 0.15, 0.1, 0.1, 0.06, 0.04])
    stretches = stretched(shares, 3)[None]
    truth = rng.choice(6, p=[0.3, 0.3, 0.1, 0.1, 0.1, 0.1], size=40_000)
    sets = simulate(rng, truth, np.zeros_like(truth), stretches, orders)
    answer = counts(veil_of(stretches, orders), Records(np.zeros_like(truth), sets), np.eye(6)[0])
    assert abs(answer.estimate[0] - (truth == 0).sum()) < 4 * np.sqrt(answer.variance[0])
    assert np.sqrt(answer.variance[0]) < 1_500


def test_unseen_truths_are_taken_out_by_their_share(simulate, stretched):
    rng, orders, times, n = np.random.default_rng(6), orders_of(10, 64), 500, 400
    shares = np.array([0, 0.15, 0.15, 0.15, 0.15, 0.1, 0.1, 0.1, 0.05, 0.05])
    stretches = stretched(shares, 4)[None]
    odds = np.where(shares == 0, 0.25, shares * 0.75)
    truth = rng.choice(10, p=odds, size=n * times)
    sets = simulate(rng, truth, np.zeros_like(truth), stretches, orders)
    groups, target = np.repeat(np.arange(times), n), np.isin(np.arange(10), [1, 2, 3]).astype(float)
    true = np.bincount(groups, target[truth], minlength=times)
    records = Records(np.zeros_like(truth), sets, groups)
    answer = counts(veil_of(stretches, orders, eta=0.25), records, target, groups=times)
    error = (answer.estimate - true) / np.sqrt(answer.variance)
    assert abs(error.mean()) < 0.18
    assert 0.93 <= ((answer.low <= true) & (true <= answer.high)).mean() <= 0.98
    naive = counts(veil_of(stretches, orders), records, target, groups=times)
    assert ((naive.estimate - true) / np.sqrt(naive.variance)).mean() > 1


def test_noise_in_the_share_widens_the_interval(stretched):
    stretches, orders = stretched([0.3, 0.3, 0.25, 0.15], 2)[None], orders_of(4, 8)
    records = Records(np.zeros(100, dtype=int), np.tile([0, 1], (100, 1)))
    plain = counts(veil_of(stretches, orders, eta=0.1), records, np.eye(4)[0])
    noisy = counts(veil_of(stretches, orders, eta=0.1, eta_variance=0.01), records, np.eye(4)[0])
    assert noisy.variance - plain.variance == pytest.approx([(100 * 0.3) ** 2 * 0.01])


def test_unseen_truths_add_to_the_variance(simulate, stretched):
    """Of 4,000 records 400 are unseen: 400 x .3 x .7 for what they show, 4,000 x .1 x .9 x .3^2 for their number."""
    stretches, orders, rows = stretched([0.3, 0.3, 0.25, 0.15], 2)[None], orders_of(4, 8), np.zeros(4_000, dtype=int)
    rng = np.random.default_rng(7)
    records = Records(rows, simulate(rng, rng.integers(4, size=4_000), rows, stretches, orders))
    none, some = (counts(veil_of(stretches, orders, eta=eta), records, np.eye(4)[0]) for eta in (0, 0.1))
    assert some.variance - none.variance == pytest.approx([84 + 32.4])
    assert some.estimate - none.estimate == pytest.approx([-120])


def test_groups_add_up_over_rows(simulate, stretched):
    rng, shares = world(8, 20, 4, rows=3)
    stretches, orders = np.array([stretched(row, 4) for row in shares]), orders_of(20, 64)
    rows = rng.integers(3, size=9_000)
    truth = np.array([rng.choice(20, p=shares[row]) for row in rows])
    sets, groups = simulate(rng, truth, rows, stretches, orders), rng.integers(5, size=9_000)
    veil, target = veil_of(stretches, orders), np.isin(np.arange(20), [2, 3]).astype(float)
    parts = counts(veil, Records(rows, sets, groups), target, groups=5)
    whole = counts(veil, Records(rows, sets), target)
    assert parts.estimate.sum() == pytest.approx(whole.estimate[0])
    assert parts.records.tolist() == np.bincount(groups).tolist()
    true = np.bincount(groups, target[truth])
    assert (np.abs(parts.estimate - true) < 4 * np.sqrt(parts.variance)).all()


def kernel_of(stay, shares):
    """T = stay on the diagonal, the rest by the prior."""
    return np.diag(stay) + (1 - stay)[:, None] * shares[None, :]


def moved(rng, slots, matrix):
    ends = matrix.cumsum(axis=1)
    return (rng.random(slots.shape)[..., None] > ends[slots]).sum(axis=-1).clip(max=len(matrix) - 1)


def test_later_events_need_the_first_set_and_the_kernel(simulate, stretched):
    rng, orders, times, n, l, size = np.random.default_rng(9), orders_of(12, 64), 300, 200, 4, 12
    shares = np.minimum(rng.dirichlet(np.ones(size)), 0.2)
    shares /= shares.sum()
    stretches = stretched(shares, l)[None]
    veil, target = veil_of(stretches, orders), np.isin(np.arange(size), [1, 2]).astype(float)
    kernel = kernel_of(rng.uniform(0.2, 0.9, size), shares)
    # Reality follows neither the prior nor the kernel.
    odds = rng.permutation(shares)
    truth = rng.choice(size, p=odds, size=n * times)
    first = simulate(rng, truth, np.zeros_like(truth), stretches, orders)
    later = truth.copy()
    slots = first.astype(np.int64)
    mine = (slots == truth[:, None]).argmax(axis=1)
    for _ in range(2):
        slots = moved(rng, slots, kernel)
        later = moved(rng, later, np.eye(size)[:, ::-1] * 0.3 + np.eye(size) * 0.7)
        slots[np.arange(len(slots)), mine] = later
    groups = np.repeat(np.arange(times), n)
    records = Records(np.zeros_like(truth), np.sort(slots, axis=1), groups, events=np.full(len(truth), 2), first=first)
    answer = counts(veil, records, target, groups=times, step=lambda _, goal: kernel @ goal)
    true = np.bincount(groups, target[later], minlength=times)
    assert abs(((answer.estimate - true) / np.sqrt(answer.variance)).mean()) < 4 / np.sqrt(times)
    assert 0.93 <= ((answer.low <= true) & (true <= answer.high)).mean() <= 0.98
    alone = counts(veil, Records(records.strata, records.candidates, groups), target, groups=times)
    assert abs(((alone.estimate - true) / np.sqrt(alone.variance)).mean()) > 0.5
    with pytest.raises(PolicyError, match="first event"):
        scores(veil, records, target)


def test_records_of_one_person_vary_together(simulate, stretched):
    rng, shares = world(12, 20, 4)
    stretches, orders, times, n = stretched(shares[0], 4)[None], orders_of(20, 64), 600, 100
    truth = rng.choice(20, p=shares[0], size=n * times)
    sets = np.repeat(simulate(rng, truth, np.zeros_like(truth), stretches, orders), 3, axis=0)
    groups, persons = np.repeat(np.arange(times), 3 * n), np.repeat(np.arange(n * times), 3)
    veil, target = veil_of(stretches, orders), np.eye(20)[2]
    true = 3 * np.bincount(groups[::3], target[truth], minlength=times)
    inside = {}
    for name, who in {"alone": None, "together": persons}.items():
        answer = counts(veil, Records(np.zeros(len(sets), dtype=int), sets, groups, who), target, groups=times)
        inside[name] = ((answer.low <= true) & (true <= answer.high)).mean()
    assert inside["alone"] < 0.85
    assert inside["together"] >= 0.93


def test_totals_draw_counts_toward_them_without_bias(simulate, stretched):
    """Many worlds with a wrong prior: calibrated counts stay unbiased, their intervals hold, and are narrower."""
    rng, shares = world(21, 12, 3, rows=2)
    stretches = np.array([stretched(row, 3) for row in shares])
    orders, times, n, noise = orders_of(12, 16), 150, 240, 8.0
    mean, held, width, plain_width = [], [], [], []
    veil = veil_of(stretches, orders)
    reality = np.roll(shares, 1, axis=1)  # the prior is wrong
    target = np.eye(12)[2]
    for _ in range(times):
        rows = rng.integers(2, size=n)
        truth = np.array([rng.choice(12, p=reality[row]) for row in rows])
        groups = (rng.random(n) < 0.3).astype(int)
        exact = np.bincount(rows * 12 + truth, minlength=24).reshape(2, 12)
        totals = NoisyCounts(exact + rng.normal(0, noise**0.5, exact.shape), noise)
        known = dataclasses.replace(veil, noisy_counts=totals)
        known.reuse_channels(veil)
        records = Records(rows, simulate(rng, truth, rows, stretches, orders), groups)
        whole = cells(known, rows, scores(known, records, target), np.zeros(n, dtype=int), 1)
        answer = counts(known, records, target, groups=2, whole=whole)
        before = counts(veil, records, target, groups=2)
        true = np.bincount(groups, target[truth], minlength=2)
        mean.append(answer.estimate - true)
        held.append((answer.low <= true) & (true <= answer.high))
        width.append(answer.high - answer.low)
        plain_width.append(before.high - before.low)
    error = np.std(mean, axis=0) / times**0.5
    assert (np.abs(np.mean(mean, axis=0)) < 4 * error).all()
    assert np.mean(held) >= 0.93
    gain = np.mean(width, axis=0) / np.mean(plain_width, axis=0)  # of the larger part, and of the smaller
    assert gain[0] < 0.8
    assert gain[1] < 1


def test_truths_that_are_not_offered_are_guessed_within_a_factor_of_three():
    """Rare values hide in most rows, frequent ones only where they are rare: neither is missed in proportion to the prior."""
    rng, rows, size, scale = np.random.default_rng(4), 18, 40, 2.0
    likely = rng.permutation(1 / np.arange(1, size + 1) ** 1.2) * np.exp(rng.normal(0, 1.2, (rows, size)))
    likely /= likely.sum(axis=1, keepdims=True)
    number = rng.integers(60, 1_200, rows)
    past, now = (np.stack([rng.multinomial(n, p) for n, p in zip(number, likely, strict=True)]) for _ in range(2))
    counts = past + rng.laplace(0, scale, past.shape)
    counts[counts < 4 * scale] = 0
    kept = counts.any(axis=0)
    stretches, now = np.round(counts[:, kept] * 1_000).astype(np.uint64), now[:, kept]
    missed = np.where(stretches == 0, now, 0)
    eta, sizes = missed.sum(axis=1) / now.sum(axis=1), now.sum(axis=1).astype(float)
    labels = tuple(map(str, range(now.shape[1])))
    veil = Veil(labels, stretches, np.zeros((1, now.shape[1]), int), eta, np.zeros(rows), stratum_sizes=sizes)
    guess, truth = (eta * sizes) @ veil.omitted_shares, missed.sum(axis=0)
    assert (truth <= 3 * guess + 3).mean() >= 0.95
    assert guess.sum() == pytest.approx(truth.sum())
