"""The verifier on streams: a good transcript passes, and each violation is refuted."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from reticent.policy import Policy
from reticent.release import Guarantee, RecordCounts, Release
from reticent.verify import verify

COLUMNS = {"id": "identifier", "age": "quasi", "sex": "quasi", "ward": "plain", "ill": "sensitive"}
POLICY = Policy.from_dict({"version": 1, "columns": COLUMNS, "privacy": {"k": 2}, "stream": {"l": 2}})


def group(name, *candidates):
    return {"type": "group", "group": name, "candidates": [list(pair) for pair in candidates]}


def tuple_(name, seq, age, sex="f"):
    return {"type": "tuple", "group": name, "seq": seq, "quasi": {"age": age, "sex": sex}, "plain": {"ward": "a"}}


GOOD = [
    group("g1", ("asthma", 1), ("flu", 1)),
    tuple_("g1", 0, 24),
    group("g2", ("asthma", 2), ("flu", 1), ("ulcer", 1)),
    tuple_("g2", 1, 24),
    tuple_("g1", 2, 30),
    tuple_("g2", 3, 24, "m"),
]


def verify_lines(lines, tmp_path):
    path = tmp_path / "out.ndjson"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return verify(path, POLICY)


def test_a_good_transcript_holds(tmp_path):
    assert verify_lines(GOOD, tmp_path).refuted == ()


@pytest.mark.parametrize(
    ("lines", "claim"),
    [
        ([GOOD[1], GOOD[0]], "a group precedes its first tuple"),
        ([GOOD[0], GOOD[0]], "published once"),
        ([*GOOD, group("g1", ("asthma", 1), ("flu", 1))], "published once"),
        ([group("g", ("flu", 2))], "l distinct candidates"),
        ([group("g", ("asthma", 3), ("flu", 1))], "no candidate is above 1/l"),
        ([group("g", ("flu", 1), ("asthma", 1))], "sorted"),
        ([group("g", ("asthma", 1), ("flu", 0))], "whole counts"),
        ([group("g", ("flu", 1), ("flu", 1))], "distinct, sorted"),
        ([*GOOD, tuple_("g1", 4, 50)], "more tuples than candidates"),
        ([*GOOD, tuple_("g2", 4, 24)], "with the same quasi-identifiers"),
        ([*GOOD, tuple_("g2", 3, 50)], "sequence number"),
        ([*GOOD, tuple_("g2", -1, 50)], "sequence number"),
        ([*GOOD, tuple_("g9", 4, 50)], "a group precedes its first tuple"),
        ([*GOOD, {"type": "noise"}], "every line"),
        ([*GOOD, tuple_("g2", 4, 50) | {"quasi": {"id": 1}}], "only columns"),
        ([*GOOD, tuple_("g2", 4, 50) | {"plain": {"ill": "flu"}}], "only columns"),
    ],
)
def test_a_broken_transcript_is_refuted(lines, claim, tmp_path):
    result = verify_lines(lines, tmp_path)
    assert any(claim in finding.claim for finding in result.refuted), result


def test_a_line_that_is_no_json_is_refuted(tmp_path):
    path = tmp_path / "x.ndjson"
    path.write_text("{nonsense\n")
    assert not verify(path, POLICY).holds


def release(tables, claims=None):
    rows = sum(table.num_rows for name, table in tables.items() if name != "group")
    return Release(
        "stream",
        "stream",
        "delay-free",
        tables,
        Guarantee(claims or {"l": {"distinct": 2}}, ""),
        RecordCounts(rows, rows, 0, 0),
        "",
    )


def test_parts_of_a_stream_are_verified_as_one():
    first = release(
        {
            "group": pa.table({"group": ["a", "a"], "value": ["flu", "ulcer"], "count": [1, 1]}),
            "tuple": pa.table({"group": ["a"], "seq": [0], "age": [1], "sex": ["f"]}),
        }
    )
    second = release({"tuple": pa.table({"group": ["a"], "seq": [1], "age": [2], "sex": ["f"]})})
    again = release({"tuple": pa.table({"group": ["a"], "seq": [2], "age": [3], "sex": ["f"]})})
    assert verify([first, second], POLICY).refuted == ()
    assert not verify([second], POLICY).holds
    assert not verify([first, second, again], POLICY).holds


def test_a_claimed_posterior_is_compared_with_the_groups():
    parts = {"group": pa.table({"group": ["a"] * 3, "value": ["a", "b", "c"], "count": [1, 1, 1]})}
    thirds = {"l": {"distinct": 2}, "posterior": 1 / 3}
    assert verify(release(parts, thirds), POLICY).refuted == ()
    refuted = verify(release(parts, {"l": {"distinct": 2}, "posterior": 0.3}), POLICY).refuted
    assert ["posterior" in finding.claim for finding in refuted] == [True]


def record(seq, age, ill):
    return {"type": "record", "seq": seq, "quasi": {"age": age, "sex": "*"}, "sensitive": {"ill": ill}}


def test_generalized_records_are_verified_for_k(tmp_path):
    good = [record(0, "20-29", "flu"), record(1, "20-29", "ulcer")]
    assert verify_lines(good, tmp_path).refuted == ()
    result = verify_lines([*good, record(2, "30-39", "flu")], tmp_path)
    assert [finding.claim for finding in result.refuted] == ["k = 2"]
    assert any("sequence" in f.claim for f in verify_lines([*good, record(1, "20-29", "flu")], tmp_path).refuted)
    scalar = [line | {"sensitive": line["sensitive"]["ill"]} for line in good]
    assert verify_lines(scalar, tmp_path).holds


CODEBOOK = {
    "type": "codebook",
    "kind": "stream",
    "method": "delay-free",
    "columns": [],
    "guarantee": {"claims": {"l": 2}, "words": [], "against": "", "not_covered": []},
    "policy": POLICY.hash,
}
FORM = "every line is a group, a tuple, a record or a codebook as documented"


@pytest.mark.parametrize("cell", [["p1 has flu"], {"p1": "flu"}, [], [[]]], ids=str)
@pytest.mark.parametrize("part", ["quasi", "plain"])
def test_a_field_holds_one_value(tmp_path, part, cell):
    line = GOOD[1] | {part: GOOD[1][part] | {"age" if part == "quasi" else "ward": cell}}
    assert FORM in {f.claim for f in verify_lines([GOOD[0], line, *GOOD[2:]], tmp_path).refuted}


@pytest.mark.parametrize("cell", [["p1"], {"ill": ["p1"]}, {"ill": {"p1": 1}}], ids=str)
def test_a_generalized_record_has_one_value(tmp_path, cell):
    lines = [{"type": "record", "seq": i, "quasi": {"age": 1, "sex": "f"}, "sensitive": "ab"[i % 2]} for i in range(4)]
    assert FORM in {f.claim for f in verify_lines([*lines, lines[0] | {"seq": 4, "sensitive": cell}], tmp_path).refuted}


@pytest.mark.parametrize("value", [["p1"], {"p1": 1}], ids=str)
def test_a_candidate_is_one_value(tmp_path, value):
    words = {f.claim for f in verify_lines([group("g", (value, 1), ("flu", 1))], tmp_path).refuted}
    assert "candidates are distinct, sorted, with whole counts of at least 1" in words


@pytest.mark.parametrize("plain", [5, "p1", ["p1"]], ids=str)
def test_plain_columns_are_an_object(tmp_path, plain):
    assert FORM in {f.claim for f in verify_lines([GOOD[0], GOOD[1] | {"plain": plain}], tmp_path).refuted}


@pytest.mark.parametrize("nothing", [0, "", False, [], None], ids=repr)
def test_the_absence_of_plain_columns_has_one_form(tmp_path, nothing):
    rules = Policy.from_dict({"version": 1, "columns": {**COLUMNS, "ward": "identifier"}, "stream": {"l": 2}})
    path = tmp_path / "out.ndjson"
    lines = [GOOD[0], GOOD[1] | {"plain": nothing}]
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    path.with_name("out.ndjson.codebook.json").write_text(json.dumps(CODEBOOK, separators=(",", ":")) + "\n")
    assert FORM in {f.claim for f in verify(path, rules).refuted}


@pytest.mark.parametrize("more", [{}, {"plain": {}}], ids=["nothing", "an empty object"])
def test_records_without_plain_columns_have_no_empty_entry_for_them(tmp_path, more):
    rules = Policy.from_dict({"version": 1, "columns": {**COLUMNS, "ward": "identifier"}, "privacy": {"k": 2}})
    lines = [{"type": "record", "seq": i, "quasi": {"age": 1, "sex": "f"}, "sensitive": "ab"[i % 2]} for i in range(4)]
    path = tmp_path / "out.ndjson"
    path.write_text("".join(json.dumps(line | more, separators=(",", ":")) + "\n" for line in lines))
    book = CODEBOOK | {"method": "castle"}
    path.with_name("out.ndjson.codebook.json").write_text(json.dumps(book, separators=(",", ":")) + "\n")
    claims = {f.claim for f in verify(path, rules).refuted}
    assert ("every line is in its canonical form" in claims) == bool(more)
