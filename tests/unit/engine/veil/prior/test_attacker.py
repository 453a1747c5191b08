"""The informed attacker gains where the prior is wrong, and nowhere else."""

import numpy as np
import pyarrow as pa
import pytest

from reticent.engine.veil.prior.attacker import posterior, sample_of, train_attackers
from reticent.engine.veil.prior.fields import published_fields
from reticent.engine.veil.prior.measure import measure, measure_disclosure, odds_ratios
from reticent.engine.veil.prior.prior import SLOT_LENGTH, Prior, draw_candidates, random_permutations
from reticent.policy import Policy
from reticent.read.estimate.veil import Records, Veil, counts

POLICY = Policy.from_dict({"version": 1, "columns": {"sex": "quasi", "hair": "quasi", "ill": "sensitive"}})
SIZE, L = 20, 4
LABELS = tuple(f"v{code:02}" for code in range(SIZE))


def world(n=30_000, seed=0):
    rng = np.random.default_rng(seed)
    odds = rng.dirichlet(np.full(SIZE, 0.8), size=2)
    sex, hair = rng.integers(2, size=n), rng.integers(5, size=n)
    values = (rng.random(n)[:, None] > odds.cumsum(axis=1)[sex]).sum(axis=1).clip(max=SIZE - 1)
    table = pa.table({"sex": np.array(["f", "m"])[sex], "hair": np.array(list("abcde"))[hair]})
    return published_fields(table, POLICY, ("sex", "hair")), sex, values, odds


def prior_of(shares, strata):
    return Prior(LABELS, strata, shares, np.full(len(shares), 1_000.0))


def measured(shares, strata):
    fields, _, values, _ = world()
    prior, rng = prior_of(shares, strata), np.random.default_rng(1)
    seen = sample_of(fields.values(), prior.assign_strata(fields, len(values)), values, stratum_count=len(strata))
    half = np.arange(len(values)) < 20_000
    validation = {name: field.take(np.flatnonzero(~half)) for name, field in fields.items()}
    return measure(
        prior, validation.values(), seen.take(np.flatnonzero(half)), seen.take(np.flatnonzero(~half)), l=L, rng=rng
    )


def test_sets_are_those_of_the_channel():
    """Each slot is the true one equally often, and the recipient's estimator is unbiased on them."""
    rng = np.random.default_rng(2)
    shares = np.array([rng.dirichlet(np.ones(SIZE)) for _ in range(3)])
    shares[0, :4] = 0
    shares /= shares.sum(axis=1, keepdims=True)
    prior, permutations = prior_of(shares, ({},) * 3), random_permutations(SIZE, rng)
    strata = rng.integers(3, size=60_000)
    values = (rng.random(60_000)[:, None] > shares.cumsum(axis=1)[strata]).sum(axis=1).clip(max=SIZE - 1)
    sets = draw_candidates(values, strata, prior.segments(L), permutations, rng)
    copies = (sets == values[:, None]).sum(axis=1)
    assert (copies > 0).all()
    guess = sets[np.arange(len(sets)), rng.integers(L, size=len(sets))]
    assert (guess == values).mean() == pytest.approx((copies / L).mean(), abs=0.01)
    for slot in range(L):
        assert (sets[:, slot] == values).mean() == pytest.approx((copies / L).mean(), abs=0.01)
    veil = Veil(LABELS, prior.segments(L), permutations, np.zeros(3), np.zeros(3))
    answer = counts(veil, Records(strata, sets), np.eye(SIZE)[7])
    assert abs(answer.estimate[0] - (values == 7).sum()) < 4 * np.sqrt(answer.variance[0])


def test_the_true_value_is_a_candidate_however_short_its_segment():
    segments = np.array([[1, SLOT_LENGTH - 1, 1, SLOT_LENGTH - 1]], dtype=np.uint64)
    values = np.repeat([0, 2], 500)
    sets = draw_candidates(
        values,
        np.zeros(1_000, dtype=int),
        segments,
        random_permutations(4, np.random.default_rng(5)),
        np.random.default_rng(6),
    )
    assert (sets == values[:, None]).any(axis=1).all()


