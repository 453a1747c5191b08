"""Persons, not records: every table method, against a brute-force reference and against the verifier."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, permutations
from math import log

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent import _core, anonymize, verify
from reticent.engine.table.encoded_table import EncodedTable
from reticent.errors import DataError, GuaranteeError
from reticent.policy import Policy
from reticent.verify.groups import codes
from reticent.verify.original import persons as verifier
from reticent.verify.requirements import check_l, check_t, requirements

METHODS = ("auto", "optimal", "local", "mondrian", "supervised")
BORN = {"role": "quasi", "hierarchy": {"intervals": [2, 4, 8, 16, 32, 64]}}


def policy(method="optimal", *, person="patient", columns=None, **privacy):
    roles = {"patient": "identifier", "born": BORN, "ill": "sensitive"} | (columns or {})
    document = {"version": 1, "columns": roles, "privacy": privacy, "table": {"method": method}}
    return Policy.from_dict(document | ({"person": person} if person else {}))


def visits(people=300, times=4, values=4):
    rows = [(f"p{p}", 1700 + p, f"d{(p + v) % values}") for p in range(people) for v in range(times)]
    return pa.table(dict(zip(("patient", "born", "ill"), map(list, zip(*rows, strict=True)), strict=True)))


def heads(release, table):
    """Persons per published class: birth years are unique, so a class's years are its persons."""
    found = {}
    for label in set(release.tables["data"]["born"].to_pylist()):
        low, high = (int(x) for x in label.strip("[])").split(", "))
        high += label.endswith("]")
        found[label] = len(
            {p for p, b in zip(*(table[n].to_pylist() for n in ("patient", "born")), strict=True) if low <= b < high}
        )
    return found


@pytest.mark.parametrize("method", METHODS)
def test_four_visits_of_one_patient_are_no_class_of_four(method):
    table = visits()
    release = anonymize(table, policy(method, k=4, l=3), seed=1)
    assert min(heads(release, table).values()) >= 4
    assert release.guarantee.claims == {"k": {"persons": 4}, "l": {"persons": {"distinct": 3}}}
    assert verify(release, policy(method, k=4, l=3), original=table).holds
    assert "k = 4 of persons (needs the original)" in verify(release, policy(method, k=4, l=3)).unchecked


@pytest.mark.parametrize("method", METHODS)
def test_a_record_level_release_is_refuted_with_the_original(method):
    table = visits()
    release = anonymize(table, policy(method, person=None, k=4, l=3), seed=1)
    assert release.tables["data"].num_rows == 1200
    result = verify(release, policy(method, k=4, l=3), original=table)
    assert {"k = 4 of persons", "l = 3 (distinct) of persons"} <= {finding.claim for finding in result.refuted}


@pytest.mark.parametrize("method", [*METHODS, "anatomy"])
def test_one_record_per_person_changes_nothing(method):
    table = visits(times=1)
    privacy = {"l": 3} if method == "anatomy" else {"k": 4, "l": 3}
    named = anonymize(table, policy(method, **privacy), seed=1)
    unnamed = anonymize(table, policy(method, person=None, **privacy), seed=1)
    assert named.tables == unnamed.tables
    assert named.metrics == unnamed.metrics


def test_records_first_and_last_follow_the_events_and_do_not_count_toward_the_limit():
    table = visits(times=3).append_column("visit", pa.array([1, 10, 9] * 300))
    rules = {"columns": {"visit": "identifier"}, "k": 4}
    for records, values in (("first", {0}), ("last", {1})):
        person = {"column": "patient", "records": records, "events": "visit"}
        release = anonymize(table, policy(person=person, **rules), seed=1)
        assert release.records.published == 300
        assert release.records.suppressed == release.explain["suppressed_further_records"] == 600
        chosen = [f"d{(p + v) % 4}" for p in range(300) for v in values]
        assert sorted(release.tables["data"]["ill"].to_pylist()) == sorted(chosen)
        assert verify(release, policy(person=person, **rules), original=table).holds
        lied = replace(release, explain={**release.explain, "suppressed_further_records": 599})
        assert not verify(lied, policy(person=person, **rules), original=table).holds


