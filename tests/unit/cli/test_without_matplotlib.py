"""Only `reticent reproduce` draws: everything else works where matplotlib is not installed."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent.parent.parent

BLOCKED = """
import sys
sys.modules["matplotlib"] = None
"""
EVERYTHING = """
import pkgutil
from importlib import import_module
import reticent
for module in pkgutil.walk_packages(reticent.__path__, "reticent."):
    if not module.name.endswith((".plots", "__main__")):
        import_module(module.name)
"""
COMMAND = """
from reticent.cli import main
main(sys.argv[1:])
"""


def blocked(program, *words, cwd):
    command = [sys.executable, "-c", BLOCKED + program, *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_every_module_but_the_plots_loads_without_matplotlib(tmp_path):
    loaded = blocked(EVERYTHING, cwd=tmp_path)
    assert loaded.returncode == 0, loaded.stderr


def test_a_command_works_without_matplotlib(tmp_path):
    run = blocked(COMMAND, "datasets", "hospital", "-n", "100", "-o", "patients.csv", cwd=tmp_path)
    assert run.returncode == 0, run.stderr


def test_reproduce_names_the_extra_before_it_works(tmp_path):
    refused = blocked(COMMAND, "reproduce", "delay-free", "--quick", "-o", "out", cwd=tmp_path)
    assert refused.returncode == 5, refused.stderr
    assert "reticent[reproduce]" in refused.stderr
    assert not (tmp_path / "out").exists()


def test_no_package_is_required_twice():
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    names = [entry.partition(">")[0] for entry in project["dependencies"]]
    assert len(names) == len(set(names))
    assert "matplotlib" not in names
