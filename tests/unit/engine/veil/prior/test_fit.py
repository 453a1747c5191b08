"""fit: from a table of the past to a prior that an informed reader gains little by."""

import numpy as np
import pyarrow as pa
import pytest

from reticent.datasets import hospital
from reticent.engine.veil.prior.fields import published
from reticent.engine.veil.prior.file import write_prior
from reticent.engine.veil.prior.fit import fit
from reticent.engine.veil.prior.report import report
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


def test_the_reader_gains_little(prior):
    assert prior.measures.ratio < 1.3
    assert prior.measures.eta < 0.05
    assert "ward" in prior.prior.columns
    assert prior.measures.tells[0].column == "ward"


def test_without_the_telling_column_she_gains_much(past, prior):
    blind = fitted(past, by=["sex"])
    assert blind.prior.columns == ("sex",)
    assert blind.measures.after.right > 1.5 * prior.measures.after.right


def test_shares_are_those_of_the_past(past, prior):
    assert prior.prior.shares.sum(axis=1) == pytest.approx(np.ones(len(prior.prior.strata)))
    rows = prior.prior.rows(published(past, POLICY, prior.prior.columns), past.num_rows)
    values = prior.domain.codes(past["diagnosis"], POLICY)
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


def test_noise_is_in_the_counts(past):
    table = fitted(past, by=["ward:0"], epsilon=2.0)
    public = fitted(past, by=["ward:0"])
    assert table.epsilon == 2.0
    assert not np.allclose(table.prior.sizes, np.round(public.prior.sizes[0]))
    assert set(table.prior.columns) == {"ward"}


def test_too_much_noise_is_refused(past):
    with pytest.raises(GuaranteeError, match="of the values would not be offered"):
        fitted(past, epsilon=0.05)


def test_too_little_past_is_refused(past):
    with pytest.raises(DataError, match="has 150 persons; a prior for l = 5 needs at least 200"):
        fitted(past.slice(0, 150))


@pytest.mark.parametrize("by", [["patient_id"], ["shoe"], ["ward:3"], ["length_of_stay:x"]])
def test_by_names_published_columns_and_their_levels(past, by):
    with pytest.raises(PolicyError, match="by: "):
        fitted(past, by=by)


def test_a_level_that_was_told_is_kept_to(past):
    told = fitted(past, by=["length_of_stay:2", "sex:0"])
    labels = {row.get("length_of_stay") for row in told.prior.strata}
    assert labels <= {"<7", "[7, 28)", "28+", None}
    assert len(labels) > 2
    assert told.coarser is None


def test_the_file_says_the_same(tmp_path, prior):
    write_prior(prior.prior, tmp_path / "prior.csv")
    again = read_strata(tmp_path / "prior.csv", "prior")
    assert again.by == prior.prior.columns
    for cells, shares in zip(again.strata.values(), prior.prior.shares, strict=True):
        counts = np.array([cells.get(label, 0) for label in prior.prior.labels])
        assert np.abs(counts / counts.sum() - shares).max() < 1e-3


def test_the_report_says_what_matters(prior):
    text = report(prior)
    for word in ("held-out persons", "without the release", "Kappa", "Not offered", "Largest useful l", "'ward' alone"):
        assert word in text
    assert "'ward' were left out" in text
    assert "max" not in text
