"""`reticent audit` from end to end: exit codes, files, JSON, compare."""

from __future__ import annotations

import json

import pytest
import yaml

from reticent.cli import main

POLICY = {
    "version": 1,
    "person": "id",
    "columns": {
        "id": "identifier",
        "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20, 40]}},
        "ill": "sensitive",
    },
    "privacy": {"l": 3},
    "table": {"method": "anatomy"},
}


@pytest.fixture
def ward(tmp_path):
    lines = [f"p{i},{20 + i % 50},ill{i % 7}" for i in range(210)]
    (tmp_path / "in.csv").write_text("id,age,ill\n" + "\n".join(lines) + "\n")
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(POLICY))
    (tmp_path / "q.yaml").write_text(yaml.safe_dump(POLICY | {"privacy": {"k": 5}, "table": {"method": "optimal"}}))
    assert run("anonymize", tmp_path / "in.csv", "-p", tmp_path / "p.yaml", "-o", tmp_path / "out") == 0
    return tmp_path


def run(*args):
    with pytest.raises(SystemExit) as stopped:
        main([str(arg) for arg in args])
    return stopped.value.code or 0


def test_a_sound_release_gives_a_report_and_exit_0(ward, capsys):
    code = run(
        "audit", ward / "out", "-p", ward / "p.yaml", "--original", ward / "in.csv", "--population", "5000",
        "-o", ward / "r" / "report.html", "--json", "--seed", "1",
    )  # fmt: skip
    assert code == 0
    printed = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert printed == json.loads((ward / "r" / "audit.json").read_text())
    assert not printed["refuted"]
    assert (ward / "r" / "report.html").read_text().startswith("<!doctype html>")


def test_an_altered_release_is_refuted_with_exit_4(ward):
    st = ward / "out" / "st.csv"
    st.write_text(st.read_text().replace("ill1", "ill2"))
    assert run("audit", ward / "out", "-p", ward / "p.yaml", "-o", ward / "report.html") == 4
    assert "REFUTED" in (ward / "report.html").read_text()


def test_policies_are_compared_without_any_release(ward):
    code = run(
        "audit", "-p", ward / "p.yaml", "--original", ward / "in.csv", "--compare", ward / "p.yaml",
        "--compare", ward / "q.yaml", "-o", ward / "c.html",
    )  # fmt: skip
    assert code == 0
    assert {one["name"] for one in json.loads((ward / "audit.json").read_text())["compare"]} == {"p.yaml", "q.yaml"}


@pytest.mark.parametrize("args", [(), ("--compare", "p.yaml")])
def test_missing_input_is_wrong_usage(ward, args):
    assert run("audit", "-p", ward / "p.yaml", *args, "-o", ward / "x.html") == 2
    assert not (ward / "x.html").exists()
