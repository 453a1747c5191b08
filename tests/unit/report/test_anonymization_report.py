"""The report for a board: every figure is the audit's, every gap is marked, nothing is said that was not measured."""

import json

import pyarrow as pa
import pytest
from click.testing import CliRunner

from reticent import Policy, anonymize, audit
from reticent.cli import app
from reticent.errors import DataError
from reticent.report.anonymization_report import anonymization_report

RULES = {
    "version": 1,
    "columns": {"age": {"role": "quasi", "hierarchy": {"intervals": [10, 50]}}, "ill": "sensitive"},
    "privacy": {"k": 5, "l": 2},
}


@pytest.fixture(scope="module")
def figures():
    table = pa.table({"age": [str(20 + i % 40) for i in range(200)], "ill": [f"D{i * 7 % 11}" for i in range(200)]})
    policy = Policy.from_dict(RULES)
    release = anonymize(table, policy, method="optimal", seed=1)
    return audit(release, policy, seed=1).to_dict(), audit(release, policy, original=table, seed=1).to_dict()


def write(tmp_path, content):
    file = tmp_path / "audit.json"
    file.write_text(json.dumps(content))
    return file


def test_every_section_is_there_and_gaps_are_marked(tmp_path, figures):
    out = tmp_path / "report.md"
    result = CliRunner().invoke(app, ["report", str(write(tmp_path, figures[0])), "-o", str(out)])
    assert result.exit_code == 0
    text = out.read_text()
    assert [line[3:].split(".")[0] for line in text.splitlines() if line.startswith("## ")] == [
        "In brief",
        *(str(i) for i in range(1, 12)),
    ]
    for words in ("risk before; audit with --original", "--population", "signatures", "who decided the roles"):
        assert "[TO BE FILLED IN: " in text.partition(words)[0][-200:]
    risk = figures[0]["risk"]["prosecutor"]
    assert f"highest risk of a record: {risk['highest']:.1%}" in text
    assert "| age | quasi" in text


def test_what_was_measured_is_no_gap(tmp_path, figures):
    without, with_original = (anonymization_report(write(tmp_path, one)) for one in figures)
    assert "audit with --original" in without
    assert "audit with --original to measure" not in with_original
    assert f"mean risk: {figures[1]['initial_risk']['mean']:.1%}" in with_original


def test_linked_tables_are_told_of_as_persons(tmp_path):
    rules = {
        "version": 1,
        "person": "pid",
        "tables": {
            "people": {"person": "pid", "key": "pid", "columns": ["age"]},
            "ills": {"person": "pid", "columns": ["day", "ill"]},
        },
        "columns": {
            "pid": "identifier",
            "age": {"role": "quasi", "hierarchy": {"intervals": [10, 50]}},
            "day": {"role": "quasi", "hierarchy": {"dates": ["month", "year"]}, "transform": {"shift": 9}},
            "ill": "sensitive",
        },
        "privacy": {"k": 5, "l": 2},
    }
    ids, policy = [f"x{i}" for i in range(60)], Policy.from_dict(rules)
    tables = {
        "people": pa.table({"pid": ids, "age": [str(20 + i % 40) for i in range(60)]}),
        "ills": pa.table({"pid": ids, "day": ["2024-03-05"] * 60, "ill": [f"D{i * 7 % 11}" for i in range(60)]}),
    }
    release = anonymize(tables, policy, seed=1)
    text = anonymization_report(write(tmp_path, audit(release, policy, original=tables, seed=1).to_dict()))
    assert "highest risk of a person" in text
    assert "of a record" not in text
    assert "moved by the same number of days, at most 9" in text
    assert f"{release.metrics['rows_kept']:.0%} of all rows" in text.replace("100.0%", "100%")
    assert "All tables joined" in text
    assert "group number" not in text


def test_a_refuted_release_is_called_so(tmp_path, figures):
    said = anonymization_report(write(tmp_path, figures[0] | {"refuted": True}))
    assert "REFUTED: do not release" in said
    risky = figures[0]["risk"] | {"prosecutor": figures[0]["risk"]["prosecutor"] | {"highest": 0.5}}
    assert "50.0%, ABOVE the threshold" in anonymization_report(write(tmp_path, figures[0] | {"risk": risky}))


@pytest.mark.parametrize("content", ["x", [], {"format": 2}, {"format": 1}])
def test_something_else_is_refused(tmp_path, content):
    with pytest.raises(DataError, match="audit"):
        anonymization_report(write(tmp_path, content))
