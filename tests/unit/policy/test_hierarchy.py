"""Hierarchies as lookup tables."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.errors import DataError, PolicyError
from reticent.policy import HierarchySpec
from reticent.policy.hierarchy import build_levels


def labels_of(built, level):
    return built.labels[level].take(pa.array(built.node_ids[level])).to_pylist()


def make(spec, values, tmp_path=None):
    base = {"base": tmp_path} if tmp_path else {}
    return build_levels(
        None if spec is None else HierarchySpec.model_validate(spec), pa.array(values), column="c", **base
    )


def test_no_hierarchy_is_value_then_star():
    built = make(None, ["a", "b", None])
    assert built.height == 1
    assert labels_of(built, 0) == ["a", "b", None]
    assert labels_of(built, 1) == ["*", "*", "*"]
    assert built.leaves[1].tolist() == [3]


def test_even_intervals_are_nested():
    built = make({"intervals": [5, 10]}, ["0", "4", "5", "12", "-1"])
    assert labels_of(built, 1) == ["[0, 5)", "[0, 5)", "[5, 10)", "[10, 15)", "[-5, 0)"]
    assert labels_of(built, 2) == ["[0, 10)", "[0, 10)", "[0, 10)", "[10, 20)", "[-10, 0)"]
    assert labels_of(built, 3) == ["*"] * 5
    assert built.numeric.tolist() == [0, 4, 5, 12, -1]


def test_uneven_open_ended_intervals():
    built = make({"intervals": [[18, 40, 65], [18, 65]]}, [3, 18, 39, 40, 64, 65, 120])
    assert labels_of(built, 1) == ["<18", "[18, 40)", "[18, 40)", "[40, 65)", "[40, 65)", "65+", "65+"]
    assert labels_of(built, 2) == ["<18", "[18, 65)", "[18, 65)", "[18, 65)", "[18, 65)", "65+", "65+"]


def test_bottom_and_top_make_the_ends_open():
    built = make({"intervals": [10], "bottom": 0, "top": 90}, [-3, 5, 89, 90, 104])
    assert labels_of(built, 1) == ["<0", "[0, 10)", "[80, 90)", "90+", "90+"]


def test_intervals_that_cut_through_one_another_are_refused():
    with pytest.raises(PolicyError, match="level 2 splits"):
        make({"intervals": [4, 6]}, [1, 3, 5, 7])


def test_prefix():
    built = make({"prefix": 3}, ["123", "124", "223", None])
    assert labels_of(built, 1) == ["12*", "12*", "22*", None]
    assert labels_of(built, 2) == ["1**", "1**", "2**", None]
    assert labels_of(built, 3) == ["*"] * 4
    with pytest.raises(DataError, match="1 distinct value"):
        make({"prefix": 3}, ["123", "12345"])


def test_dates():
    built = make({"dates": True}, ["2024-01-31", "2024-03-01", "2023-12-31T23:59:00", None])
    assert labels_of(built, 1) == ["2024-01-31", "2024-03-01", "2023-12-31", None]
    assert labels_of(built, 2) == ["2024-01", "2024-03", "2023-12", None]
    assert labels_of(built, 3) == ["2024-Q1", "2024-Q1", "2023-Q4", None]
    assert labels_of(built, 4) == ["2024", "2024", "2023", None]
    typed = make({"dates": ["month"]}, [dt.date(2024, 1, 31), dt.date(2024, 1, 2)])
    assert labels_of(typed, 1) == ["2024-01", "2024-01"]


def test_icd10():
    built = make({"icd10": True}, ["A01.0", "A08", "C50.9", "S72.00"])
    assert labels_of(built, 1) == ["A01", "A08", "C50", "S72"]
    assert labels_of(built, 2)[:2] == ["A00-A09", "A00-A09"]
    assert labels_of(built, 3) == ["I", "I", "II", "XIX"]
    with pytest.raises(DataError, match="ICD-10"):
        make({"icd10": True}, ["A01", "hello"])


def test_trees_count_leaves_that_do_not_occur(tmp_path):
    (tmp_path / "t.csv").write_text("a;x;*\nb;x;*\nc;y;*\nd;y;*\ne;y;*\n")
    built = make({"file": "t.csv"}, ["c", "a", None], tmp_path)
    assert built.size == 5
    assert labels_of(built, 1) == ["y", "x", None]
    assert built.leaves[1].tolist() == [3, 2, 1]
    assert built.leaves[2].tolist() == [5]


def test_trees_in_the_policy():
    built = make({"tree": {"Europe": ["France", "Spain"], "Asia": ["Japan"]}}, ["Spain", "Japan"])
    assert labels_of(built, 1) == ["Europe", "Asia"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("a;x;*\nb;*\n", "line 2"),
        ("a;x\nb;y\n", "2 roots"),
        ("a;x;p;*\nb;x;q;*\n", "two parents"),
        ("a;x;*\na;y;*\n", "second time"),
        ("a;b;c;*\nb;a;c;*\n", "cycle"),
        ("a\n", "line 1"),
        ('a;"x;*\n', "CSV"),
    ],
)
def test_bad_trees_are_refused(tmp_path, text, words):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(PolicyError, match=words):
        make({"file": "t.csv"}, ["a"], tmp_path)


def test_strangers_are_counted_never_shown():
    with pytest.raises(DataError) as caught:
        make({"tree": {"x": ["a", "b"]}}, ["a", "CANARY1", "CANARY2"])
    assert "2 distinct values" in str(caught.value)
    assert "'c'" in str(caught.value)
    assert "CANARY" not in str(caught.value)
    with pytest.raises(DataError, match="3 distinct") as caught:
        make({"intervals": [5]}, ["1", "CANARY", "nan", "inf"])
    assert "CANARY" not in str(caught.value)


@given(st.lists(st.integers(-500, 500), min_size=1, unique=True), st.sampled_from([[1, 2, 4], [5, 10, 50], [3, 9]]))
def test_every_level_coarsens_the_one_below(values, widths):
    built = make({"intervals": widths}, values)
    for fine, coarse in zip(built.node_ids, built.node_ids[1:], strict=False):
        pairs = set(zip(fine.tolist(), coarse.tolist(), strict=True))
        assert len(pairs) == len(set(fine.tolist()))
    for table, leaves in zip(built.node_ids, built.leaves, strict=True):
        assert np.array_equal(np.bincount(table, minlength=len(leaves)), leaves)
