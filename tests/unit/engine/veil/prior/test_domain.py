"""The domain: rare codes go to their parent, nothing is lost, every value has one place."""

import numpy as np
import pyarrow as pa
import pytest

from reticent.engine.veil.domain import OTHER, OUTSIDE, Domain
from reticent.engine.veil.prior.fields import choose_domain
from reticent.errors import DataError
from reticent.policy import Policy


def policy_of(hierarchy=None):
    column = {"role": "sensitive"} | ({"hierarchy": hierarchy} if hierarchy else {})
    return Policy.from_dict({"version": 1, "columns": {"ill": column}})


ICD = policy_of({"icd10": True})
PAST = {"E11.0": 90, "E11.1": 4, "E11.2": 7, "E10": 3, "E78": 2, "J18": 60, "J12": 5, "C50": 1}


def domain_of(counts, policy=ICD, least=10):
    return choose_domain(pa.array(list(counts)), np.array(list(counts.values())), policy, "ill", least=least)


def test_rare_codes_are_counted_under_their_parent():
    assert domain_of(PAST).labels == ("E11, other", "E11.0", "J18", "other")


def test_the_rest_goes_up_until_it_is_frequent():
    assert domain_of(PAST | {"E78": 8}).labels == ("E11, other", "E11.0", "IV, other", "J18", "other")


def test_a_node_without_frequent_children_is_a_value():
    assert domain_of({"E11.0": 6, "E11.1": 7, "J18": 50}).labels == ("E11", "J18", "other")


def test_every_value_has_a_place_new_ones_too():
    ill = domain_of(PAST)
    codes = ill.encode(pa.array(["E11.0", "E11.9", "E10", "J18", "J45", None, "E11.0"]))
    assert [ill.labels[code] for code in codes] == [
        "E11.0",
        "E11, other",
        OTHER,
        "J18",
        OTHER,
        OTHER,
        "E11.0",
    ]


def test_counts_of_the_domain_are_those_of_the_past():
    ill = domain_of(PAST)
    column = pa.array([code for code, count in PAST.items() for _ in range(count)])
    counts = dict(zip(ill.labels, np.bincount(ill.encode(column), minlength=len(ill)).tolist(), strict=True))
    assert counts == {"E11, other": 11, "E11.0": 90, "J18": 60, "other": 11}


def test_missing_is_a_value_where_it_is_frequent():
    values, counts = pa.array(["J18", None, "E10"]), np.array([40, 30, 2])
    ill = choose_domain(values, counts, ICD, "ill", least=10)
    assert ill.labels == ("(missing)", "J18", "other")
    assert ill.encode(values).tolist() == [1, 0, 2]


def test_without_a_hierarchy_rare_values_are_other():
    ill = domain_of({"flu": 30, "plague": 1}, policy_of())
    assert ill.labels == ("flu", "other")


def test_a_value_called_other_is_the_other():
    ill = domain_of({"flu": 30, "other": 20}, policy_of())
    assert ill.labels == ("flu", "other")
    assert ill.encode(pa.array(["other", "new"])).tolist() == [1, 1]


def test_labels_alone_give_the_same_domain():
    ill = domain_of(PAST)
    again = Domain(ill.labels, ICD, "ill")
    assert again.labels == ill.labels
    column = pa.array([*PAST, "E12", "A00"])
    assert again.encode(column).tolist() == ill.encode(column).tolist()


def parents(labels, policy=ICD):
    ill = Domain(labels, policy, "ill")
    return dict(zip(ill.labels, ill.parents().tolist(), strict=True))


def test_siblings_meet_at_the_first_node_they_share():
    parent = parents(["E11.0", "E11, other", "E10", "J18", "J12", "C50", "IV, other"])
    assert parent["E11.0"] == parent["E11, other"]
    assert parent["J18"] == parent["J12"]
    assert len({parent[name] for name in ("E11.0", "E10", "IV, other", "J18", "C50")}) == 5
    assert parents(["E10", "IV, other"])["E10"] == parents(["E10", "IV, other"])["IV, other"]
    assert len(set(parents(["a", "b", "c"], policy_of()).values())) == 3


def test_nodes_of_a_tree_are_on_their_own_level():
    tree = policy_of({"tree": {"lungs": {"upper": ["cold", "croup"], "lower": ["flu"]}, "gut": {"all": ["ulcer"]}}})
    ill = Domain(["cold", "upper, other", "lungs, other", "gut"], tree, "ill")
    levels = [dict(zip(ill.labels, level, strict=True)) for level in ill.levels().tolist()]
    assert levels[0]["cold"] == levels[0]["upper, other"] != levels[0]["lungs, other"]
    assert levels[1]["cold"] == levels[1]["lungs, other"] != levels[1]["gut"]
    assert ill.encode(pa.array(["croup", "flu", "ulcer", "zebra", None])).tolist() == [
        ill.code("upper, other"),
        ill.code("lungs, other"),
        ill.code("gut"),
        OUTSIDE,
        OUTSIDE,
    ]


def test_a_code_that_the_hierarchy_lacks_is_counted_and_not_shown():
    with pytest.raises(DataError, match="1 distinct value is") as error:
        domain_of(PAST | {"zebra": 3})
    assert "zebra" not in str(error.value)
