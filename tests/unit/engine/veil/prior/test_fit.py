"""fit: from a table of the past to a prior over which an informed attacker gains little."""

import numpy as np
import pyarrow as pa
import pytest

from reticent.datasets import hospital
from reticent.engine.veil.prior.fields import published_fields
from reticent.engine.veil.prior.fit import fit
from reticent.engine.veil.prior.fitted_prior import report, write_prior
from reticent.errors import DataError, GuaranteeError, PolicyError
from reticent.policy import Policy
from reticent.policy.prior import read_strata

COLUMNS = {
    "patient_id": "identifier",
    "sex": "quasi",
    "ward": "quasi",
    "admission_route": "quasi",
    "length_of_stay": {"role": "quasi", "hierarchy": {"intervals": [[1, 3, 7, 14, 28], [7, 28]]}},
    "diagnosis": {"role": "sensitive", "hierarchy": {"icd10": True}},
}
POLICY = Policy.from_dict({"version": 1, "person": "patient_id", "columns": COLUMNS})


@pytest.fixture(scope="module")
def past():
    return hospital.generate(12_000, 3).select(list(COLUMNS))


def fitted(table, *, seed=0, **options):
    return fit(table, POLICY, "diagnosis", **({"l": 5, "epsilon": None} | options), rng=np.random.default_rng(seed))


@pytest.fixture(scope="module")
def prior(past):
    return fitted(past)


def test_the_attacker_gains_little(prior):
    assert prior.measures.ratio < 1.3
    assert prior.measures.omission_rate < 0.05
    assert "ward" in prior.prior.columns
    assert prior.measures.disclosive_columns[0].column == "ward"


def test_without_the_disclosive_column_the_attacker_gains_much(past, prior):
    blind = fitted(past, by=["sex"])
    assert blind.prior.columns == ("sex",)
    assert blind.measures.after.right > 1.5 * prior.measures.after.right


def test_shares_are_those_of_the_past(past, prior):
    assert prior.prior.shares.sum(axis=1) == pytest.approx(np.ones(len(prior.prior.strata)))
    rows = prior.prior.assign_strata(published_fields(past, POLICY, prior.prior.columns), past.num_rows)
    values = prior.domain.encode(past["diagnosis"])
    row = int(np.bincount(rows).argmax())
    counted = np.bincount(values[rows == row], minlength=len(prior.domain)) / (rows == row).sum()
    assert np.abs(counted - prior.prior.shares[row]).max() < 0.02
    assert prior.prior.sizes.sum() == past.num_rows


def test_the_same_generator_gives_the_same_prior(past, prior):
    again = fitted(past)
    assert again.prior.strata == prior.prior.strata
    assert (again.prior.shares == prior.prior.shares).all()
    assert report(again) == report(prior)


def test_a_person_counts_once(past, prior):
    twice = pa.concat_tables([past, past, past])
    again = fitted(twice)
    assert again.persons == prior.persons == past.num_rows
    assert (again.prior.shares == prior.prior.shares).all()


def small_past(n=2_500, few=25):
    rng = np.random.default_rng(8)
    sex = np.array(["f", "m"])[rng.integers(2, size=n)].astype(object)
    sex[:few] = "x"
    return pa.table({"sex": sex.tolist(), "ill": rng.choice(list("abcdefgh"), n).tolist()})


SMALL = Policy.from_dict({"version": 1, "columns": {"sex": "quasi", "ill": "sensitive"}})


def small_fit(seed, epsilon, table=None):
    past = small_past() if table is None else table
    return fit(past, SMALL, "ill", l=5, by=["sex:0"], epsilon=epsilon, rng=np.random.default_rng(seed)).prior


def test_noise_is_in_every_count():
    """Scale 2.5 at epsilon 1: shares of a stratum of 1,200 move by about 3.5 / 1,200, by other amounts with every seed."""
    priors = [small_fit(seed, 1.0) for seed in range(12)]
    shares = np.array([prior.shares[prior.strata.index({"sex": "f"})] for prior in priors])
    exact = [small_fit(seed, None) for seed in range(2)]
    public = np.array([prior.shares[prior.strata.index({"sex": "f"})] for prior in exact])
    assert (public[0] == public[1]).all()
    moved = (shares - public[0])[:, :8]
    assert (np.abs(moved) > 0).mean() > 0.9
    assert 0.5 < moved.std() * 1_200 / (np.sqrt(2) * 2.5) < 1.6


def test_noise_decides_about_cells_at_the_limit():
    """A cell of exactly as many persons as a stratum needs becomes a stratum with some seeds and not with others."""
    rows = [len(small_fit(seed, 1.0).strata) for seed in range(12)]
    assert len(set(rows)) > 1
    assert {len(small_fit(seed, None).strata) for seed in range(3)} == {4}


def test_too_much_noise_is_refused(past):
    with pytest.raises(GuaranteeError, match="too few to distinguish two sensitive values"):
        fitted(past, epsilon=0.05)


def test_too_little_past_is_refused(past):
    with pytest.raises(DataError, match="has 150 persons; a prior for l = 5 needs at least 200"):
        fitted(past.slice(0, 150))


@pytest.mark.parametrize("by", [["patient_id"], ["shoe"], ["ward:3"], ["length_of_stay:x"]])
def test_by_names_published_columns_and_their_levels(past, by):
    with pytest.raises(PolicyError, match="by: "):
        fitted(past, by=by)


def test_a_given_level_is_kept(past):
    told = fitted(past, by=["length_of_stay:2", "sex:0"])
    labels = {row.get("length_of_stay") for row in told.prior.strata}
    assert labels <= {"<7", "[7, 28)", "28+", None}
    assert len(labels) > 2
    assert told.coarser is None


def test_the_file_says_the_same(tmp_path, prior):
    write_prior(prior.prior, tmp_path / "prior.csv")
    again = read_strata(tmp_path / "prior.csv")
    assert again.by == prior.prior.columns
    cells = [tuple(row.get(name, "*") for name in again.by) for row in prior.prior.strata]
    assert list(again.strata) == cells
    for counts, shares in zip(again.strata.values(), prior.prior.shares, strict=True):
        total = sum(counts.values())
        assert [counts.get(label, 0) / total for label in prior.prior.labels] == pytest.approx(shares, abs=1e-3)


def test_the_report_says_what_matters(prior):
    text = report(prior)
    for word in (
        "held-out persons",
        "without the release",
        "Odds ratio",
        "Omission rate",
        "Largest useful l",
        "'ward' alone",
    ):
        assert word in text
    assert "'ward' were dropped" in text
    assert "max" not in text
