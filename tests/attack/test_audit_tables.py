"""Attacks on one table: each works on a planted naive release and fails on one made by an engine."""

from __future__ import annotations

import audit_cases as cases
import numpy as np
import pyarrow as pa
import pytest

from reticent.api import anonymize
from reticent.audit.attack import Evidence
from reticent.audit.attack.homogeneity import homogeneity
from reticent.audit.attack.linkage import linkage
from reticent.audit.attack.minimality import minimality
from reticent.audit.attack.similarity import similarity
from reticent.audit.attack.skewness import skewness
from reticent.policy import Policy
from reticent.verify.published import read_release, text_table

TREE = {"lungs": ["asthma", "flu", "croup", "angina"], "gut": ["ulcer", "colic", "crohn", "hernia"]}
COLUMNS = {
    "id": "identifier",
    "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20, 40]}},
    "ill": {"role": "sensitive", "hierarchy": {"tree": TREE}},
}
ILLNESSES = [leaf for leaves in TREE.values() for leaf in leaves]


def policy(privacy, method="optimal"):
    data = {"version": 1, "person": "id", "columns": COLUMNS, "privacy": privacy, "table": {"method": method}}
    return Policy.from_dict(data)


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    ages, ill = rng.integers(20, 80, n), rng.integers(0, 8, n)
    return pa.table({"id": [f"p{i}" for i in range(n)], "age": ages, "ill": [ILLNESSES[i] for i in ill]})


def evidence(release, rules, original=None, **more):
    table = text_table(original) if original is not None else None
    return Evidence((read_release(release, ""),), rules, table, key=b"k", rng=np.random.default_rng(1), **more)


def naive(original, rules, claims):
    """Nothing done at all, with the claims of a careful release."""
    data = text_table(original).drop_columns(["id"])
    return cases.generalised(list(zip(*data.to_pydict().values(), strict=True)), claims)


def test_linkage_finds_everyone_in_a_naive_release_and_one_in_k_in_ours():
    rules = policy({"k": 10})
    table = people(400).set_column(1, "age", pa.array(np.arange(400) % 60 + 20))
    ours = anonymize(table, rules, seed=1)
    alone = table.slice(0, 60)
    broken = linkage(evidence(naive(alone, rules, {"k": 10}), rules, alone))
    assert broken.refuted
    assert broken.accuracy == 1
    assert broken.sure == 60
    safe = linkage(evidence(ours, rules, table))
    assert not safe.refuted
    assert safe.highest <= 1 / 10
    assert safe.claim == pytest.approx(0.1)


def test_linkage_with_an_external_table_names_columns_and_no_cells():
    rules = policy({"k": 5})
    table = people(300)
    external = pa.table({"name": ["x", "y"], "age": ["30", "200"]})
    outcome = linkage(evidence(anonymize(table, rules, seed=1), rules, None, external=external))
    assert outcome.tried == 1  # nobody is 200 years old
    assert "Matched on age" in outcome.notes[0]


def test_homogeneity_is_certain_of_a_naive_release_and_held_to_one_in_l_by_anatomy():
    rules = policy({"l": 4})
    rows = [("[20, 40)", "flu")] * 5 + [("[40, 60)", "ulcer"), ("[40, 60)", "flu")]
    broken = homogeneity(evidence(cases.generalised(rows, {"l": {"distinct": 4}}), rules))
    assert broken.refuted
    assert broken.sure == 5
    table = people(400)
    safe = homogeneity(evidence(anonymize(table, rules, method="anatomy", seed=1), rules, table))
    assert not safe.refuted
    assert safe.accuracy == pytest.approx(0.25, abs=0.01)
    assert safe.claim == pytest.approx(0.25)


def test_skewness_sees_a_group_unlike_the_table_and_nothing_beyond_t():
    rows = [("[20, 40)", "flu")] * 9 + [("[20, 40)", "ulcer")] + [("[40, 60)", "ulcer")] * 90
    rules = policy({"k": 2, "t": 0.2})
    broken = skewness(evidence(cases.generalised(rows, {"t": {"equal": 0.2}}), rules))
    assert broken.sure == 10
    assert broken.highest == pytest.approx(0.9 - 0.09)
    table = people(600)
    safe = skewness(evidence(anonymize(table, rules, seed=1), rules, table))
    assert safe.sure == 0
    assert safe.highest <= 0.2


def test_similarity_sees_that_a_diverse_group_is_all_lungs():
    rows = [("[20, 40)", ill) for ill in TREE["lungs"]] + [("[40, 60)", ill) for ill in ILLNESSES]
    rules = policy({"k": 4, "l": 4})
    broken = similarity(evidence(cases.generalised(rows, {"l": {"distinct": 4}}), rules))
    assert broken.sure == 4
    rules = policy({"k": 4, "t": {"hierarchical": 0.15}})
    table = people(600)
    safe = similarity(evidence(anonymize(table, rules, seed=1), rules, table))
    assert safe.sure == 0
    assert safe.interval[0] <= safe.figures["baseline"] + 0.15


def minimal():
    """Two old and many young; the finer table is 2-anonymous, so it can only have failed for lack of diversity."""
    ages = [25] * 2 + [35] * 6
    ill = ["flu", "flu", "flu", "asthma", "croup", "ulcer", "colic", "crohn"]
    return pa.table({"id": [f"p{i}" for i in range(8)], "age": ages, "ill": ill})


def test_minimality_reads_why_a_finer_table_was_refused():
    """Published: one class, three of eight have flu. Why not finer? Since both of the small class have flu, surely."""
    rules = policy({"k": 2, "l": 2})
    release = cases.generalised([("[20, 40)", ill) for ill in minimal()["ill"].to_pylist()], {"l": {"distinct": 2}})
    outcome = minimality(evidence(release, rules, minimal()))
    assert outcome.highest > 0.95
    assert outcome.figures["without_the_argument"] == pytest.approx(3 / 8)


def test_minimality_learns_nothing_from_a_table_with_many_classes():
    """The next finer table is 2-anonymous and breaks the rule in one class of sixty; which one, nobody can tell."""
    rules = policy({"k": 2, "l": {"frequency": 3}})
    table = people(1000)
    outcome = minimality(evidence(anonymize(table, rules, seed=1), rules, table))
    assert outcome.claim == pytest.approx(1 / 3)
    assert not outcome.refuted
    low, high = outcome.interval
    assert low <= outcome.figures["without_the_argument"] <= high
    assert outcome.highest < outcome.claim
    assert outcome.sure == 0


def test_pseudonyms_depend_on_the_key_and_never_name_a_person():
    rules = policy({"k": 5})
    table = people(200)
    release = anonymize(table, rules, seed=1)
    first = linkage(evidence(release, rules, table))
    other = Evidence((read_release(release, ""),), rules, text_table(table), key=b"other", rng=np.random.default_rng(1))
    assert [p.pseudonym for p in first.worst] != [p.pseudonym for p in linkage(other).worst]
    assert not {p.pseudonym for p in first.worst} & set(table["id"].to_pylist())
