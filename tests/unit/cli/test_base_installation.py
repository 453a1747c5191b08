"""What `pip install reticent` brings is enough to release and to verify; other commands name their extra."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from reticent.cli.failure import EXTRAS

TOP = Path(__file__).parent.parent.parent.parent
PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
BLOCKED = f"""
import sys
for name in {sorted(EXTRAS)!r}:
    sys.modules[name] = None
from reticent.cli import main
main(sys.argv[1:])
"""


def base(*words, cwd):
    command = [sys.executable, "-c", BLOCKED, *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    folder = tmp_path_factory.mktemp("house")
    assert base("datasets", "hospital", "-n", "300", "--seed", "1", "-o", "h.csv", cwd=folder).returncode == 0
    done = base("anonymize", "h.csv", "-p", "h.policy.yaml", "-o", "out", "--seed", "1", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_base_installation_releases_and_verifies(house):
    done = base("verify", "out", "-p", "h.policy.yaml", cwd=house)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ("audit", ("audit", "out", "-p", "h.policy.yaml", "-o", "report")),
        ("server", ("serve", "--demo", "--port", "0")),
        ("reproduce", ("reproduce", "delay-free", "--quick", "-o", "plots")),
        ("kafka", ("stream", "kafka://h/a", "-p", "feed.policy.yaml", "--store", "s.db", "--to", "kafka://h/b")),
    ],
)
def test_a_command_whose_extra_is_missing_names_it(house, extra, words):
    base("datasets", "feed", "-n", "50", "--seed", "1", "-o", "feed.ndjson", cwd=house)
    done = base(*words, cwd=house)
    assert done.returncode == 5, done.stderr
    assert f"pip install 'reticent[{extra}]'" in done.stderr


def test_every_extra_is_part_of_all_and_every_package_of_an_extra():
    extras = PROJECT["optional-dependencies"]
    together = re.search(r"\[(.*)\]", extras["all"][0])[1].split(",")
    assert together == sorted(set(extras) - {"all"})
    assert set(EXTRAS.values()) <= set(extras)


def test_the_base_has_no_heavy_package():
    names = {re.split(r"[\[>=<]", entry)[0] for entry in PROJECT["dependencies"]}
    assert not names & {"scipy", "scikit-learn", "matplotlib", "nicegui", "pandas", "polars", "duckdb", "pyspark"}
