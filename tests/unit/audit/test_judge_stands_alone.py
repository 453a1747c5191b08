"""The judge shares no code with the accused: not even the compiled core is loaded by it."""

import subprocess
import sys

LOADED = """
import sys, pkgutil, importlib, reticent.audit
for module in pkgutil.walk_packages(reticent.audit.__path__, "reticent.audit."):
    importlib.import_module(module.name)
print([m for m in sys.modules if m.startswith(("reticent.engine", "reticent.encode", "reticent._core", "reticent.policy.models"))])
"""


def test_no_engine_is_loaded():
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
