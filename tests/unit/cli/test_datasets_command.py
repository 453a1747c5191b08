from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from reticent.cli.datasets import app


def run(*words: str):
    return CliRunner().invoke(app, list(words))


@pytest.mark.parametrize("kind", ["hospital", "census", "nps", "feed"])
def test_one_file_and_its_policy(tmp_path, kind):
    result = run(kind, "-n", "50", "--seed", "1", "-o", str(tmp_path / "x.csv"), "--json")
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout.splitlines()[-1])
    assert figures["published"] == 50
    assert {"input", "withheld", "suppressed", "seconds", "guarantee", "metrics"} <= set(figures)
    assert (tmp_path / "x.policy.yaml").exists()
    assert len((tmp_path / "x.csv").read_text().splitlines()) == 51


def test_layout(tmp_path):
    result = run("census", "-n", "5", "-o", str(tmp_path / "x.csv"), "--layout", "m-distinct")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "x.csv").read_text().startswith("person_id,age,gender,")


def test_series(tmp_path):
    result = run("series", "-n", "50", "--seed", "1", "--releases", "2", "-o", str(tmp_path / "s"), "--json")
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout.splitlines()[-1])
    lines = sum(len(path.read_text().splitlines()) - 1 for path in (tmp_path / "s").glob("release_*.csv"))
    assert figures["published"] == lines
    assert len(figures["files"]) == 5


def test_without_a_seed_each_call_differs(tmp_path):
    for name in "ab":
        assert run("hospital", "-n", "20", "-o", str(tmp_path / f"{name}.csv")).exit_code == 0
    assert (tmp_path / "a.csv").read_bytes() != (tmp_path / "b.csv").read_bytes()


def test_without_json_standard_output_stays_empty(tmp_path):
    assert run("hospital", "-n", "20", "-o", str(tmp_path / "a.csv")).stdout == ""


def test_rows_are_visits(tmp_path):
    result = run("hospital", "-n", "600", "--visits", "3", "--seed", "1", "-o", str(tmp_path / "x.csv"))
    assert result.exit_code == 0, result.output
    lines = (tmp_path / "x.csv").read_text().splitlines()[1:]
    assert (len(lines), len({line.split(",")[0] for line in lines})) == (600, 200)


@pytest.mark.parametrize(("kind", "name"), [("feed", "x.csv"), ("adt", "adt")])
def test_an_outbreak_on_request(tmp_path, kind, name):
    def written(folder: str, *words: str) -> str:
        path = tmp_path / folder / name
        result = run(kind, "-n", "3000", "--seed", "1", "-o", str(path), *words)
        assert result.exit_code == 0, result.output
        return (path if kind == "feed" else path / "adt.hl7").read_text()

    usual, influenza = written("a"), written("b", "--outbreak")
    migraine = written("c", "--outbreak", "--disease", "migraine")
    assert influenza.count("influenza") > 1.5 * usual.count("influenza")
    assert migraine.count("migraine") > 1.5 * usual.count("migraine")


@pytest.mark.parametrize(
    "words",
    [
        ("hospital", "-n", "0", "-o", "x.csv"),
        ("nothing",),
        ("hospital", "-n", "5"),
        ("feed", "-o", "x.csv", "--disease", "influenza"),
    ],
)
def test_wrong_usage_is_exit_two(words):
    assert run(*words).exit_code == 2
