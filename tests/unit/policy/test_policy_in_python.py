"""Policies in Python: by words, by a guess, and to YAML and back."""

import pandas as pd
import pyarrow as pa
import pytest

import reticent
from reticent import Policy
from reticent.errors import PolicyError


def frame():
    rows = [(20 + at % 40, "fm"[at % 2], ("flu", "asthma", "gout", "cold")[at % 4]) for at in range(200)]
    return pd.DataFrame(rows, columns=["age", "sex", "diagnosis"])


def test_a_policy_by_words_is_the_policy_of_the_dictionary():
    words = {"columns": {"age": "quasi", "ill": "sensitive"}, "privacy": {"k": 5, "l": 2}, "person": None}
    assert Policy(**words).hash == Policy.from_dict({"version": 1, **words}).hash
    assert Policy(columns={"id": "identifier", "ill": "sensitive"}, person="id").person == "id"


def test_a_wrong_policy_by_words_says_what_is_wrong():
    with pytest.raises(PolicyError, match=r"privacy\.k"):
        Policy(columns={"age": "quasi"}, privacy={"k": 0})
    with pytest.raises(PolicyError):
        Policy(columns={"age": "quasi"}, privcy={"k": 2})


def test_a_policy_comes_back_from_yaml(tmp_path):
    policy = Policy(columns={"age": "quasi", "sex": "quasi", "ill": "sensitive"}, privacy={"k": 5, "l": 2})
    again = Policy.from_yaml(policy.to_yaml())
    assert again == policy
    assert again.hash == policy.hash
    (tmp_path / "p.yaml").write_text(policy.to_yaml())
    assert Policy.load(tmp_path / "p.yaml").hash == policy.hash


def test_a_guess_is_a_policy_that_releases(tmp_path):
    policy = Policy.guess(frame())
    assert set(policy.columns) == {"age", "sex", "diagnosis"}
    assert Policy.from_yaml(policy.to_yaml()).hash == policy.hash
    release = reticent.anonymize(frame(), policy, seed=1)
    assert reticent.verify(release, policy).holds
    indexed = frame().set_index("sex")
    assert Policy.guess(indexed).columns.keys() == policy.columns.keys()
    assert Policy.guess(pa.Table.from_pandas(frame(), preserve_index=False)) == policy