def test_a_record_without_a_person_is_refused():
    table = visits(20).set_column(0, "patient", pa.array([None, *(f"p{i}" for i in range(79))]))
    with pytest.raises(DataError, match="1 records have no person"):
        anonymize(table, policy(k=2), seed=1)


def test_a_policy_without_a_person_over_repeated_ids_gets_a_warning():
    release = anonymize(visits(), policy(person=None, k=4), seed=1)
    assert "900 of 1,200 records repeat a value of the column 'patient'" in release.guarantee.not_covered[0]
    assert "PERSONS" not in anonymize(visits(), policy(k=4), seed=1).guarantee.not_covered[0]


def moving(people=240, seed=3):
    """Persons who change: another age at each visit, so that their records fall into several classes."""
    rng = np.random.default_rng(seed)
    rows = [
        (f"p{p}", int(1700 + 8 * (p % 30) + 60 * rng.integers(0, 4)), f"d{rng.integers(0, 9)}")
        for p in range(people)
        for _ in range(rng.integers(1, 4))
    ]
    return pa.table(dict(zip(("patient", "born", "ill"), map(list, zip(*rows, strict=True)), strict=True)))


@pytest.mark.parametrize("method", ["optimal", "local", "mondrian"])
def test_what_links_the_records_of_a_person_leaves_l_values(method):
    table, rules = moving(), policy(method, k=3, l=3, suppression=0.2)
    release = anonymize(table, rules, seed=1)
    result = verify(release, rules, original=table)
    assert result.holds
    assert any("values in common" in finding.claim for finding in result.findings) or result.unchecked


def test_what_is_all_there_is_of_its_persons_is_asked_for_no_more_than_k():
    table = visits()
    release = anonymize(table, policy("mondrian", k=4, l=3), seed=1)
    assert max(heads(release, table).values()) < 8


def test_auto_also_tries_to_keep_the_records_of_a_person_together():
    table = visits(times=2)
    release = anonymize(table, policy("auto", k=4, l=3), seed=1)
    assert [entry["method"] for entry in release.explain["tried"] if entry["whole_persons"]] == ["mondrian"]
    assert verify(release, policy("auto", k=4, l=3), original=table).holds


def test_linked_records_beyond_the_limit_are_refused_or_generalized():
    rows = [("a", 1, "x"), ("b", 1, "y"), ("a", 100, "z"), ("c", 100, "w")]
    table = pa.table(dict(zip(("patient", "born", "ill"), map(list, zip(*rows, strict=True)), strict=True)))
    release = anonymize(table, policy(l=2), seed=1)
    assert set(release.tables["data"]["born"].to_pylist()) == {"*"}
    with pytest.raises(GuaranteeError):
        anonymize(table, policy(l=2, k=4), seed=1)


def test_anatomy_holds_a_person_once_and_its_groups_share_l_values():
    table = moving(400)
    rules = policy("anatomy", l=3, suppression=0.2)
    release = anonymize(table, rules, seed=1)
    assert verify(release, rules, original=table).holds
    plain = anonymize(table, policy("anatomy", person=None, l=3, suppression=0.2), seed=1)
    claims = {finding.claim for finding in verify(plain, rules, original=table).refuted}
    assert claims <= {
        "no group has two records of one person",
        "all classes of a person have at least l values in common",
    }


CLASS = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4), min_size=1, max_size=5)


def weights(people):
    out = {}
    for records in people:
        for value in records:
            out[value] = out.get(value, Fraction(0)) + Fraction(1, len(records))
    return out


