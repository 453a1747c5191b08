"""Strata: the tree splits where that gains on held-out persons, and nowhere else."""

import numpy as np
import pyarrow as pa
import pytest

from reticent.engine.veil.prior.fields import published_fields
from reticent.engine.veil.prior.prior import Prior
from reticent.engine.veil.prior.strata import Growth, Split, fixed_tree, grow, shrink_shares, strata
from reticent.policy import Policy

POLICY = Policy.from_dict(
    {
        "version": 1,
        "columns": {
            "age": {"role": "quasi", "hierarchy": {"intervals": [10, 50]}},
            "sex": "quasi",
            "hair": "quasi",
            "ill": "sensitive",
        },
    }
)
SIZE = 6


def world(n=12_000, seed=0):
    """The value depends on sex, and among women on being below 50; hair does not matter."""
    rng = np.random.default_rng(seed)
    age, sex, hair = rng.integers(0, 100, n), rng.choice(["f", "m"], n), rng.choice(list("abcdefgh"), n)
    odds = np.array([[5, 1, 1, 1, 1, 1], [1, 5, 1, 1, 1, 1], [1, 1, 1, 1, 1, 5]]) / 10
    kind = np.where(sex == "m", 0, np.where(age < 50, 1, 2))
    values = (rng.random(n)[:, None] > odds.cumsum(axis=1)[kind]).sum(axis=1)
    return pa.table({"age": age, "sex": sex, "hair": hair}), values, kind


def grown(table, values, *, least=200, names=("age", "sex", "hair"), **limits):
    fields = published_fields(table, POLICY, names)
    held_out = np.arange(len(values)) % 3 == 0
    tree = grow(list(fields.values()), values, SIZE, held_out, Growth(least, **limits))
    return tree, Prior(tuple("abcdef"), strata(tree), np.empty((0, SIZE)), np.empty(0)), fields


def test_it_splits_by_the_fields_that_matter_only():
    table, values, kind = world()
    _, prior, fields = grown(table, values)
    rows = prior.assign_strata(fields, len(values))
    assert len(prior.strata) in {3, 4, 5}
    assert prior.columns == ("sex", "age")
    assert len(set(zip(rows.tolist(), kind.tolist(), strict=True))) == len(prior.strata)


def test_independent_fields_give_one_stratum():
    table, values, _ = world()
    tree, prior, _ = grown(table, np.random.default_rng(9).permutation(values))
    assert tree is None
    assert prior.strata == ({},)


def test_it_keeps_to_its_limits():
    table, values, _ = world()
    assert len(grown(table, values, max_strata=2)[1].strata) == 2
    _, prior, fields = grown(table, values, least=2_500)
    sizes = np.bincount(prior.assign_strata(fields, len(values)))
    assert sizes.min() >= 2_500


def test_noise_stops_it():
    table, values, _ = world(n=900)
    assert len(grown(table, values, least=20)[1].strata) >= 3
    assert len(grown(table, values, least=20, noise=2 * 200.0**2)[1].strata) == 1


def test_strata_that_offer_too_few_values_are_not_split_off():
    table, values, _ = world(n=900)
    assert len(grown(table, values, least=20, min_count=60.0)[1].strata) < len(grown(table, values, least=20)[1].strata)


def test_the_first_stratum_that_matches_counts():
    tree = Split("sex", "f", Split("age", "[0, 50)", Split("age", "[0, 10)", None, None), None), None)
    rows = strata(tree)
    assert rows == ({"sex": "f", "age": "[0, 10)"}, {"sex": "f", "age": "[0, 50)"}, {"sex": "f"}, {})
    table = pa.table({"age": [5, 30, 70, 5], "sex": ["f", "f", "f", "m"], "hair": ["a"] * 4})
    prior = Prior(tuple("abcdef"), rows, np.empty((0, 6)), np.empty(0))
    assert prior.assign_strata(published_fields(table, POLICY, ("age", "sex")), 4).tolist() == [0, 1, 2, 3]


def test_shares_are_drawn_toward_the_stratum_above():
    tree = Split("sex", "f", None, None)
    counts = np.array([[90.0, 10.0], [200.0, 700.0]])
    shares = shrink_shares(tree, counts, shrinkage=100)
    whole = np.array([0.29, 0.71])
    assert shares[0] == pytest.approx((counts[0] + 100 * whole) / 200)
    assert shares[1] == pytest.approx((counts[1] + 100 * whole) / 1_000)
    assert shrink_shares(tree, counts, shrinkage=0)[0] == pytest.approx([0.9, 0.1])


def test_negative_counts_count_as_zero():
    shares = shrink_shares(None, np.array([[30.0, -4.0, 10.0]]))
    assert shares[0] == pytest.approx([0.75, 0, 0.25])


def test_fixed_strata_merge_small_cells():
    table = pa.table({"age": [5, 30, 70] * 4, "sex": (["f"] * 3 + ["m"] * 3) * 2, "hair": ["a"] * 12})
    fields = published_fields(table, POLICY, ("sex", "hair"))
    sizes = np.array([[90, 5, 40, 25], [2, 1, 0, 0]])
    hairy = published_fields(pa.table({"hair": list("abcd")}), POLICY, ("hair",))["hair"]
    rows = strata(fixed_tree([fields["sex"], hairy], sizes, 20))
    # Five persons with hair b are too few for a stratum: those with d join them. Three men in all are too few as well.
    assert rows == ({"sex": "f", "hair": "a"}, {"sex": "f", "hair": "c"}, {"sex": "f"}, {})
    assert strata(fixed_tree([hairy], np.array([90, 5, 40, 25]), 70)) == ({"hair": "a"}, {})
    assert strata(fixed_tree([hairy], np.array([40, 5, 40, 25]), 75)) == ({},)
