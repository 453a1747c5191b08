"""Measures of risk: worked figures, agreement with pycanon, and the Safe Harbor check."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.audit.risk import assess
from reticent.audit.risk.class_sizes import class_sizes
from reticent.audit.risk.contribution import contributions
from reticent.audit.risk.reidentification import journalist, needed_class, prosecutor
from reticent.audit.risk.safe_harbor import safe_harbor
from reticent.policy import Policy
from reticent.verify.published import Published
from reticent.verify.uniqueness import pitman, population_uniques, zayatz

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from pycanon import anonymity
    from pycanon.anonymity.utils import aux_anonymity

COLUMNS = {"age": {"role": "quasi", "hierarchy": {"intervals": [10]}}, "sex": "quasi", "ill": "sensitive"}
POLICY = Policy.from_dict({"version": 1, "columns": COLUMNS, "privacy": {"k": 2}})
ROWS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from("xy"), st.sampled_from("123")), min_size=2, max_size=40
)


def release(rows):
    columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
    data = pa.table(dict(zip(("age", "sex", "ill"), columns, strict=True)))
    return Published("r", "generalized", tables={"data": data})


@pytest.mark.slow
@given(ROWS)
@settings(max_examples=60)
def test_risk_and_uniqueness_agree_with_pycanon(rows):
    frame = pd.DataFrame(rows, columns=["age", "sex", "ill"])
    k = anonymity.k_anonymity(frame, ["age", "sex"])
    classes = aux_anonymity.get_equiv_class(frame, ["age", "sex"])
    found = assess(release(rows), POLICY)
    assert found.prosecutor.highest == pytest.approx(1 / k)
    assert found.sizes.smallest == k
    assert found.unique == sum(len(members) == 1 for members in classes)
    assert found.sizes.classes == len(classes)
    assert found.prosecutor.mean == pytest.approx(len(classes) / len(rows))


def test_the_threshold_is_read_strictly():
    assert needed_class(0.09) == 12
    assert needed_class(0.5) == 2
    assert prosecutor(np.array([11]), 0.09).above == 1
    assert prosecutor(np.array([12]), 0.09).above == 0


def test_a_journalist_counts_the_population():
    sizes = np.array([2, 2])
    assert journalist(sizes, np.array([4, 100])).highest == 0.25
    estimated = journalist(sizes, 40)
    assert estimated.estimated
    assert estimated.mean == pytest.approx(0.05)


def test_a_population_table_is_matched_through_the_hierarchy():
    people = pa.table({"age": [str(a) for a in (21, 22, 23, 35, 36)], "sex": ["f"] * 5})
    found = assess(release([("[20, 30)", "f", "1"), ("[30, 40)", "f", "1")]), POLICY, population=people)
    assert found.journalist.highest == pytest.approx(1 / 2)
    assert found.journalist.mean == pytest.approx((1 / 3 + 1 / 2) / 2)


def test_population_uniques_are_recovered_from_a_sample():
    rng = np.random.default_rng(4)
    population = rng.zipf(1.4, 60_000) % 9_000
    uniques = int((np.bincount(population) == 1).sum())
    sample = rng.choice(population, 4_000, replace=False)
    sizes = np.bincount(sample)
    estimate = population_uniques(sizes[sizes > 0], len(population))
    assert uniques / 3 < estimate["chosen"] < uniques * 3
    assert pitman(np.ones(50, dtype=np.int64), 1000) == 1000
    assert zayatz(np.array([2, 3]), 0.5) == 0


def test_the_most_identifying_attribute_comes_first():
    table = pa.table({"same": ["x"] * 6, "apart": list("abcdef"), "half": list("aaabbb")})
    first, *_, last = contributions(table)
    assert first.column == "apart"
    assert first.share == pytest.approx(1 - 2 / 6)
    assert last.share == 0


def test_class_sizes_account_for_every_record():
    found = class_sizes(np.array([1, 1, 4, 11, 12, 30_000]))
    assert sum(count for *_, count in found.ranges) == found.rows == 30_029
    assert class_sizes(np.zeros(0, dtype=np.int64)).classes == 0


def flagged(**columns):
    table = pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})
    return {check.identifier for check in safe_harbor([table]) if not check.clear}


@pytest.mark.parametrize(
    ("columns", "identifier"),
    [
        ({"full_name": ["x"]}, "Names"),
        ({"contact": ["a@b.org", "c@d.org"]}, "E-mail addresses"),
        ({"seen": ["2025-01-02", "2025-02-03"]}, "Dates other than the year; ages above 89"),
        ({"age": ["91", "30"]}, "Dates other than the year; ages above 89"),
        ({"zip": ["12345"]}, "Geographic units smaller than a state"),
        ({"zip": ["036**"]}, "Geographic units smaller than a state"),
        ({"number": [f"{i:05}" for i in range(30)]}, "Any other unique identifying number or code"),
        ({"x": ["192.168.0.1"]}, "IP addresses"),
        ({"x": ["123-45-6789"]}, "Social security numbers"),
    ],
)
def test_safe_harbor_sees(columns, identifier):
    assert identifier in flagged(**columns)


def test_a_postcode_is_not_taken_for_a_network_address():
    assert flagged(zip=["12345"]) == {"Geographic units smaller than a state"}


@pytest.mark.parametrize(
    "columns",
    [{"age": ["[80, 90)", "90+", "*"]}, {"zip": ["123**", "10***"]}, {"year": ["2024", "2025"]}, {"ill": ["flu"]}],
)
def test_safe_harbor_lets_pass(columns):
    assert flagged(**columns) == set()


def test_a_stream_on_the_wire_is_assessed_too(tmp_path):
    lines = [
        '{"type":"group","group":"g","candidates":[["a",1],["b",1]]}',
        '{"type":"tuple","group":"g","seq":0,"quasi":{"age":91,"sex":"f"},"plain":{"mail":"x@y.org"}}',
        '{"type":"tuple","group":"g","seq":1,"quasi":{"age":30,"sex":"f"},"plain":{}}',
    ]
    (tmp_path / "out.ndjson").write_text("\n".join(lines) + "\n")
    found = assess(Published("s", "stream", stream_file=tmp_path / "out.ndjson"), POLICY)
    assert found.sizes.classes == 2
    looked = {check.identifier for check in found.safe_harbor if not check.clear}
    assert looked == {"E-mail addresses", "Dates other than the year; ages above 89"}
