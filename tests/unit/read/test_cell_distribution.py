"""How values lie in coarse cells: by the cells of the whole column, for the estimate alone."""

import numpy as np
import pyarrow as pa
import pytest

import reticent
from reticent.policy import Policy
from reticent.read.cell_distribution import fit_distribution
from reticent.read.cells import Extent
from reticent.read.where import match, parse_condition

COLUMNS = {"cost": "quasi", "age": "quasi", "day": {"role": "quasi", "hierarchy": {"dates": ["month", "year"]}}}


def visits(n=4000, seed=1):
    rng = np.random.default_rng(seed)
    days = np.datetime64("2020-01-01") + rng.integers(0, 1000, n)
    ill = rng.choice(list("abcdef"), n)
    return pa.table(
        {"cost": rng.lognormal(5, 1.2, n).round(2), "age": rng.normal(50, 15, n).astype(int), "day": days, "ill": ill}
    )


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    rules = {"version": 1, "columns": COLUMNS | {"ill": "sensitive"}, "privacy": {"k": 12, "l": 3}}
    policy = Policy.from_dict(rules | {"table": {"method": "mondrian", "sets": True}})
    folder = tmp_path_factory.mktemp("cells") / "release"
    reticent.anonymize(visits(), policy, seed=1).to_dir(folder)
    return reticent.read(folder)


@pytest.mark.parametrize("rank", [0.5, 0.75, 0.9, 0.97])
def test_a_long_tail_is_not_spread_evenly(released, rank):
    """An even spread counts nearly three times as many above the limit."""
    costs = visits()["cost"].to_numpy()
    limit = round(float(np.quantile(costs, rank)), 2)
    (answer,) = released.count(where=f"cost>={limit}").to_arrow().to_pylist()
    expected = int((costs >= limit).sum())
    assert answer["low"] <= expected <= answer["high"]
    assert abs(answer["estimate"] - expected) < 0.5 * expected


def test_the_bounds_do_not_look_at_it(released):
    cells, condition = released.to_arrow()["cost"], parse_condition("cost>=300", ["cost"])
    even, learned = match(condition, cells), match(condition, cells, None, released._classes)
    assert (even.sure == learned.sure).all()
    assert (even.perhaps == learned.perhaps).all()
    assert ((learned.share >= 0) & (learned.share <= 1)).all()
    assert (learned.share != even.share).any()


@pytest.mark.parametrize("condition", ["age<35", "age in 40..59", "day>=2022-03-01", "day<2020-02-01"])
def test_whole_numbers_and_days(released, condition):
    table = visits()
    age, day = table["age"].to_numpy(), table["day"].to_numpy()
    expected = {
        "age<35": age < 35,
        "age in 40..59": (age >= 40) & (age <= 59),
        "day>=2022-03-01": day >= np.datetime64("2022-03-01"),
        "day<2020-02-01": day < np.datetime64("2020-02-01"),
    }[condition].sum()
    (answer,) = released.count(where=condition).to_arrow().to_pylist()
    assert abs(answer["estimate"] - expected) < 100


def test_parts_of_a_cell_add_up():
    cells = [Extent(0.0, 100.0), Extent(0.0, 10.0), Extent(5.0, 5.0), Extent(60.0, 90.0, closed=False)]
    tight = [True, True, False, False]
    spread = fit_distribution(cells, np.array([20, 90, 4, 7]), np.array([1, 9, 1, 1]), tight=tight, whole=True)
    low, high = Extent(-np.inf, 10.0), Extent(10.0, np.inf, open_low=True)
    assert spread.share(cells[0], low) + spread.share(cells[0], high) == pytest.approx(1)
    assert spread.share(cells[0], low) > 0.5  # most of the column lies there
    assert spread.share(cells[0], Extent(100.0, 100.0)) >= 1 / 20  # somebody has the end
    assert spread.share(cells[3], low) is None