def test_the_odds_ratio_is_the_largest_ratio_between_candidates():
    belief, shares = np.array([[0.1, 0.6, 0.2, 0.1]] * 2), np.full((2, 4), 0.25)
    assert odds_ratios(belief, shares, np.array([[0, 1], [2, 3]])) == pytest.approx([6, 2])


def test_an_attacker_who_believes_the_prior_gives_each_copy_the_same_weight():
    shares = np.full((1, 4), 0.25)
    weight = posterior(shares, np.array([[0, 0, 2]]), shares)
    assert weight[0] == pytest.approx([2 / 3, 0, 1 / 3, 0])
    doubled = posterior(np.array([[0.2, 0.2, 0.4, 0.2]]), np.array([[0, 0, 2]]), shares)
    assert doubled[0] == pytest.approx([0.5, 0, 0.5, 0])


def test_an_attacker_gains_nothing_over_a_correct_prior():
    odds = world()[3]
    found = measured(odds, ({"sex": "f"}, {}))
    # Only rounding can give a frequent value one copy more than its share.
    assert found.ratio < 1.2
    assert found.odds_ratio[0] < 1.6
    assert found.omission_rate == 0


def test_a_prior_that_ignores_a_published_field_is_exploited():
    odds = world()[3]
    found = measured(odds.mean(axis=0)[None], ({},))
    assert found.ratio > 1.35
    assert found.odds_ratio[0] > 2.5
    assert found.attacker_likelihood > found.prior_likelihood + 0.1
    assert found.disclosive_columns[0].column == "sex"
    assert found.disclosive_columns[0].nats[0] > 0.1 > found.disclosive_columns[1].nats[0]


def test_omitted_values_are_counted():
    shares = world()[3].copy()
    share = shares[:, :3].sum(axis=1).mean()
    shares[:, :3] = 0
    found = measured(shares / shares.sum(axis=1, keepdims=True), ({"sex": "f"}, {}))
    assert found.omission_rate == pytest.approx(share, abs=0.03)


def test_the_attacker_uses_what_two_fields_disclose_together_and_neither_alone():
    """Which half of the values somebody has depends on whether sex and hair agree: an attacker who uses one field at a time learns nothing."""
    rng = np.random.default_rng(8)
    sex, hair = rng.integers(2, size=12_000), rng.integers(2, size=12_000)
    values = rng.integers(SIZE // 2, size=12_000) + SIZE // 2 * (sex == hair)
    fields = published_fields(
        pa.table({"sex": np.array(["f", "m"])[sex], "hair": np.array(list("ab"))[hair]}), POLICY, ("sex", "hair")
    )
    prior = prior_of(np.full((1, SIZE), 1 / SIZE), ({},))
    seen = sample_of(fields.values(), np.zeros(len(values), dtype=int), values, stratum_count=1)
    learn, validation = np.arange(6_000), np.arange(6_000, 12_000)
    found = measure(
        prior,
        [field.take(validation) for field in fields.values()],
        seen.take(learn),
        seen.take(validation),
        l=L,
        rng=rng,
    )
    assert found.before.right > 1.6 / SIZE  # about 2 / 20; one field at a time 1 / 20
    assert found.after.right > 1.5 / L


def test_the_attacker_learns_nothing_where_there_is_nothing_to_learn():
    fields, _, values, odds = world()
    rng = np.random.default_rng(3)
    seen = sample_of(fields.values(), np.zeros(len(values), dtype=int), rng.permutation(values), stratum_count=1)
    shy, *_, bold = train_attackers(seen, odds.mean(axis=0)[None])
    for attacker, most in ((shy, 1e-9), (bold, 1.2)):
        belief = attacker.belief(seen.take(np.arange(200)))
        assert np.abs(np.log(belief / belief[0])).max() < most


def test_a_coarser_level_discloses_less():
    policy = Policy.from_dict(
        {"version": 1, "columns": {"age": {"role": "quasi", "hierarchy": {"intervals": [10, 50]}}, "ill": "sensitive"}}
    )
    rng = np.random.default_rng(4)
    age = rng.integers(0, 100, 20_000)
    fields = published_fields(pa.table({"age": age}), policy, ("age",))
    one = measure_disclosure(fields.values(), age // 10, 10, rng)[0]
    assert one.nats[1] == pytest.approx(np.log(10), abs=0.1)
    assert one.nats[2] == pytest.approx(np.log(2), abs=0.05)
