"""Priors from the very records that they veil: told levels, noise everywhere, nothing measured."""

import numpy as np
import pyarrow as pa
import pytest

from reticent.engine.veil.house import House
from reticent.engine.veil.prior.file import write_fit, write_prior
from reticent.engine.veil.prior.fit import fit_released
from reticent.engine.veil.prior.prior import Prior
from reticent.engine.veil.prior.warmup import fit_warmup
from reticent.engine.veil.release import guarantee
from reticent.errors import PolicyError
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


def test_a_warmup_gives_a_house_that_says_what_it_cost(tmp_path):
    rules = policy(tmp_path, file="prior.csv", warmup=3000, by=["sex", "age"], epsilon=2)
    write_fit(fit_warmup(rules, records(), np.random.default_rng(1)), tmp_path / "prior.csv")
    house = House.of(rules, "stream")
    assert house.by == ("sex", "age")
    assert {cells[1] for cells in house.strata} == {"[0, 50)", "[50, 100)", "*"}
    assert house.epsilon == 2
    words = " ".join(guarantee(house).not_covered)
    assert "epsilon = 2" in words
    assert "released persons themselves" in words
    assert "nobody measured" in words
    _, rows = house.levels.publish(records())
    assert len(np.unique(rows)) == 4


def test_every_count_has_noise_and_no_stratum_is_grown():
    priors = [
        fit_released(records(), policy(), "ill", l=3, epsilon=1.0, rng=np.random.default_rng(seed)).prior
        for seed in range(8)
    ]
    assert {len(prior.strata) for prior in priors} == {1}
    shares = np.array([prior.shares[0] for prior in priors])
    assert (shares.std(axis=0)[:8] > 0).all()


def test_a_person_counts_once():
    twice = pa.concat_tables([records(), records()])
    found = fit_released(twice, policy(), "ill", l=3, epsilon=1.0, rng=np.random.default_rng(1))
    assert found.persons == 3000


def test_the_file_is_read_back_with_its_report(tmp_path):
    found = fit_released(records(), policy(), "ill", l=3, by=["sex"], epsilon=0.5, rng=np.random.default_rng(1))
    write_fit(found, tmp_path / "prior.csv")
    rules = policy(tmp_path, file="prior.csv")
    assert House.of(rules, "table").epsilon == pytest.approx(0.5)
    assert read_strata(tmp_path / "prior.csv", "prior").by == ("sex",)


def test_a_row_that_noise_left_empty_still_offers_its_values(tmp_path):
    shares = np.array([[0.5, 0.5], [1.0, 0.0]])
    prior = Prior(("a", "b"), ({"sex": "f"}, {}), shares, np.array([0.0, 10.0]))
    write_prior(prior, tmp_path / "prior.csv")
    strata = read_strata(tmp_path / "prior.csv", "prior").strata
    assert strata["f",] == {"a": 0.5, "b": 0.5}


def test_a_prior_that_is_still_waited_for_is_missed_with_the_way_to_it(tmp_path):
    with pytest.raises(PolicyError, match="is not there yet"):
        House.of(policy(tmp_path, file="prior.csv", warmup=1000), "stream")
    with pytest.raises(PolicyError, match="write file beside warmup"):
        policy(tmp_path, warmup=1000)
