from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from reticent.datasets import census
from reticent.errors import PolicyError

SIZES = {
    "evolving": (2, 81, 4, 6, 139, 219, 24, 479),
    "m-distinct": (100, 2, 6, 17, 50),
    "ipums": (2, 13, 9, 60, 10, 17, 200, 53, 2),
}
STRICTEST = {"evolving": 30, "m-distinct": 10, "ipums": 10}


@pytest.fixture(scope="module", params=SIZES)
def layout(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def tables() -> dict[str, pa.Table]:
    return {name: census.generate(60_000, seed=2, layout=name) for name in SIZES}


def shares(column: pa.ChunkedArray) -> np.ndarray:
    return np.sort(pc.value_counts(column).field("counts").to_numpy())[::-1] / len(column)


def test_domain_sizes_are_those_of_the_paper(tables, layout):
    table = tables[layout]
    assert tuple(census.LAYOUTS[layout].sizes.values()) == SIZES[layout]
    assert tuple(len(pc.unique(table[name])) for name in table.column_names[1:]) == SIZES[layout]


def test_one_block_is_enough_for_every_value(layout):
    table = census.generate(16_384, seed=9, layout=layout)
    assert tuple(len(pc.unique(table[name])) for name in table.column_names[1:]) == SIZES[layout]


def test_no_occupation_is_too_frequent_and_the_tail_is_long(tables, layout):
    occupation = shares(tables[layout]["occupation"])
    assert occupation[0] < 0.8 / STRICTEST[layout]
    assert occupation[0] > 5 * occupation[-1]


def test_race_and_birthplace_are_skewed(tables):
    assert shares(tables["evolving"]["race"])[0] > 0.3
    assert shares(tables["evolving"]["birthplace"])[:20].sum() > 0.4


def test_the_wage_class_follows_work_and_schooling(tables):
    table = tables["ipums"]
    assert 0.2 < pc.mean(pc.equal(table["wage"], "high")).as_py() < 0.45
    for name in ("education", "weeks_worked", "sex"):
        assert association(table, name, "wage") > 50


@pytest.mark.parametrize("layout", ["evolving", "m-distinct"])
def test_attributes_depend_on_one_another(tables, layout):
    table = tables[layout]
    age = table["age"].to_numpy()
    widowed = pc.equal(table["marital_status"], "widowed").to_numpy(zero_copy_only=False)
    single = pc.equal(table["marital_status"], "never married").to_numpy(zero_copy_only=False)
    assert widowed[age >= 75].mean() > 20 * widowed[age < 30].mean()
    assert single[age < 20].mean() > 10 * single[age >= 75].mean()
    assert association(table, "education", "occupation") > 1.2
    assert association(table, "gender", "occupation") > 3


def test_race_follows_birthplace(tables):
    assert association(tables["evolving"], "birthplace", "race") > 2


def association(table: pa.Table, left: str, right: str) -> float:
    """Chi-squared over its degrees of freedom, about 1 for independent columns."""
    codes = [
        np.unique(table[name].to_numpy(zero_copy_only=False).astype(str), return_inverse=True)[1]
        for name in (left, right)
    ]
    seen = np.zeros((codes[0].max() + 1, codes[1].max() + 1))
    np.add.at(seen, tuple(codes), 1)
    expected = np.outer(seen.sum(1), seen.sum(0)) / seen.sum()
    return float(((seen - expected) ** 2 / expected).sum() / ((seen.shape[0] - 1) * (seen.shape[1] - 1)))


def test_unknown_layout_is_refused():
    with pytest.raises(PolicyError, match="evolving"):
        census.generate(1, layout="other")
