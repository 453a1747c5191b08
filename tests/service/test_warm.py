"""What the first batch would have to wait for is done before the server says that it serves."""

from __future__ import annotations

import subprocess
import sys

_SCRIPT = """
import gc, sys
from reticent.service import run, wire
run._warm()
assert gc.get_freeze_count() > 10_000, "what stays is looked through again and again"
before = set(sys.modules)
wire.from_ndjson(b'{"a": "x", "b": 1}', ["a", "b"])
print(sorted(set(sys.modules) - before))
"""


def test_the_first_batch_imports_nothing():
    found = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
