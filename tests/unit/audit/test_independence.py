"""The judge shares no code with the accused: neither engines nor the models that engines ask."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import sys, reticent.audit
judges = sys.modules["reticent.audit.verify"]
for place in (*judges.JUDGES.values(), *judges.SEQUENCE_JUDGES.values(), ("stream.judge",), ("original.persons",), ("veil.original",)):
    judges.judge_in(*place)
print("\\n".join(sys.modules))
"""


@pytest.mark.parametrize("package", ["engine", "encode", "_core", "policy.models", "utility"])
def test_the_judge_loads_nothing_of_the_accused(package):
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert {"reticent.audit.verify", "reticent.audit.veil.trails", "reticent.audit.veil.original"} <= set(loaded)
    assert [name for name in loaded if name.startswith(f"reticent.{package}")] == []


def test_a_judge_is_loaded_where_a_release_of_its_shape_is():
    code = "import sys, reticent.audit; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "reticent.audit.linked" not in done.stdout.split()
