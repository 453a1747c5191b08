"""Update knowledge: files, trees, diameters; staying, closure, and what is refused."""

import numpy as np
import pytest

from reticent.errors import DataError, PolicyError
from reticent.policy import Policy
from reticent.policy.updates import updates_of

TREE = {"hierarchy": {"tree": {"lung": ["flu", "cold", "asthma"], "gut": ["ulcer", "colic"]}}}


def known(tmp_path, text=None, seen=(), **column):
    if text is not None:
        (tmp_path / "updates.csv").write_text(text)
        column["updates"] = {"file": "updates.csv"}
    policy = Policy.from_dict({"version": 1, "columns": {"ill": {"role": "sensitive", **column}}}, base=tmp_path)
    return updates_of(policy, "ill", seen)


def cus(updates, value):
    row = updates.matrix.toarray()[updates.codes[value]]
    return {updates.values[i]: round(float(p), 6) for i, p in enumerate(row) if p}


@pytest.mark.parametrize("text", ["a;a;3\na;b;1\nb;b;1\n", "value,next,probability\na,a,0.75\na,b,0.25\nb,b,1\n"])
def test_file(tmp_path, text):
    updates = known(tmp_path, text)
    assert cus(updates, "a") == {"a": 0.75, "b": 0.25}
    assert cus(updates, "b") == {"b": 1.0}
    assert (updates.closure_pairs, updates.stay_values) == (0, 0)


def test_probabilities_may_be_left_out(tmp_path):
    assert cus(known(tmp_path, "a;a\na;b\n"), "a") == {"a": 0.5, "b": 0.5}


def test_staying_is_added_and_counted(tmp_path):
    updates = known(tmp_path, "a;b;1\n")
    assert cus(updates, "a") == {"a": 0.5, "b": 0.5}
    assert updates.stay_values == 1


def test_closure_is_taken_and_counted(tmp_path):
    updates = known(tmp_path, "a;a;1\na;b;1\nb;b;1\nb;c;1\n")
    assert set(cus(updates, "a")) == {"a", "b", "c"}
    assert updates.closure_pairs == 1
    np.testing.assert_allclose(updates.matrix.sum(axis=1), 1)
    step = np.array([[0.5, 0.5, 0], [0, 0.5, 0.5], [0, 0, 1]])
    np.testing.assert_allclose(updates.matrix.toarray(), (step + step @ step) / 2)


def test_a_value_nobody_named_never_changes(tmp_path):
    updates = known(tmp_path, "a;a\n", seen=["z", None])
    assert cus(updates, "z") == {"z": 1.0}
    assert cus(updates, None) == {None: 1.0}
    assert updates.values[:2] == ("z", None)


def test_codes_stay_when_more_values_are_seen(tmp_path):
    first = known(tmp_path, "a;a\na;b\n", seen=["b"])
    later = known(tmp_path, "a;a\na;b\n", seen=[*first.values, "new"])
    assert later.values[: len(first)] == first.values


def test_tree_distance(tmp_path):
    updates = known(tmp_path, **TREE, updates={"tree": 1})
    assert set(cus(updates, "flu")) == {"flu", "cold", "asthma"}
    assert set(cus(known(tmp_path, **TREE, updates={"tree": 9}), "flu")) == {"flu", "cold", "asthma", "ulcer", "colic"}
    assert updates.uniform
    assert len(set(updates.components.tolist())) == 2


def test_diameter(tmp_path):
    updates = known(tmp_path, **TREE, updates={"diameter": 2})
    assert sorted(np.bincount(updates.components).tolist()) == [1, 2, 2]
    numbers = known(tmp_path, updates={"diameter": 10}, seen=["3", "27"])
    assert set(cus(numbers, "3")) == {str(i) for i in range(10)}
    assert set(cus(numbers, "27")) == {str(i) for i in range(20, 30)}


def test_steps_are_powers(tmp_path):
    updates = known(tmp_path, "a;a;0.5\na;b;0.5\nb;b;1\n")
    indptr, indices, weights = updates.steps(3)[2]
    dense = np.zeros((2, 2))
    for row in range(2):
        dense[row, indices[indptr[row] : indptr[row + 1]]] = weights[indptr[row] : indptr[row + 1]]
    np.testing.assert_allclose(dense, np.linalg.matrix_power(updates.matrix.toarray(), 3))


@pytest.mark.parametrize(
    "text", ["", "a;b;-1\n", "a;b;x\n", "a;b;1\na;b;1\n", "a\n", "a;b;0\n", "a;b;c;d\n", "a;b;inf\n"]
)
def test_bad_files_are_refused_without_showing_a_cell(tmp_path, text):
    with pytest.raises(PolicyError) as caught:
        known(tmp_path, text.replace("a;", "secret;"))
    assert "secret" not in str(caught.value)


def test_what_is_missing_is_said(tmp_path):
    with pytest.raises(PolicyError, match="updates"):
        known(tmp_path)
    with pytest.raises(PolicyError, match="hierarchy"):
        known(tmp_path, updates={"tree": 1})
    with pytest.raises(PolicyError, match="hierarchy"):
        known(tmp_path, updates={"diameter": 3}, seen=["flu"])
    with pytest.raises(DataError, match="1 values"):
        known(tmp_path, **TREE, updates={"diameter": 2}, seen=["stranger"])


def test_any_value_may_become_any_other(tmp_path):
    for spec in ("any", {"any": True}):
        updates = known(tmp_path, updates=spec, seen=["a", "b", None, "a"])
        assert cus(updates, "a") == cus(updates, None) == {"a": 0.333333, "b": 0.333333, None: 0.333333}
    with pytest.raises(PolicyError, match="exactly one"):
        known(tmp_path, updates={"any": True, "tree": 1})
    with pytest.raises(PolicyError, match="exactly one"):
        known(tmp_path, updates={"any": False})
