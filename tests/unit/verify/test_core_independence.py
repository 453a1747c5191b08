"""The verifier shares no code with the engines: it does not load the compiled core, and its part of the core uses no other part."""

import re
import subprocess
import sys
from pathlib import Path

LOADED = """
import sys, pkgutil, importlib, reticent.audit, reticent.verify
for package in (reticent.verify, reticent.audit):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
print([m for m in sys.modules if m.startswith(("reticent.engine", "reticent.encode", "reticent._core", "reticent.policy.models"))])
"""


def test_no_engine_is_loaded():
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_verifiers_part_of_the_core_uses_no_other_part():
    folder = Path(__file__).parents[3] / "core" / "src" / "verify"
    files = sorted(folder.rglob("*.rs"))
    used = {name for file in files for name in re.findall(r"crate::(\{[^}]*\}|\w+)", file.read_text(encoding="utf-8"))}
    assert len(files) > 3
    assert used <= {"py"}
    assert not any("super::super::super" in file.read_text(encoding="utf-8") for file in files)
