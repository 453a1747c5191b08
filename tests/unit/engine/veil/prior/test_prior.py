"""Prior: every record has a stratum, and the segments of a stratum fill the cumulative line exactly."""

import numpy as np
import pyarrow as pa
import pytest

from reticent.engine.veil.prior.fields import published_fields
from reticent.engine.veil.prior.prior import SLOT_LENGTH, Prior, nudge_shares
from reticent.errors import DataError
from reticent.policy import Policy

POLICY = Policy.from_dict(
    {"version": 1, "columns": {"age": {"role": "quasi", "hierarchy": {"intervals": [10, 50]}}, "ill": "sensitive"}}
)


def prior_of(shares, strata=None):
    shares = np.array(shares)
    return Prior(
        tuple(map(str, range(shares.shape[1]))), tuple(strata or [{}] * len(shares)), shares, np.ones(len(shares))
    )


@pytest.mark.parametrize("l", [1, 3, 10, 50])
def test_segments_fill_the_cumulative_line(l):
    rng = np.random.default_rng(l)
    shares = rng.dirichlet(np.full(1_700, 0.05), size=20)
    shares[shares < 1e-9] = 0
    shares[0, 3] = 1e-14
    shares /= shares.sum(axis=1, keepdims=True)
    segments = prior_of(shares).segments(l)
    assert segments.dtype == np.uint64
    assert all(sum(stratum) == l * SLOT_LENGTH for stratum in segments.tolist())
    assert ((segments > 0) == (shares > 0)).all()
    assert np.abs(segments / (l * SLOT_LENGTH) - shares).max() < 1e-8


def test_a_label_matches_on_any_level():
    fields = published_fields(pa.table({"age": [3, 17, 80, None]}), POLICY, ("age",))
    strata = prior_of(np.eye(4), [{"age": "[10, 20)"}, {"age": "[0, 50)"}, {"age": "(missing)"}, {}]).assign_strata(
        fields, 4
    )
    assert strata.tolist() == [1, 0, 3, 2]


def test_records_without_a_stratum_are_counted():
    fields = published_fields(pa.table({"age": [3, 17, 80]}), POLICY, ("age",))
    with pytest.raises(DataError, match="1 of 3 records belong to no stratum"):
        prior_of(np.eye(1), [{"age": "[0, 50)"}]).assign_strata(fields, 3)


@pytest.mark.parametrize("seed", range(20))
def test_no_value_has_a_whole_number_of_copies(seed):
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(25, 0.4))
    shares[:2] = [0.25, 0.125]
    shares[2:] *= 0.625 / shares[2:].sum()
    shares[5] = 0
    shares /= shares.sum()
    before = shares.copy()
    copies = nudge_shares(shares, 8) * 8
    frequent = np.round(copies) >= 1
    assert np.abs(copies - np.round(copies))[frequent].min() > 0.09
    assert copies.sum() == pytest.approx(8)
    assert ((copies > 0) == (shares > 0)).all()
    assert np.abs(copies / 8 - shares).max() < 0.05
    assert (shares == before).all()


def test_a_stratum_of_one_value_is_unchanged():
    assert nudge_shares(np.array([0.0, 1.0]), 4).tolist() == [0, 1]
