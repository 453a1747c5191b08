"""The verifier shares no code with the engines, nor with the models that engines use."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import sys, reticent.verify
verifier = sys.modules["reticent.verify.verify"]
shapes = (*verifier.VERIFIERS.values(), *verifier.SEQUENCE_VERIFIERS.values(), ("stream.verifier", "verify_stream"))
originals = ((module, "compare_with_original") for module in ("original.persons", "veil.original", "stream.original"))
for place in (*shapes, *originals):
    verifier.load_verifier(*place)
print("\\n".join(sys.modules))
"""


@pytest.mark.parametrize("package", ["engine", "encode", "_core", "policy.models", "utility"])
def test_the_verifier_loads_nothing_of_the_engines(package):
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert {"reticent.verify.verify", "reticent.verify.veil.trajectories", "reticent.verify.veil.original"} <= set(
        loaded
    )
    assert [name for name in loaded if name.startswith(f"reticent.{package}")] == []


def test_a_verifier_is_loaded_only_for_a_release_of_its_shape():
    code = "import sys, reticent.verify; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "reticent.verify.linked" not in done.stdout.split()
