"""The verifier reads person identifiers by itself: a release that took one person for two is refuted, however it was made."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from counted_cases import policy, written_in_two_ways

import reticent
from reticent import Policy, anonymize, audit
from reticent.audit.risk.singling_out import singling_out
from reticent.cli import app
from reticent.datasets import visits
from reticent.errors import GuaranteeError
from reticent.verify import verify
from reticent.verify.original.persons import Input

RULES = {"k": 5, "l": 3, "suppression": 0.1}


def taken_for_two(table: pa.Table) -> pa.Table:
    """The table as an engine sees it that compares identifiers as written: every record belongs to another person."""
    names = pa.array([f"n{i}" for i in range(table.num_rows)])
    return table.set_column(table.column_names.index("person_id"), "person_id", names)


@pytest.mark.parametrize("method", ["optimal", "mondrian"])
def test_a_release_that_counted_one_person_as_two_is_refuted(method):
    whole, parted = written_in_two_ways(2000)
    rules = policy(RULES, method=method)
    release = anonymize(taken_for_two(parted), rules, seed=1)
    told = [verify(release, rules, original=Input(table)) for table in (whole, parted)]
    assert [one.holds for one in told] == [False, False]
    assert [f.claim for f in told[0].refuted] == [f.claim for f in told[1].refuted]
    sound = anonymize(parted, rules, seed=1)
    assert verify(sound, rules, original=Input(parted)).holds


@pytest.mark.parametrize("method", ["optimal", "anatomy"])
def test_the_gate_finds_an_engine_that_compares_identifiers_as_written(monkeypatch, method):
    monkeypatch.setattr("reticent.engine.identifiers.normalize_names", lambda column: column)
    parted = written_in_two_ways(2000)[1]
    with pytest.raises(GuaranteeError, match="verifier refuted"):
        anonymize(parted, policy(RULES if method != "anatomy" else {"l": 3}, method=method), seed=1)


def test_audit_with_the_original_finds_it_from_the_command_line(tmp_path):
    parted = written_in_two_ways(2000)[1]
    rules = policy(RULES, method="optimal")
    (tmp_path / "policy.json").write_text(json.dumps(rules.to_dict()))
    anonymize(taken_for_two(parted), rules, seed=1).to_dir(tmp_path / "out")
    pq.write_table(parted, tmp_path / "in.parquet")
    words = [
        "verify",
        str(tmp_path / "out"),
        "-p",
        str(tmp_path / "policy.json"),
        "--original",
        str(tmp_path / "in.parquet"),
    ]
    assert CliRunner().invoke(app, words).exit_code == 4
    assert not audit(tmp_path / "out", rules, original=parted).result.holds


def test_records_that_count_are_those_of_one_person():
    """`records: first` of somebody who is written in two ways is one record."""
    table = visits.generate(200, seed=1, mean=2.0).select(["patient_id", "sex", "region", "diagnosis"])
    names = [f" {name}" if i % 2 else name for i, name in enumerate(table.column("patient_id").to_pylist())]
    columns = {"patient_id": "identifier", "sex": "quasi", "region": "quasi", "diagnosis": "sensitive"}
    rules = {"version": 1, "person": {"column": "patient_id", "records": "first"}, "columns": columns}
    rules = Policy.from_dict(rules | {"privacy": {"k": 3, "suppression": 0.2}, "table": {"method": "optimal"}})
    odd = table.set_column(0, "patient_id", pa.array(names))
    assert verify(anonymize(odd, rules, seed=1), rules, original=Input(odd)).holds


def test_risk_counts_each_person_once():
    whole, parted = written_in_two_ways(600)
    quasi = ["age", "gender", "education"]
    told = [singling_out(table, quasi, person="person_id") for table in (whole, parted)]
    assert [one.persons for one in told] == [300, 300]
    assert told[0].unique == told[1].unique


def test_the_verifier_reads_the_original_by_itself(monkeypatch):
    """The verifier folds identifiers and combines columns, not the engine that made the release."""
    parted = written_in_two_ways(2000)[1]
    rules = policy(RULES, method="optimal")
    release = anonymize(parted, rules, seed=1)
    monkeypatch.setattr("reticent.engine.identifiers.normalize_names", taken_for_two)
    assert reticent.verify(release, rules, original=parted).holds
    both = {"age": "quasi", "ill": {"role": "sensitive", "combine": ["word", "dose"]}}
    rules = Policy.from_dict({"version": 1, "columns": both, "privacy": {"k": 2}, "table": {"method": "optimal"}})
    table = pa.table({"age": [1, 1, 2, 2], "word": ["a", "b", "a", None], "dose": [1, 2, 1, 3]})
    release = anonymize(table, rules, seed=1)
    assert reticent.verify(release, rules, original=table).holds
    other = table.set_column(2, "dose", pa.array([1, 2, 1, 4]))
    assert not reticent.verify(release, rules, original=other).holds