def satisfies(people, whole, claim):
    """The definitions, by brute force."""
    ((model, rule),) = claim.items()
    if model == "k":
        return len(people) >= rule
    ((kind, number),) = rule.items()
    mass, total = weights(people), len(people)
    top = sorted(mass.values(), reverse=True)
    if kind == "distinct":
        offers = [
            len(set(chosen)) == number
            for some in combinations(people, min(number, len(people)))
            for chosen in permutations(range(4), len(some))
            if len(some) == number and all(value in records for value, records in zip(chosen, some, strict=True))
        ]
        return any(offers)
    if kind == "frequency":
        return top[0] / total <= 1 / Fraction(number)
    if kind == "entropy":
        return -sum(float(w / total) * log(w / total) for w in mass.values()) >= log(number) - 1e-12
    if kind == "recursive":
        c, l = number
        return len(top) >= l and top[0] < c * sum(top[l - 1 :])
    table = weights(whole)
    far = [mass.get(v, Fraction(0)) / total - table.get(v, Fraction(0)) / len(whole) for v in range(4)]
    if kind == "equal":
        return sum(map(abs, far)) / 2 <= Fraction(str(number))
    known = [far[v] for v in range(4) if v in table]
    return sum(abs(sum(known[: i + 1])) for i in range(len(known))) / max(1, len(known) - 1) <= Fraction(str(number))


CLAIMS = [
    {"k": 3},
    {"l": {"distinct": 2}},
    {"l": {"distinct": 3}},
    {"l": {"frequency": 2}},
    {"l": {"entropy": 2}},
    {"l": {"entropy": 3}},
    {"l": {"recursive": [2, 2]}},
    {"l": {"recursive": [1, 2]}},
    {"t": {"equal": 0.25}},
    {"t": {"ordered": 0.2}},
]


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
@settings(max_examples=120, deadline=None)
@given(classes=st.lists(CLASS, min_size=1, max_size=3))
def test_models_of_persons_are_their_definitions(claim, classes):
    rows = [(g, (g, p), v) for g, people in enumerate(classes) for p, records in enumerate(people) for v in records]
    whole = [records for people in classes for records in people]
    table = pa.table(
        {
            "patient": [f"{g}-{p}" for _, (g, p), _ in rows],
            "born": [g for g, _, _ in rows],
            "ill": [str(v) for _, _, v in rows],
        }
    )
    expected = [satisfies(people, whole, claim) for people in classes]
    assert engine_says(claim, table) == expected
    assert verifier_says(claim, table, len(classes)) == expected


def engine_says(claim, table):
    rules = policy(**claim)
    encoded = EncodedTable.from_table(rules, table)
    classes = np.asarray(table["born"].to_numpy(), dtype=np.int64)
    if encoded.people is None:
        by_level = np.asarray(encoded.collapsed.classes(encoded.model, [0]))
        return [bool((by_level[classes == g] >= 0).all()) for g in range(classes.max() + 1)]
    return _core.table.check_classes(encoded.model, classes, encoded.people.pairs).tolist()


def verifier_says(claim, table, size):
    rows = np.asarray(table["born"].to_numpy(), dtype=np.int64)
    person = codes(table["patient"])[0]
    if "k" in claim:
        pairs = np.unique(np.stack([rows, person]), axis=1)[0]
        return (np.bincount(pairs, minlength=size) >= claim["k"]).tolist()
    if "distinct" in claim.get("l", {}):
        value = codes(table["ill"])[0]
        return (verifier.matching_sizes(rows, size, person, value) >= claim["l"]["distinct"]).tolist()
    (rule,) = requirements(claim)
    answers = []
    whole = verifier.weight_by_person(np.zeros(len(rows), dtype=np.int64), 1, person, table["ill"]).totals()
    for group in range(size):
        part = pa.array(np.flatnonzero(rows == group))
        some = table.take(part)
        groups = verifier.weight_by_person(
            np.zeros(len(some), dtype=np.int64), 1, codes(some["patient"])[0], some["ill"]
        )
        finding = check_l(groups, rule, "") if rule.model == "l" else check_t(groups, rule, whole, policy(k=2), "ill")
        answers.append(finding.holds)
    return answers
