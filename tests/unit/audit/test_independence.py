"""The judge shares no code with the accused: neither engines nor the models that engines ask."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = "import sys, reticent.audit; print('\\n'.join(sys.modules))"


@pytest.mark.parametrize("package", ["engine", "encode", "_core", "policy.models", "utility"])
def test_the_judge_loads_nothing_of_the_accused(package):
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "reticent.audit.verify" in loaded
    assert [name for name in loaded if name.startswith(f"reticent.{package}")] == []
