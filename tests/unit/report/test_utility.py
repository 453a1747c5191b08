"""Utility figures against hand computation: sets and ranges are losses, association is the original's, the target is chosen."""

import numpy as np
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

from reticent.api import anonymize
from reticent.errors import PolicyError
from reticent.policy import Policy
from reticent.release import Guarantee, RecordCounts, Release
from reticent.report.utility import cramer, utility
from reticent.verify.labels.coverage import coverage_matrix
from reticent.verify.published import read_release, text_table

COLUMNS = {"town": "quasi", "age": {"role": "quasi", "hierarchy": {"intervals": [10]}}, "ill": "sensitive"}
POLICY = Policy.from_dict({"version": 1, "columns": COLUMNS, "privacy": {"k": 2}})


def by_hand(rows, rows_in=None):
    columns = dict(zip(("town", "age", "ill"), map(list, zip(*rows, strict=True)), strict=True))
    counts = RecordCounts(rows_in or len(rows), len(rows), 0, (rows_in or len(rows)) - len(rows))
    return Release(
        "table", "generalized", "by hand", {"data": pa.table(columns)}, Guarantee({}, "nobody"), counts, "none"
    )


ORIGINAL = pa.table(
    {
        "town": ["oslo", "rome", "bonn", "lima"],
        "age": [21, 22, 33, 34],
        "ill": ["flu", "flu", "gout", "gout"],
    }
)


def figures(release, original=ORIGINAL, policy=POLICY, **more):
    shown, table = read_release(release, ""), text_table(original)
    return utility([shown], table, policy, np.random.default_rng(1), **more)


def test_a_set_of_two_of_four_loses_a_third_and_is_counted_as_coarser():
    """Leaves covered: 2, 2, 1, 1 of 4. Loss = (6/4 - 4/4) / (4 - 4/4) = 1/6; two cells of four are coarser."""
    rows = [
        ("{oslo, rome}", "21", "flu"),
        ("{oslo, rome}", "22", "flu"),
        ("bonn", "33", "gout"),
        ("lima", "34", "gout"),
    ]
    town = figures(by_hand(rows))["attributes"]["town"]
    assert town["loss"] == pytest.approx(1 / 6)
    assert town["coarser"] == 0.5
    assert figures(by_hand(rows))["attributes"]["age"]["loss"] == 0


def test_a_range_loses_as_many_values_as_it_covers():
    """[21, 33] covers three ages of four: (3/4 + 3/4 + 3/4 + 1/4 - 1) / 3 = 1/2."""
    rows = [(town, "[21, 33]", "flu") for town in ("oslo", "rome", "bonn")] + [("lima", "34", "gout")]
    age = figures(by_hand(rows))["attributes"]["age"]
    assert age["loss"] == pytest.approx(1 / 2)
    assert age["coarser"] == 0.75


def test_suppressed_records_are_lost():
    rows = [("oslo", "21", "flu"), ("rome", "22", "flu")]
    assert figures(by_hand(rows, 4))["attributes"]["town"]["loss"] == pytest.approx((2 / 4 + 2 - 1) / 3)


def test_a_value_with_a_comma_is_found_in_a_set():
    labels = ["{bonn, rome, old}", "{oslo, rome}", "rome, old"]
    assert coverage_matrix(["rome, old"], labels, POLICY, "town").toarray()[0].tolist() == [True, False, True]


def test_association_before_is_that_of_the_original_even_where_the_column_is_suppressed():
    rng = np.random.default_rng(2)
    town = rng.choice(["oslo", "rome"], 400)
    ill = np.where(rng.random(400) < 0.85, np.where(town == "oslo", "flu", "gout"), "cold")
    original = pa.table({"town": town, "age": rng.integers(20, 60, 400), "ill": ill})
    suppressed = by_hand([("*", "*", one) for one in ill])
    found = figures(suppressed, original)["attributes"]["town"]["association"]
    table = np.array([[((town == t) & (ill == i)).sum() for i in ("flu", "gout", "cold")] for t in ("oslo", "rome")])
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / 400
    phi = ((table - expected) ** 2 / expected).sum() / 400 - 2 / 399
    assert found["before"] == pytest.approx(np.sqrt(phi / (2 - 1 / 399 - 1)))
    assert found["before"] > 0.8
    assert found["after"] == 0


def test_independence_is_no_association():
    assert cramer(csr_array(np.outer([30.0, 70.0], [40.0, 60.0]))) == 0


def people(n=600):
    rng = np.random.default_rng(3)
    town = rng.choice(["oslo", "rome", "bonn", "lima", "kyiv", "bern"], n)
    ill = np.where(rng.random(n) < 0.7, np.where(np.isin(town, ["oslo", "rome"]), "flu", "gout"), "cold")
    return pa.table({"town": town, "age": rng.integers(20, 60, n), "ill": ill})


def test_mondrian_is_not_said_to_have_lost_nothing():
    table = people()
    release = anonymize(table, Policy.from_dict(POLICY.to_dict() | {"privacy": {"k": 60}}), method="mondrian", seed=1)
    shown = release.tables["data"]
    coarse = np.mean([not town.isalpha() for town in shown["town"].to_pylist()])
    town = figures(release, table)["attributes"]["town"]
    assert coarse > 0.2
    assert town["coarser"] == pytest.approx(coarse)
    assert town["loss"] > coarse / 5  # a set holds at least two of six values


def test_the_classifiers_target_is_chosen():
    table = people()
    plain = by_hand(
        [
            (town, str(age), ill)
            for town, age, ill in zip(*(table[n].to_pylist() for n in table.column_names), strict=True)
        ]
    )
    usual, chosen = figures(plain, table)["classifier"], figures(plain, table, target="town")["classifier"]
    assert usual["target"] == "the sensitive value"
    assert usual["release_accuracy"] > 0.6
    assert chosen["target"] == "town"
    assert chosen["constant_accuracy"] < 0.3
    with pytest.raises(PolicyError, match="cannot predict"):
        figures(plain, table, target="height")


def test_distributions_tell_shares_and_name_what_was_published_only():
    rows = [("{oslo, rome}", "21", "flu")] * 2 + [("bonn", "33", "gout"), ("*", "34", "gout")]
    town = figures(by_hand(rows))["attributes"]["town"]["distribution"]
    assert town == [
        {"name": "bonn", "before": 0.25, "after": pytest.approx((1 + 1 / 4) / 4)},
        {"name": "all others", "before": 0.75, "after": pytest.approx(1 - (1 + 1 / 4) / 4)},
    ]


def test_numbers_fall_into_even_bins():
    many = pa.table({"town": ["oslo"] * 100, "age": [20 + i % 50 for i in range(100)], "ill": ["flu", "gout"] * 50})
    release = anonymize(many, POLICY, seed=1, method="local")
    bins = figures(release, many)["attributes"]["age"]["distribution"]
    assert len(bins) > 4
    assert sum(entry["before"] for entry in bins) == pytest.approx(1)
    assert sum(entry["after"] for entry in bins) == pytest.approx(1)
    assert [entry["name"] for entry in bins][::7] == ["lowest", "highest"]
