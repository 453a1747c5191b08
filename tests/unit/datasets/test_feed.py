from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from reticent.datasets import feed
from reticent.datasets.draw import BLOCK


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return feed.generate(3 * BLOCK, seed=4)


def test_times_rise_at_a_realistic_rate(table):
    seconds = table["admitted"].to_numpy().astype("datetime64[s]").astype(np.int64)
    assert (np.diff(seconds) >= 0).all()
    days = (seconds[-1] - seconds[0]) / 86_400
    assert 1_000 < len(table) / days < 1_400
    hours = np.bincount(seconds // 3_600 % 24, minlength=24)
    assert hours[9:12].mean() > 3 * hours[1:4].mean()


def test_persons_return_and_stay_themselves(table):
    persons = table.group_by("patient_id").aggregate(
        [("sex", "count_distinct"), ("postcode", "count_distinct"), ("diagnosis", "count_distinct"), ("age", "count")]
    )
    visits = persons["age_count"].to_numpy()
    assert len(persons) == len(table) * 3 // 4
    assert visits.max() >= 3
    assert pc.max(persons["sex_count_distinct"]).as_py() == 1
    assert pc.max(persons["postcode_count_distinct"]).as_py() == 1
    returning = visits > 1
    same = persons["diagnosis_count_distinct"].to_numpy()[returning] == 1
    assert 0.2 < same.mean() < 0.6


def test_short_feeds_have_returning_persons_too():
    ids = feed.generate(400, seed=1)["patient_id"]
    assert len(pc.unique(ids)) < 360


def test_l_ten_can_be_met(table):
    counts = pc.value_counts(table["diagnosis"]).field("counts").to_numpy()
    assert 30 <= len(feed.VALUES) <= 100
    assert len(set(feed.VALUES)) == len(feed.VALUES) == len(counts)
    assert counts.max() / len(table) < 1 / 15


def test_diagnosis_depends_on_age_and_sex(table):
    def rows(name: str) -> pa.Table:
        return table.filter(pc.equal(table["diagnosis"], name))

    assert set(rows("childbirth")["sex"].to_pylist()) == {"female"}
    assert set(rows("prostate cancer")["sex"].to_pylist()) == {"male"}
    assert pc.max(rows("bronchiolitis")["age"]).as_py() < 15
    assert pc.min(rows("dementia")["age"]).as_py() >= 50


def test_prior_knows_every_value_and_looks_like_the_feed(table):
    prior = feed.prior(4)
    assert tuple(prior["value"].to_pylist()) == feed.VALUES
    assert prior.equals(feed.prior(4))
    assert not prior.equals(feed.prior(5))
    past = prior["count"].to_numpy() / pc.sum(prior["count"]).as_py()
    now = dict(zip(*[pc.value_counts(table["diagnosis"]).field(i).to_pylist() for i in range(2)], strict=True))
    assert np.allclose(past, [now[value] / len(table) for value in feed.VALUES], atol=0.01)
