"""HT2: unbiased for every value by exact enumeration; intervals cover when the prior is right, when it is wrong, and for few records."""

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


def permutations_of(size, number, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([rng.permutation(size) for _ in range(number)])


def veil_of(segments, permutations, omission_rate=0.0, omission_variance=0.0):
    strata, size = segments.shape
    labels = tuple(f"v{code:03}" for code in range(size))
    return Veil(labels, segments, permutations, np.full(strata, omission_rate), np.full(strata, omission_variance))


def enumerate_sets(segments, permutations, true_value, grid):
    """Every set and its probability given the true value, by steps of one grid cell along a slot; no code under test."""
    lengths = segments.astype(np.int64) // (SLOT_LENGTH // grid)
    l = int(lengths.sum() // grid)
    for permutation in permutations:
        line = np.repeat(permutation, lengths[permutation])
        for start in range(grid):
            members = line[start + np.arange(l) * grid]
            copies = (members == true_value).sum() if lengths[true_value] else 1
            whole = lengths[true_value] or grid
            yield members, copies / whole / len(permutations)


def exact_mean(segments, permutations, true_value, coefficients, grid):
    return sum(
        weight * coefficients[members].sum()
        for members, weight in enumerate_sets(segments, permutations, true_value, grid)
    )


@pytest.mark.parametrize("name", SHARES)
@pytest.mark.parametrize("l", [2, 3])
@pytest.mark.parametrize("asked", [[0], [3], [0, 2], [1, 4]])
def test_the_mean_given_every_true_value_is_the_indicator(name, l, asked):
    grid = 100
    segments = (np.round(np.array(SHARES[name]) * l * grid).astype(np.int64) * (SLOT_LENGTH // grid)).astype(np.int64)
    segments[0] += l * SLOT_LENGTH - segments.sum()  # the slot length is no multiple of the grid
    permutations = permutations_of(5, 12)
    channel = build_channel(segments.astype(np.uint64), permutations)
    target = np.isin(np.arange(5), asked).astype(float)
    coefficients = channel.coefficients(target)
    for true_value in range(5):
        mean = exact_mean(segments, permutations, true_value, coefficients, grid)
        wanted = target[true_value] if segments[true_value] else channel.shares @ target
        assert mean == pytest.approx(wanted, abs=1e-6)


def test_moments_are_those_of_every_set():
    grid, permutations = 100, permutations_of(5, 6)
    segments = np.round(np.array(SHARES["frequent"]) * 3 * grid).astype(np.int64) * (SLOT_LENGTH // grid)
    segments[0] += 3 * SLOT_LENGTH - segments.sum()
    channel = build_channel(segments.astype(np.uint64), permutations)
    moments = np.zeros((5, 5))
    for permutation in permutations:
        line = np.repeat(permutation, (segments // (SLOT_LENGTH // grid))[permutation])
        for start in range(grid):
            copies = np.bincount(line[start + np.arange(3) * grid], minlength=5)
            moments += np.outer(copies, copies) / grid / len(permutations)
    assert channel.moments == pytest.approx(moments, abs=1e-6)
    assert channel.weights.sum() == pytest.approx(1)
    assert channel.moments.sum(axis=1) == pytest.approx(3 * channel.pi)


def test_squares_are_the_second_moments_given_the_true_value(simulate, segments_of):
    rng, permutations = np.random.default_rng(3), permutations_of(12, 8)
    segments = segments_of(rng.dirichlet(np.ones(12)), 3)
    channel = build_channel(segments, permutations)
    coefficients = channel.coefficients(np.eye(12)[4])
    true_values = np.full(60_000, 7)
    sets = simulate(rng, true_values, np.zeros_like(true_values), segments[None], permutations)
    assert (coefficients[sets].sum(axis=1) ** 2).mean() == pytest.approx(channel.squares(coefficients)[7], rel=0.05)


def test_a_value_in_every_set_cannot_be_counted(segments_of):
    segments = segments_of([0.5, 0.3, 0.2], 2)[None]
    veil = veil_of(segments, permutations_of(3, 4))
    records = Records(np.zeros(2, dtype=int), np.array([[0, 1], [0, 2]]))
    for code in range(3):
        with pytest.raises(PolicyError, match="1 of 1 strata"):
            counts(veil, records, np.eye(3)[code])
    assert counts(veil, records, np.ones(3)).estimate == pytest.approx([2])
    assert counts(veil, records, np.zeros(3)).estimate == pytest.approx([0])


def test_strata_without_records_do_not_matter(segments_of):
    segments = np.array([segments_of([0.5, 0.3, 0.2], 2), segments_of([0.3, 0.45, 0.25], 2)])
    records = Records(np.ones(1, dtype=int), np.array([[0, 1]]))
    assert np.isfinite(counts(veil_of(segments, permutations_of(3, 4)), records, np.eye(3)[0]).estimate[0])


def test_a_line_that_is_not_filled_is_refused():
    with pytest.raises(DataError, match="do not sum to l"):
        build_channel(np.array([SLOT_LENGTH, 5], dtype=np.uint64), np.array([[0, 1]]))


def world(seed, size, l, strata=1):
    rng = np.random.default_rng(seed)
    shares = np.minimum(rng.dirichlet(np.full(size, 0.7), size=strata), 0.8 / l)
    return rng, shares / shares.sum(axis=1, keepdims=True)


def coverage(simulate, segments_of, reality, *, size=40, l=5, n=400, code=3, times=600, seed=11):
    rng, shares = world(seed, size, l)
    segments, permutations = segments_of(shares[0], l)[None], permutations_of(size, 64)
    veil, odds = veil_of(segments, permutations), reality(shares[0].copy())
    odds = odds / odds.sum()
    true_values = rng.choice(size, p=odds, size=n * times)
    sets = simulate(rng, true_values, np.zeros_like(true_values), segments, permutations)
    groups = np.repeat(np.arange(times), n)
    answer = counts(veil, Records(np.zeros_like(true_values), sets, groups), np.eye(size)[code], groups=times)
    true = np.bincount(groups, true_values == code, minlength=times)
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
    "a completely different distribution": (lambda shares: shares[::-1], {}),
    "few": (scaled(3, 0.2), {"n": 60, "times": 2_000}),
    "many values": (scaled(3, 6), {"size": 139, "l": 10, "n": 1_000}),
}


@pytest.mark.parametrize("name", REALITIES)
def test_intervals_cover_whether_or_not_the_prior_is_right(simulate, segments_of, name):
    reality, size = REALITIES[name]
    assert 0.93 <= coverage(simulate, segments_of, reality, **size) <= 0.98


@pytest.mark.parametrize("reality", [scaled(17, 10), np.ones_like])
def test_intervals_of_a_few_records_are_conservative(simulate, segments_of, reality):
    """The channel's variance follows the prior and the estimated one is rough: the larger of the two counts."""
    assert 0.93 <= coverage(simulate, segments_of, reality, n=12, code=17, times=4_000) <= 0.995


def test_a_rare_candidate_that_occurs_once_does_not_exclude_a_count_of_zero(simulate, segments_of):
    """At 25 records this value is a candidate in one group of ten, mostly as a false candidate."""
    assert coverage(simulate, segments_of, scaled(3, 1), n=25, times=4_000) >= 0.93


def test_a_count_of_zero_is_covered(simulate, segments_of):
    assert coverage(simulate, segments_of, scaled(17, 0), n=60, code=17, times=2_000) >= 0.93


def test_frequent_values_are_counted(simulate, segments_of):
    rng, permutations = np.random.default_rng(5), permutations_of(6, 64)
    shares = np.array([0.55, 0.15, 0.1, 0.1, 0.06, 0.04])
    segments = segments_of(shares, 3)[None]
    true_values = rng.choice(6, p=[0.3, 0.3, 0.1, 0.1, 0.1, 0.1], size=40_000)
    sets = simulate(rng, true_values, np.zeros_like(true_values), segments, permutations)
    answer = counts(veil_of(segments, permutations), Records(np.zeros_like(true_values), sets), np.eye(6)[0])
    assert abs(answer.estimate[0] - (true_values == 0).sum()) < 4 * np.sqrt(answer.variance[0])
    assert np.sqrt(answer.variance[0]) < 1_500


def test_omitted_values_are_subtracted_by_the_omission_rate(simulate, segments_of):
    rng, permutations, times, n = np.random.default_rng(6), permutations_of(10, 64), 500, 400
    shares = np.array([0, 0.15, 0.15, 0.15, 0.15, 0.1, 0.1, 0.1, 0.05, 0.05])
    segments = segments_of(shares, 4)[None]
    odds = np.where(shares == 0, 0.25, shares * 0.75)
    true_values = rng.choice(10, p=odds, size=n * times)
    sets = simulate(rng, true_values, np.zeros_like(true_values), segments, permutations)
    groups, target = np.repeat(np.arange(times), n), np.isin(np.arange(10), [1, 2, 3]).astype(float)
    true = np.bincount(groups, target[true_values], minlength=times)
    records = Records(np.zeros_like(true_values), sets, groups)
    answer = counts(veil_of(segments, permutations, omission_rate=0.25), records, target, groups=times)
    error = (answer.estimate - true) / np.sqrt(answer.variance)
    assert abs(error.mean()) < 0.18
    assert 0.93 <= ((answer.low <= true) & (true <= answer.high)).mean() <= 0.98
    naive = counts(veil_of(segments, permutations), records, target, groups=times)
    assert ((naive.estimate - true) / np.sqrt(naive.variance)).mean() > 1


def test_noise_in_the_omission_rate_widens_the_interval(segments_of):
    segments, permutations = segments_of([0.3, 0.3, 0.25, 0.15], 2)[None], permutations_of(4, 8)
    records = Records(np.zeros(100, dtype=int), np.tile([0, 1], (100, 1)))
    plain = counts(veil_of(segments, permutations, omission_rate=0.1), records, np.eye(4)[0])
    noisy = counts(veil_of(segments, permutations, omission_rate=0.1, omission_variance=0.01), records, np.eye(4)[0])
    assert noisy.variance - plain.variance == pytest.approx([(100 * 0.3) ** 2 * 0.01])


def test_omitted_values_add_to_the_variance(simulate, segments_of):
    """400 of 4,000 true values are omitted: 400 x .3 x .7 for what they show, 4,000 x .1 x .9 x .3^2 for their number."""
    segments, permutations, strata = (
        segments_of([0.3, 0.3, 0.25, 0.15], 2)[None],
        permutations_of(4, 8),
        np.zeros(4_000, dtype=int),
    )
    rng = np.random.default_rng(7)
    records = Records(strata, simulate(rng, rng.integers(4, size=4_000), strata, segments, permutations))
    none, some = (
        counts(veil_of(segments, permutations, omission_rate=rate), records, np.eye(4)[0]) for rate in (0, 0.1)
    )
    assert some.variance - none.variance == pytest.approx([84 + 32.4])
    assert some.estimate - none.estimate == pytest.approx([-120])


def test_groups_add_up_over_strata(simulate, segments_of):
    rng, shares = world(8, 20, 4, strata=3)
    segments, permutations = np.array([segments_of(share, 4) for share in shares]), permutations_of(20, 64)
    strata = rng.integers(3, size=9_000)
    true_values = np.array([rng.choice(20, p=shares[stratum]) for stratum in strata])
    sets, groups = simulate(rng, true_values, strata, segments, permutations), rng.integers(5, size=9_000)
    veil, target = veil_of(segments, permutations), np.isin(np.arange(20), [2, 3]).astype(float)
    parts = counts(veil, Records(strata, sets, groups), target, groups=5)
    whole = counts(veil, Records(strata, sets), target)
    assert parts.estimate.sum() == pytest.approx(whole.estimate[0])
    assert parts.records.tolist() == np.bincount(groups).tolist()
    true = np.bincount(groups, target[true_values])
    assert (np.abs(parts.estimate - true) < 4 * np.sqrt(parts.variance)).all()


def kernel_of(stay, shares):
    """T = stay on the diagonal, the rest by the prior."""
    return np.diag(stay) + (1 - stay)[:, None] * shares[None, :]


def moved(rng, slots, matrix):
    ends = matrix.cumsum(axis=1)
    return (rng.random(slots.shape)[..., None] > ends[slots]).sum(axis=-1).clip(max=len(matrix) - 1)


def test_later_events_need_the_first_set_and_the_kernel(simulate, segments_of):
    rng, permutations, times, n, l, size = np.random.default_rng(9), permutations_of(12, 64), 300, 200, 4, 12
    shares = np.minimum(rng.dirichlet(np.ones(size)), 0.2)
    shares /= shares.sum()
    segments = segments_of(shares, l)[None]
    veil, target = veil_of(segments, permutations), np.isin(np.arange(size), [1, 2]).astype(float)
    kernel = kernel_of(rng.uniform(0.2, 0.9, size), shares)
    # Reality follows neither the prior nor the kernel.
    odds = rng.permutation(shares)
    true_values = rng.choice(size, p=odds, size=n * times)
    first = simulate(rng, true_values, np.zeros_like(true_values), segments, permutations)
    later = true_values.copy()
    slots = first.astype(np.int64)
    mine = (slots == true_values[:, None]).argmax(axis=1)
    for _ in range(2):
        slots = moved(rng, slots, kernel)
        later = moved(rng, later, np.eye(size)[:, ::-1] * 0.3 + np.eye(size) * 0.7)
        slots[np.arange(len(slots)), mine] = later
    groups = np.repeat(np.arange(times), n)
    records = Records(
        np.zeros_like(true_values), np.sort(slots, axis=1), groups, events=np.full(len(true_values), 2), first=first
    )
    answer = counts(veil, records, target, groups=times, step=lambda _, goal: kernel @ goal)
    true = np.bincount(groups, target[later], minlength=times)
    assert abs(((answer.estimate - true) / np.sqrt(answer.variance)).mean()) < 4 / np.sqrt(times)
    assert 0.93 <= ((answer.low <= true) & (true <= answer.high)).mean() <= 0.98
    alone = counts(veil, Records(records.strata, records.candidates, groups), target, groups=times)
    assert abs(((alone.estimate - true) / np.sqrt(alone.variance)).mean()) > 0.5
    with pytest.raises(PolicyError, match="first event"):
        scores(veil, records, target)


def test_records_of_one_person_vary_together(simulate, segments_of):
    rng, shares = world(12, 20, 4)
    segments, permutations, times, n = segments_of(shares[0], 4)[None], permutations_of(20, 64), 600, 100
    true_values = rng.choice(20, p=shares[0], size=n * times)
    sets = np.repeat(simulate(rng, true_values, np.zeros_like(true_values), segments, permutations), 3, axis=0)
    groups, persons = np.repeat(np.arange(times), 3 * n), np.repeat(np.arange(n * times), 3)
    veil, target = veil_of(segments, permutations), np.eye(20)[2]
    true = 3 * np.bincount(groups[::3], target[true_values], minlength=times)
    inside = {}
    for name, who in {"alone": None, "together": persons}.items():
        answer = counts(veil, Records(np.zeros(len(sets), dtype=int), sets, groups, who), target, groups=times)
        inside[name] = ((answer.low <= true) & (true <= answer.high)).mean()
    assert inside["alone"] < 0.85
    assert inside["together"] >= 0.93


def test_noisy_counts_calibrate_estimates_without_bias(simulate, segments_of):
    """Many worlds with a wrong prior: calibrated counts stay unbiased, their intervals hold, and are narrower."""
    rng, shares = world(21, 12, 3, strata=2)
    segments = np.array([segments_of(share, 3) for share in shares])
    permutations, times, n, noise = permutations_of(12, 16), 150, 240, 8.0
    mean, covered, width, plain_width = [], [], [], []
    veil = veil_of(segments, permutations)
    reality = np.roll(shares, 1, axis=1)  # the prior is wrong
    target = np.eye(12)[2]
    for _ in range(times):
        strata = rng.integers(2, size=n)
        true_values = np.array([rng.choice(12, p=reality[stratum]) for stratum in strata])
        groups = (rng.random(n) < 0.3).astype(int)
        exact = np.bincount(strata * 12 + true_values, minlength=24).reshape(2, 12)
        noisy = NoisyCounts(exact + rng.normal(0, noise**0.5, exact.shape), noise)
        known = dataclasses.replace(veil, noisy_counts=noisy)
        known.reuse_channels(veil)
        records = Records(strata, simulate(rng, true_values, strata, segments, permutations), groups)
        whole = cells(known, strata, scores(known, records, target), np.zeros(n, dtype=int), 1)
        answer = counts(known, records, target, groups=2, whole=whole)
        before = counts(veil, records, target, groups=2)
        true = np.bincount(groups, target[true_values], minlength=2)
        mean.append(answer.estimate - true)
        covered.append((answer.low <= true) & (true <= answer.high))
        width.append(answer.high - answer.low)
        plain_width.append(before.high - before.low)
    error = np.std(mean, axis=0) / times**0.5
    assert (np.abs(np.mean(mean, axis=0)) < 4 * error).all()
    assert np.mean(covered) >= 0.93
    gain = np.mean(width, axis=0) / np.mean(plain_width, axis=0)  # of the larger part, and of the smaller
    assert gain[0] < 0.8
    assert gain[1] < 1


def test_omitted_values_are_estimated_within_a_factor_of_three():
    """Most strata omit a rare value, few omit a frequent one: the omitted counts are not proportional to the prior."""
    rng, strata, size, scale = np.random.default_rng(4), 18, 40, 2.0
    likely = rng.permutation(1 / np.arange(1, size + 1) ** 1.2) * np.exp(rng.normal(0, 1.2, (strata, size)))
    likely /= likely.sum(axis=1, keepdims=True)
    number = rng.integers(60, 1_200, strata)
    past, now = (np.stack([rng.multinomial(n, p) for n, p in zip(number, likely, strict=True)]) for _ in range(2))
    counts = past + rng.laplace(0, scale, past.shape)
    counts[counts < 4 * scale] = 0
    kept = counts.any(axis=0)
    segments, now = np.round(counts[:, kept] * 1_000).astype(np.uint64), now[:, kept]
    missed = np.where(segments == 0, now, 0)
    omission_rate, sizes = missed.sum(axis=1) / now.sum(axis=1), now.sum(axis=1).astype(float)
    labels = tuple(map(str, range(now.shape[1])))
    veil = Veil(
        labels, segments, np.zeros((1, now.shape[1]), int), omission_rate, np.zeros(strata), stratum_sizes=sizes
    )
    guess, actual = (omission_rate * sizes) @ veil.omitted_shares, missed.sum(axis=0)
    assert (actual <= 3 * guess + 3).mean() >= 0.95
    assert guess.sum() == pytest.approx(actual.sum())
