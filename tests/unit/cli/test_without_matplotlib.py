"""Only `reticent reproduce` draws: everything else works where matplotlib is not installed."""

import subprocess
import sys
import tomllib
from pathlib import Path

TOP = Path(__file__).parent.parent.parent.parent

BLOCKED = """
import sys
sys.modules["matplotlib"] = None
import reticent
from reticent.cli import COMMANDS, main
from importlib import import_module
for module in COMMANDS.values():
    import_module(module)
main(sys.argv[1:])
"""


def blocked(*words, cwd):
    command = [sys.executable, "-c", BLOCKED, *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def test_the_demo_needs_no_matplotlib(tmp_path):
    demo = blocked("demo", "--rows", "1000", "-o", "out", cwd=tmp_path)
    assert demo.returncode == 0, demo.stderr


def test_reproduce_names_the_extra_before_it_works(tmp_path):
    refused = blocked("reproduce", "delay-free", "--quick", "-o", "out", cwd=tmp_path)
    assert refused.returncode == 5, refused.stderr
    assert "reticent[reproduce]" in refused.stderr
    assert not (tmp_path / "out").exists()


def test_no_package_is_required_twice():
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    names = [entry.partition(">")[0] for entry in project["dependencies"]]
    assert len(names) == len(set(names))
    assert "matplotlib" not in names
