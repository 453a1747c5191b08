"""Priors from the records that they protect: given levels, noise in every count, nothing measured."""

import numpy as np
import pyarrow as pa
import pytest

from reticent.engine.veil.parameters import VeilParameters
from reticent.engine.veil.prior.fit_on_release import fit_on_release, fit_warmup
from reticent.engine.veil.prior.fitted_prior import write_fit, write_prior
from reticent.engine.veil.prior.prior import Prior
from reticent.engine.veil.release import guarantee
from reticent.errors import GuaranteeError, PolicyError
from reticent.policy import Policy
from reticent.policy.prior import read_strata

COLUMNS = {
    "id": "identifier",
    "sex": "quasi",
    "age": {"role": "quasi", "level": 2, "hierarchy": {"intervals": [10, 50]}},
    "ill": "sensitive",
}


def policy(base=".", **prior):
    rules = {"version": 1, "person": "id", "columns": COLUMNS, "privacy": {"l": 3}, "prior": prior}
    return Policy.from_dict(rules, base=base)


def records(n=3000, seed=1):
    rng = np.random.default_rng(seed)
    ids = [f"p{i}" for i in range(n)]
    ages = rng.integers(0, 100, n)
    return pa.table({"id": ids, "sex": rng.choice(["f", "m"], n), "age": ages, "ill": rng.choice(list("abcdefgh"), n)})


def test_a_warmup_gives_a_parameter_set_that_states_its_epsilon(tmp_path):
    rules = policy(tmp_path, file="prior.csv", warmup=3000, by=["sex", "age"], epsilon=2)
    write_fit(fit_warmup(rules, records(), np.random.default_rng(1)), tmp_path / "prior.csv")
    parameters = VeilParameters.of(rules, "stream")
    assert parameters.by == ("sex", "age")
    assert {cells[1] for cells in parameters.strata} == {"[0, 50)", "[50, 100)", "*"}
    assert parameters.epsilon == 2
    words = " ".join(guarantee(parameters).not_covered)
    assert "epsilon = 2" in words
    assert "computed from the released persons" in words
    assert "was not measured" in words
    _, strata = parameters.levels.publish(records())
    assert len(np.unique(strata)) == 4


def test_every_count_has_noise_and_no_stratum_is_grown():
    priors = [
        fit_on_release(records(), policy(), l=3, by=(), epsilon=1.0, rng=np.random.default_rng(seed)).prior
        for seed in range(8)
    ]
    assert {len(prior.strata) for prior in priors} == {1}
    shares = np.array([prior.shares[0] for prior in priors])
    assert (shares.std(axis=0)[:8] > 0).all()


def test_a_person_counts_once():
    twice = pa.concat_tables([records(), records()])
    found = fit_on_release(twice, policy(), l=3, epsilon=1.0, rng=np.random.default_rng(1))
    assert found.persons == 3000


def test_the_file_is_read_back_with_its_report(tmp_path):
    found = fit_on_release(records(), policy(), l=3, by=["sex"], epsilon=0.5, rng=np.random.default_rng(1))
    write_fit(found, tmp_path / "prior.csv")
    rules = policy(tmp_path, file="prior.csv")
    assert VeilParameters.of(rules, "table").epsilon == pytest.approx(0.5)
    assert read_strata(tmp_path / "prior.csv").by == ("sex",)


def test_a_stratum_that_noise_left_empty_still_offers_its_values(tmp_path):
    shares = np.array([[0.5, 0.5], [1.0, 0.0]])
    prior = Prior(("a", "b"), ({"sex": "f"}, {}), shares, np.array([0.0, 10.0]))
    write_prior(prior, tmp_path / "prior.csv")
    strata = read_strata(tmp_path / "prior.csv").strata
    assert strata["f",] == {"a": 0.5, "b": 0.5}


def test_a_prior_that_the_warmup_has_not_written_yet_is_refused_with_a_hint(tmp_path):
    with pytest.raises(PolicyError, match="does not exist yet"):
        VeilParameters.of(policy(tmp_path, file="prior.csv", warmup=1000), "stream")
    with pytest.raises(PolicyError, match="warmup also needs file"):
        policy(tmp_path, warmup=1000)


