"""The verifier checks a release against its policy, whatever the release claims."""

import pyarrow as pa
import pytest

from reticent.policy import Policy
from reticent.release import Guarantee, RecordCounts, Release
from reticent.verify import verify


def policy(**sections):
    columns = {"age": "quasi", "ill": "sensitive"}
    return Policy.from_dict({"version": 1, "columns": columns, **sections})


def groups_of_two(kind, method):
    qit = pa.table({"group": [0, 0, 1, 1], "age": ["1", "2", "3", "4"]})
    st = pa.table({"group": [0, 0, 1, 1], "value": ["a", "b", "a", "c"], "count": [1, 1, 1, 1]})
    guarantee = Guarantee({"l": {"distinct": 2}}, "nobody")
    return Release(kind, "anatomy", method, {"qit": qit, "st": st}, guarantee, RecordCounts(4, 4, 0, 0), "")


def stream_of_two(claims):
    group = pa.table({"group": ["g", "g"], "value": ["a", "b"], "count": [1, 1]})
    tuples = pa.table({"group": ["g", "g"], "seq": [0, 1], "age": ["1", "2"]})
    guarantee = Guarantee(claims, "nobody")
    return Release(
        "stream", "stream", "delay-free", {"group": group, "tuple": tuples}, guarantee, RecordCounts(2, 2, 0, 0), ""
    )


@pytest.mark.parametrize(
    ("kind", "method"), [("table", "anatomy"), ("evolving", "enc"), ("evolving", ""), ("series", "x")]
)
def test_groups_of_two_are_refuted_under_privacy_l_8(kind, method):
    assert verify(groups_of_two(kind, method), policy(privacy={"l": 2})).holds
    result = verify(groups_of_two(kind, method), policy(privacy={"l": 8}))
    assert "l = 8 (distinct)" in [finding.claim for finding in result.refuted]


def test_a_stricter_section_counts_where_a_release_says_it_is_of_that_kind():
    strict = policy(privacy={"l": 2}, evolving={"l": 4})
    assert not verify(groups_of_two("evolving", "enc"), strict).holds


@pytest.mark.parametrize("claims", [{"l": {"distinct": 2, "frequency": 2}}, {}])
def test_a_stream_of_two_is_refuted_under_privacy_l_8(claims):
    assert verify(stream_of_two(claims), policy(privacy={"l": 2})).holds
    assert not verify(stream_of_two(claims), policy(privacy={"l": 8})).holds
