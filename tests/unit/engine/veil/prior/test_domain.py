"""The domain: rare codes go to their parent, nothing is lost, every value has one place."""

import numpy as np
import pyarrow as pa
import pytest

from reticent.engine.veil.prior.domain import OTHER, Domain, domain
from reticent.errors import DataError
from reticent.policy import Policy


def policy_of(hierarchy=None):
    column = {"role": "sensitive"} | ({"hierarchy": hierarchy} if hierarchy else {})
    return Policy.from_dict({"version": 1, "columns": {"ill": column}})


ICD = policy_of({"icd10": True})
PAST = {"E11.0": 90, "E11.1": 4, "E11.2": 7, "E10": 3, "E78": 2, "J18": 60, "J12": 5, "C50": 1}


def domain_of(counts, policy=ICD, least=10):
    return domain(pa.array(list(counts)), np.array(list(counts.values())), policy, "ill", least=least)


def test_rare_codes_stand_under_their_parent():
    assert domain_of(PAST).labels == ("E11, other", "E11.0", "J18", "other")


def test_the_rest_goes_up_until_it_is_frequent():
    assert domain_of(PAST | {"E78": 8}).labels == ("E11, other", "E11.0", "IV, other", "J18", "other")


def test_a_node_without_frequent_children_stands_as_itself():
    assert domain_of({"E11.0": 6, "E11.1": 7, "J18": 50}).labels == ("E11", "J18", "other")


def test_every_value_has_a_place_new_ones_too():
    ill = domain_of(PAST)
    codes = ill.codes(pa.array(["E11.0", "E11.9", "E10", "J18", "J45", None, "E11.0"]), ICD)
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
    counts = dict(zip(ill.labels, np.bincount(ill.codes(column, ICD), minlength=len(ill)).tolist(), strict=True))
    assert counts == {"E11, other": 11, "E11.0": 90, "J18": 60, "other": 11}


def test_missing_is_a_value_where_it_is_frequent():
    values, counts = pa.array(["J18", None, "E10"]), np.array([40, 30, 2])
    ill = domain(values, counts, ICD, "ill", least=10)
    assert ill.labels == ("(missing)", "J18", "other")
    assert ill.codes(values, ICD).tolist() == [1, 0, 2]


def test_without_a_hierarchy_rare_values_are_other():
    ill = domain_of({"flu": 30, "plague": 1}, policy_of())
    assert ill.labels == ("flu", "other")


def test_a_value_called_other_is_the_other():
    ill = domain_of({"flu": 30, "other": 20}, policy_of())
    assert ill.labels == ("flu", "other")
    assert ill.codes(pa.array(["other", "new"]), policy_of()).tolist() == [1, 1]


def test_labels_alone_give_the_same_domain():
    ill = domain_of(PAST)
    again = Domain.from_labels("ill", [label for label in ill.labels if label != OTHER])
    assert again.labels == ill.labels
    column = pa.array([*PAST, "E12", "A00"])
    assert again.codes(column, ICD).tolist() == ill.codes(column, ICD).tolist()


def test_siblings_meet_at_the_first_node_they_share():
    values = pa.array(["E11.0", "E11.5", "E10", "J18", "J12", "C50"])
    ill = Domain.from_labels("ill", ["E11.0", "E11, other", "E10", "J18", "J12", "C50"])
    parent = dict(zip(ill.labels, ill.parents(values, ICD).tolist(), strict=True))
    assert parent["E11.0"] == parent["E11, other"]
    assert parent["J18"] == parent["J12"]
    assert len({parent["E11.0"], parent["E10"], parent["J18"], parent["C50"]}) == 4


def test_a_code_that_the_hierarchy_lacks_is_counted_and_not_shown():
    with pytest.raises(DataError, match="1 distinct value is") as error:
        domain_of(PAST).codes(pa.array(["J18", "zebra"]), ICD)
    assert "zebra" not in str(error.value)
