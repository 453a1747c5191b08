"""The verifier: good releases pass, and one planted bug per claim is refuted."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from reticent.policy import Policy
from reticent.release import Guarantee, RecordCounts, Release
from reticent.release.wording import AGAINST, exclusions
from reticent.verify import verify

TREE = {"Lung": ["flu", "asthma"], "Gut": ["ulcer", "colitis"]}
AGES = {"intervals": [10, 20]}


def policy(**privacy):
    columns = {
        "id": "identifier",
        "age": {"role": "quasi", "hierarchy": AGES},
        "sex": "quasi",
        "ward": "plain",
        "ill": {"role": "sensitive", "hierarchy": {"tree": TREE}},
    }
    return Policy.from_dict({"version": 1, "columns": columns, "privacy": privacy})


DATA = {
    "age": ["[20, 30)"] * 4 + ["[30, 40)"] * 4,
    "sex": ["f"] * 4 + ["*"] * 4,
    "ward": ["a"] * 8,
    "ill": ["flu", "asthma", "ulcer", "colitis"] * 2,
}
CLAIMS = {
    "k": 4,
    "l": {"distinct": 4, "entropy": 4, "recursive": [2, 2], "frequency": 4},
    "t": {"equal": 0, "ordered": 0},
}


def generalized(data=None, claims=None, counts=None, **other):
    table = pa.table(data or DATA)
    return Release(
        kind="table",
        shape="generalized",
        method="optimal",
        tables={"data": table},
        guarantee=Guarantee(CLAIMS if claims is None else claims, AGAINST["generalized"], exclusions()),
        records=counts or RecordCounts(table.num_rows, table.num_rows, 0, 0),
        policy_hash="",
        **other,
    )


def changed(**columns):
    return {name: list(columns.get(name, values)) for name, values in DATA.items()}


def refuted(release, rules=None):
    result = verify(release, rules or policy())
    assert not result.holds
    return " | ".join(f"{finding.claim} {finding.where}" for finding in result.refuted)


def test_a_good_release_holds_in_memory_and_on_disk(tmp_path):
    rules = policy(k=4, l=4, t={"hierarchical": 0})
    release = generalized()
    assert verify(release, rules).refuted == ()
    for form in ("csv", "parquet"):
        folder = release.to_dir(tmp_path / form, format=form)
        assert verify(folder, rules).refuted == ()
    several = verify([tmp_path / "csv", tmp_path / "parquet"], rules)
    assert several.holds
    assert {finding.where.split(":")[0] for finding in several.findings} == {"release 1", "release 2"}


@pytest.mark.parametrize(
    ("data", "claim"),
    [
        (changed(sex=["f"] * 3 + ["m"] + ["*"] * 4), "k = 4"),
        (changed(ill=["flu"] * 2 + ["ulcer", "colitis"] + DATA["ill"][4:]), "l = 4 (distinct)"),
        (changed(ill=["flu"] * 2 + ["ulcer", "colitis"] + DATA["ill"][4:]), "l = 4 (entropy)"),
        (changed(ill=["flu"] * 3 + ["ulcer"] + DATA["ill"][4:]), "recursive (2, 2)-diversity"),
        (changed(ill=["flu"] * 2 + ["ulcer", "colitis"] + DATA["ill"][4:]), "no value above 1/4"),
        (changed(ill=["flu"] * 2 + ["ulcer", "colitis"] + DATA["ill"][4:]), "t = 0 (equal)"),
        (changed(ill=["flu"] * 2 + ["ulcer", "colitis"] + DATA["ill"][4:]), "t = 0 (ordered)"),
        (changed(age=["[21, 30)"] * 4 + ["[30, 40)"] * 4), "nodes of the hierarchy"),
        (changed(age=["[20, 25)"] * 4 + ["[30, 40)"] * 4), "nodes of the hierarchy"),
        (DATA | {"id": list("12345678")}, "only columns that the policy releases are published"),
        (DATA | {"row": list("12345678")}, "only columns that the policy releases are published"),
    ],
)
def test_a_planted_bug_in_the_table_is_refuted(data, claim):
    assert claim in refuted(generalized(data))


def test_the_policy_counts_even_if_the_manifest_claims_less():
    weak = generalized(claims={"k": 2})
    assert verify(weak, policy(k=4)).holds
    assert "k = 5" in refuted(weak, policy(k=5))
    assert "t = 0.2 (hierarchical)" in refuted(
        generalized(changed(ill=["flu"] * 4 + DATA["ill"][4:]), claims={}), policy(t={"hierarchical": 0.2})
    )


@pytest.mark.parametrize(
    ("counts", "claim"),
    [
        (RecordCounts(9, 9, 0, 0), "as many rows as the manifest"),
        (RecordCounts(12, 8, 0, 1), "input rows = published"),
        (RecordCounts(12, 8, 0, 4), "suppressed rows are within"),
    ],
)
def test_wrong_counts_are_refuted(counts, claim):
    assert claim in refuted(generalized(counts=counts), policy(suppression=0.1))


def test_t_may_exceed_its_bound_by_the_share_of_suppressed_records():
    skewed = changed(ill=["flu"] * 2 + ["ulcer", "colitis"] + DATA["ill"][4:])
    whole = generalized(skewed, claims={"t": 0.1})
    assert "t = 0.1" in refuted(whole)
    cut = generalized(skewed, claims={"t": 0.1}, counts=RecordCounts(10, 8, 0, 2))
    result = verify(cut, policy(suppression=0.5))
    assert result.holds
    assert "that of the release" in result.notes[0]


def test_the_histogram_of_the_input_in_a_manifest_is_refuted():
    told = generalized(claims={"t": 1}, counts=RecordCounts(10, 8, 0, 2), explain={"reference": {"ill": {"flu": 10}}})
    assert "explain contains only counts and settings reference" in refuted(told, policy(suppression=0.5))


def test_a_missing_sensitive_column_refutes_its_claims():
    data = {name: values for name, values in DATA.items() if name != "ill"}
    assert "is not published" in refuted(generalized(data))


def test_files_changed_after_release_are_refuted(tmp_path):
    folder = generalized().to_dir(tmp_path / "r")
    text = (folder / "data.csv").read_text()
    (folder / "data.csv").write_text(text + '"[20, 30)","f","a","flu"\n')
    words = refuted(folder)
    assert "files match the digests in the manifest" in words
    assert "as many rows as the manifest" in words


def test_findings_never_show_a_cell(tmp_path):
    data = changed(sex=["CANARY"] + ["f"] * 3 + ["*"] * 4, age=["CANARY"] * 8, ill=["CANARY"] * 8)
    result = verify(generalized(data, claims=CLAIMS), policy(k=2, l=2, t=0.1))
    assert not result.holds
    assert "CANARY" not in repr(result)
    assert "CANARY" not in json.dumps(result.to_dict())


def test_claims_that_cannot_be_recomputed_are_listed():
    result = verify(generalized(claims=CLAIMS | {"beauty": 1}), policy())
    assert result.unchecked == ("beauty",)


QIT = {"group": [0, 0, 1, 1], "age": [21, 22, 31, 32], "sex": list("fmfm"), "ward": list("aabb")}
ST = {"group": [0, 0, 1, 1], "value": ["flu", "ulcer", "asthma", "flu"], "count": [1, 1, 1, 1]}


def anatomy(qit=None, st=None, *, method="anatomy", claims=None, metrics=None):
    tables = {"qit": pa.table(qit or QIT), "st": pa.table(st or ST)}
    rows = tables["qit"].num_rows
    guarantee = Guarantee(claims or {"l": {"distinct": 2, "frequency": 2}}, AGAINST["anatomy"], exclusions())
    return Release(
        "table" if method == "anatomy" else "evolving",
        "anatomy",
        method,
        tables,
        guarantee,
        RecordCounts(rows, rows, 0, 0),
        "",
        metrics=metrics or {},
    )


def test_a_good_anatomy_holds(tmp_path):
    assert verify(anatomy(), policy(l=2)).refuted == ()
    assert verify(anatomy().to_dir(tmp_path / "a"), policy(l=2)).refuted == ()


@pytest.mark.parametrize(
    ("qit", "st", "claim"),
    [
        (None, ST | {"count": [2, 1, 1, 1]}, "as many records as values"),
        (None, ST | {"count": [2, 0, 1, 1]}, "at least 1"),
        (None, ST | {"value": ["flu", "flu", "asthma", "flu"]}, "no group lists a value twice"),
        (QIT | {"group": [0, 0, 1, 2]}, None, "has its values in 'st'"),
        (QIT | {"group": [0, 0, 0, 1]}, None, "more records than values"),
        (QIT | {"group": [0, 0, 0, 1]}, ST | {"count": [2, 1, 1, 0]}, "no value above 1/2"),
        (QIT | {"id": list("1234")}, None, "only columns that the policy releases are published"),
        (QIT | {"ill": list("1234")}, None, "only columns that the policy releases are published"),
        (
            {**QIT, "group": [0, 0, 1, 1]},
            {"group": [0, 0, 1], "value": ["flu", "ulcer", "flu"], "count": [1, 1, 2]},
            "l = 2 (distinct)",
        ),
    ],
)
def test_a_planted_bug_in_anatomy_is_refuted(qit, st, claim):
    assert claim in refuted(anatomy(qit, st), policy(l=2))


def test_counts_that_are_none_never_pass():
    claims = {"l": {"entropy": 2, "recursive": [2, 2], "frequency": 2}, "t": {"equal": 1}}
    for count in (["x", "1", "1", "1"], ["0", "0", "1", "1"], ["-3", "1", "1", "1"], ["1.5", None, "1", "1"]):
        assert "whole numbers" in refuted(anatomy(st=ST | {"count": count}, claims=claims), policy(l=2))


def test_counterfeits_must_be_as_many_as_stated():
    st = ST | {"count": [2, 2, 1, 1]}
    assert verify(anatomy(st=st, method="sealed", metrics={"counterfeits": 2}), policy(l=2)).refuted == ()
    assert verify(anatomy(st=st, method="sealed", metrics={"counterfeits": 2 / 6}), policy(l=2)).refuted == ()
    for wrong in (1, 0.3):
        assert "stated counterfeits" in refuted(anatomy(st=st, method="sealed", metrics={"counterfeits": wrong}))


def test_a_claimed_posterior_is_compared_with_the_groups():
    assert verify(anatomy(method="sealed", claims={"l": {"distinct": 2}, "posterior": 0.5}), policy(l=2)).refuted == ()
    assert "posterior" in refuted(anatomy(method="sealed", claims={"l": {"distinct": 2}, "posterior": 0.4}))


def test_anatomy_is_no_k_anonymity():
    assert "k = 2" in refuted(anatomy(), policy(l=2, k=2))
