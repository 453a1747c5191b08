"""Which published values a hierarchy knows."""

from __future__ import annotations

import pytest

from reticent.policy import Policy
from reticent.verify.labels.validity import count_invalid_labels

KINDS = {
    "age": {"intervals": [6, [18, 66]]},
    "days": {"intervals": [10], "bottom": 10, "top": 50},
    "zip": {"prefix": 5},
    "born": {"dates": ["day", "month", "quarter", "year"]},
    "code": {"icd10": True},
    "job": {"tree": {"Office": ["clerk"], "Field": ["farmer"]}},
}
POLICY = Policy.from_dict(
    {
        "version": 1,
        "columns": {name: {"role": "quasi", "hierarchy": spec} for name, spec in KINDS.items()} | {"free": "quasi"},
    }
)
GOOD = {
    "age": ["21", "[18, 24)", "[18, 66)", "<18", "66+", "*", None],
    "days": ["12", "[10, 20)", "<10", "50+"],
    "zip": ["12345", "1234*", "12***", "1****"],
    "born": ["1980-02-03", "1980-02", "1980-Q3", "1980"],
    "code": ["A01.1", "A01", "A00-A09", "I"],
    "job": ["clerk", "Office", "*"],
    "free": ["anything"],
}
BAD = {
    "age": ["[19, 24)", "[18, 30)", "<20", "old"],
    "days": ["[11, 20)", "40+", "<20"],
    "zip": ["123456", "123456*"],
    "born": ["1980-Q5", "1980-13", "spring"],
    "code": ["A00-A08", "XXX", "9"],
    "job": ["pilot", "office"],
}


@pytest.mark.parametrize("column", GOOD)
def test_nodes_are_known(column):
    assert count_invalid_labels(GOOD[column], POLICY, column, "optimal") == 0


@pytest.mark.parametrize(("column", "value"), [(c, v) for c, values in BAD.items() for v in values])
def test_unknown_values_are_counted(column, value):
    assert count_invalid_labels([*GOOD[column], value], POLICY, column, "optimal") == 1


def test_free_cuts_are_for_methods_that_cut():
    assert count_invalid_labels(["[21, 37]"], POLICY, "age", "mondrian") == 0
    assert count_invalid_labels(["[21, 37]"], POLICY, "age", "optimal") == 1
    assert count_invalid_labels(["[37, 21]"], POLICY, "age", "mondrian") == 1


def test_sets_are_of_different_leaves_and_for_methods_that_cut():
    assert count_invalid_labels(["{clerk, farmer}"], POLICY, "job", "mondrian") == 0
    assert count_invalid_labels(["{clerk, farmer}"], POLICY, "job", "local") == 1
    for value in ("{clerk, Office}", "{clerk, clerk}", "{clerk}", "{clerk, nurse}", "clerk, farmer", "{}"):
        assert count_invalid_labels([value], POLICY, "job", "mondrian") == 1
    assert count_invalid_labels(["{12345, 12346}"], POLICY, "zip", "mondrian") == 1
