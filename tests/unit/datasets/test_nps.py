from __future__ import annotations

import numpy as np
import pyarrow.compute as pc
import pytest

from reticent.datasets import nps

SIZES = {"age": 107, "length_of_stay": 53, "sex": 2, "location": 16, "admission_route": 6, "disease": 4_848}


@pytest.fixture(scope="module")
def day():
    return nps.generate(seed=1)


def test_the_domains_are_those_of_the_paper(day):
    assert day.num_rows == 117_047
    assert {name: len(pc.unique(day[name])) for name in day.column_names[1:]} == SIZES
    assert len(pc.unique(day["record_id"])) == day.num_rows


def test_the_tail_is_long_and_ten_candidates_are_possible(day):
    counts = np.sort(pc.value_counts(day["disease"]).field("counts").to_numpy())[::-1]
    assert counts[0] / day.num_rows < 1 / 20
    assert counts[:100].sum() / day.num_rows > 0.35
    assert counts[2_000:].sum() / day.num_rows > 0.05


def test_the_prior_is_the_law_of_the_day(day):
    past = nps.prior()
    law = dict(zip(past["value"].to_pylist(), past["count"].to_pylist(), strict=True))
    top = sorted(law, key=law.__getitem__)[-20:]
    seen = {row["values"]: row["counts"] for row in pc.value_counts(day["disease"]).to_pylist()}
    expected = np.array([law[code] for code in top]) / sum(law.values())
    np.testing.assert_allclose([seen[code] / day.num_rows for code in top], expected, rtol=0.25)