def returning(n=6000, seed=1):
    """Every person has two records, mostly with the same value."""
    rng, first = np.random.default_rng(seed + 100), records(n, seed)
    ill = np.where(rng.random(n) < 0.8, np.array(first["ill"].to_pylist()), rng.choice(list("abcdefgh"), n))
    return pa.concat_tables([first, first.set_column(3, "ill", pa.array(ill))])


def test_a_kernel_is_fitted_only_if_persons_return():
    fits = [
        fit_on_release(table, policy(), l=3, epsilon=1.0, kernel=True, rng=np.random.default_rng(seed))
        for table in (returning(), records(6000))
        for seed in range(5)
    ]
    kernels = [fitted.kernel for fitted in fits]
    assert all(kernel is not None for kernel in kernels[:5])
    assert kernels[5:] == [None] * 5
    stays = np.array([kernel.kernel.stay for kernel in kernels[:5]])
    assert abs(stays[:, :8].mean() - 0.825) < 0.03
    assert (stays.std(axis=0) > 0).all()  # noise
    assert {kernel.persons for kernel in kernels[:5]} == {None}  # their number would cost epsilon too


def test_few_persons_get_one_stay_probability_for_all_values():
    fits = [
        fit_on_release(table, policy(), l=3, epsilon=1.0, kernel=True, rng=np.random.default_rng(seed))
        for table in (returning(2000), records(2000))
        for seed in range(5)
    ]
    stays = np.array([fitted.kernel.kernel.stay for fitted in fits[:5]])
    assert (stays == stays[:, :1]).all()
    assert abs(stays.mean() - 0.825) < 0.03
    assert stays[:, 0].std() > 0  # noise
    assert [fitted.kernel for fitted in fits[5:]] == [None] * 5


def test_a_kernel_takes_its_part_of_epsilon_from_the_counts():
    def spread(kernel):
        fits = [
            fit_on_release(
                returning(), policy(), l=3, by=(), epsilon=1.0, kernel=kernel, rng=np.random.default_rng(seed)
            )
            for seed in range(60)
        ]
        return np.std([fitted.prior.shares[0][:8] * fitted.prior.sizes[0] for fitted in fits], axis=0).mean()

    assert spread(kernel=True) / spread(kernel=False) > 1.3  # .9 of epsilon for the counts, then .55


WARDS = Policy.from_dict(
    {"version": 1, "person": "id", "columns": COLUMNS | {"ward": "quasi"}, "privacy": {"l": 3}, "prior": {}}
)


def in_wards(n, wards, ills="abcdefgh"):
    rng = np.random.default_rng(n)
    table = records(n).append_column("ward", pa.array(rng.choice([f"w{i}" for i in range(wards)], n)))
    return table.set_column(3, "ill", pa.array(rng.choice(list(ills), n)))


def test_the_number_of_persons_limits_the_chosen_columns():
    def chosen(n):
        table, rng = in_wards(n, 16), np.random.default_rng(1)
        return set(fit_on_release(table, WARDS, l=3, epsilon=1.0, rng=rng).prior.columns)

    assert chosen(2_000) == {"sex", "age"}  # before others, although the ward would leave full strata with either
    assert chosen(20_000) == {"sex", "age", "ward"}


def test_a_prior_with_too_high_an_omission_rate_is_refused(monkeypatch):
    table = in_wards(20_000, 40, "abcdefghijklmnopqrstuvwxyz1234")

    def count_strata():
        return len(
            fit_on_release(table, WARDS, l=3, by=["ward"], epsilon=0.3, rng=np.random.default_rng(1)).prior.strata
        )

    assert count_strata() < 40  # wards that are too small are merged
    monkeypatch.setattr("reticent.engine.veil.prior.fit_on_release._min_persons", lambda past: past.min_records)
    with pytest.raises(GuaranteeError, match="omission rate would be"):
        count_strata()


def test_a_very_small_stratum_offers_what_is_frequent_everywhere():
    """Noise hides forty of 6,000 persons: their stratum must not offer a single value, which most of them do not have."""
    n, rng = 6000, np.random.default_rng(5)
    sexes = np.array(["f", "m"])[rng.integers(0, 2, n)]
    sexes[:40] = "x"
    table = records(n, 5).set_column(1, "sex", pa.array(sexes))
    prior = fit_on_release(table, policy(), l=3, by=["sex"], epsilon=1.0, rng=rng).prior
    rest = prior.shares[prior.strata.index({})]
    assert np.count_nonzero(rest) == 8
    assert rest.max() < 0.3
