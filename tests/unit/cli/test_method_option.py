"""`--method` of stream, evolve and republish: the policy's section with another method, for life."""

import json

import pytest

from reticent.cli import main
from reticent.datasets.files import write_census, write_nps, write_series


def run(capsys, *words):
    with pytest.raises(SystemExit) as done:
        main([str(word) for word in words])
    said = capsys.readouterr()
    lines = said.out.splitlines()
    return done.value.code or 0, said.err, json.loads(lines[-1]) if lines and "--json" in words else None


def test_republish(tmp_path, capsys):
    write_series(tmp_path, 300, seed=1, releases=2)
    words = ["-p", tmp_path / "policy.yaml", "--store", tmp_path / "s.db", "--json"]
    code, _, told = run(
        capsys, "republish", tmp_path / "release_1.csv", "-o", tmp_path / "a", "--method", "m-distinct", *words
    )
    assert (code, told["method"]) == (0, "m-distinct")
    code, said, _ = run(capsys, "republish", tmp_path / "release_2.csv", "-o", tmp_path / "b", *words)
    assert code != 0  # a series keeps its method
    assert "policy" in said


def test_evolve(tmp_path, capsys):
    write_census(tmp_path / "c.csv", 100, seed=1)
    words = ["evolve", "init", tmp_path / "e.db", "-p", tmp_path / "c.policy.yaml", "--method", "encc", "--json"]
    code, _, told = run(capsys, *words)
    assert (code, told["method"]) == (0, "encc")


def test_stream(tmp_path, capsys):
    write_nps(tmp_path / "n.csv", 200, seed=1)
    words = ["-p", tmp_path / "n.policy.yaml", "--store", tmp_path / "n.db", "--to", tmp_path / "out.ndjson", "--json"]
    code, _, told = run(capsys, "stream", tmp_path / "n.csv", "--method", "delay-free", *words)
    assert code == 0
    assert "sau" in told["metrics"]


def test_an_unknown_method_is_refused_with_those_that_are_known(tmp_path, capsys):
    write_nps(tmp_path / "n.csv", 5, seed=1)
    words = ["-p", tmp_path / "n.policy.yaml", "--store", tmp_path / "n.db"]
    code, said, _ = run(capsys, "stream", tmp_path / "n.csv", "--method", "sugar", *words)
    assert code != 0
    assert "delay-free" in said
