"""A table from any source is verified: every figure is measured, no claim is trusted."""

import json

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import reticent
from reticent.cli import app
from reticent.testing import assert_holds

COLUMNS = {"age": "quasi", "sex": "quasi", "ward": "plain", "ill": "sensitive"}


def rules(**privacy):
    return reticent.Policy.from_dict({"version": 1, "columns": COLUMNS, "privacy": privacy})


def line_list(ills):
    size = len(ills)
    return pa.table(
        {
            "age": ["20-29", "30-39"] * (size // 2),
            "sex": ["f"] * size,
            "ward": [str(row) for row in range(size)],
            "ill": ills,
        }
    )


def test_a_table_that_keeps_the_policy_holds_and_one_that_does_not_is_refuted():
    good = reticent.verify(line_list(["flu", "flu", "cold", "cold"]), rules(k=2, l=2))
    assert (good.holds, good.measured["k"], good.measured["l of 'ill'"]) == (True, 2, 2)
    bad = reticent.verify(line_list(["flu", "flu", "flu", "cold"]), rules(k=2, l=2))
    assert [finding.claim for finding in bad.refuted] == ["l = 2 (distinct)"]


def test_the_figures_are_those_computed_by_hand():
    measured = reticent.verify(line_list(["a", "a", "a", "b", "b", "b"]), rules(k=3)).measured
    # Classes: ages 20-29 hold a, a, b and 30-39 a, b, b; the whole has three of each.
    assert (measured["k"], measured["classes"], measured["unique"]) == (3, 2, 0)
    assert measured["unique_with_plain"] == 6
    assert measured["entropy l of 'ill'"] == pytest.approx(1.889882, abs=1e-6)
    assert measured["t of 'ill'"] == pytest.approx(1 / 6, abs=1e-6)


def test_a_policy_without_requirements_gets_a_note():
    result = reticent.verify(line_list(["a", "b"]), rules())
    assert any("nothing was required" in note for note in result.notes)


@pytest.mark.parametrize("form", ["csv", "parquet", "ndjson"])
def test_the_command_line_verifies_a_file_of_any_format(tmp_path, form):
    table, path, policy = line_list(["flu"] * 4), tmp_path / f"list.{form}", tmp_path / "policy.json"
    policy.write_text(json.dumps({"version": 1, "columns": COLUMNS, "privacy": {"k": 2, "l": 2}}))
    if form == "csv":
        pc.write_csv(table, path)
    elif form == "parquet":
        pq.write_table(table, path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    outcome = CliRunner().invoke(app, ["verify", str(path), "-p", str(policy), "--json"])
    assert outcome.exit_code == 4
    answer = json.loads(outcome.stdout.splitlines()[-1])
    assert (answer["holds"], answer["measured"]["k"], answer["measured"]["l of 'ill'"]) == (False, 2, 1)
    report = CliRunner().invoke(app, ["audit", str(path), "-p", str(policy), "-o", str(tmp_path / "report.html")])
    assert report.exit_code == 4
    assert "homogeneity" in (tmp_path / "report.html").read_text()


def test_an_identifier_in_the_file_is_refuted():
    policy = reticent.Policy.from_dict({"version": 1, "columns": COLUMNS | {"name": "identifier"}})
    table = line_list(["a", "b"]).append_column("name", pa.array(["x", "y"]))
    assert not reticent.verify(table, policy).holds


def test_the_helper_fails_with_the_claim_and_without_a_cell():
    with pytest.raises(AssertionError, match="distinct") as failure:
        assert_holds(line_list(["Secret"] * 4), rules(k=2, l=2))
    assert "Secret" not in str(failure.value)
    assert assert_holds(line_list(["a", "a", "b", "b"]), rules(k=2, l=2)).holds


def test_requirements_on_persons_are_listed_as_needing_the_original():
    policy = rules(k=2).to_dict() | {"person": "id"}
    policy["columns"] |= {"id": "identifier"}
    result = reticent.verify(line_list(["flu", "cold", "cold", "flu"]), reticent.Policy.from_dict(policy))
    assert result.holds
    assert result.unchecked == ("k = 2 of persons (needs the original)",)


@pytest.mark.parametrize("ages", [("20-29", "30-39"), ("<30", "30+"), ("<=29", ">29"), ("20 to 29", "\u226530")])
def test_ranges_in_other_notations_are_matched_with_the_input(ages):
    document = {"columns": {"id": "identifier", "age": "quasi", "ill": "sensitive"}, "person": "id"}
    policy = reticent.Policy.from_dict({"version": 1, "privacy": {"k": 2}} | document)
    young, old = ages
    table = pa.table({"age": [young, young, old, old], "ill": ["a", "b", "a", "b"]})
    input_ = pa.table({"id": ["p1", "p2", "p3", "p4"], "age": [20, 29, 30, 39], "ill": ["a", "b", "a", "b"]})
    assert reticent.verify(table, policy, original=input_).holds
    one = input_.set_column(0, "id", pa.array(["p1", "p1", "p3", "p4"]))
    assert [finding.claim for finding in reticent.verify(table, policy, original=one).refuted] == ["k = 2 of persons"]
    moved = input_.set_column(1, "age", pa.array([20, 30, 31, 39]))
    assert not reticent.verify(table, policy, original=moved).holds
