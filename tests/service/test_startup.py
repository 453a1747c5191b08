"""What the first batch, or every so often some later one, would have to wait for is done before the server serves."""

from __future__ import annotations

import subprocess
import sys

_SCRIPT = """
import sys
from reticent.service import run

class Stop(BaseException):
    pass

def served(self, sockets):
    import gc
    assert gc.get_freeze_count() > 10_000, "what stays is looked through again and again"
    assert self.config.loaded
    assert "pandas" not in sys.modules
    raise Stop

run.uvicorn.Server.run = served
from reticent.cli import entry
sys.argv = ["reticent", "serve", "--store", sys.argv[1], "--no-studio", "--port", "0"]
try:
    entry()
except Stop:
    print("as it should be")
"""


def test_what_stays_in_memory_is_set_aside(tmp_path):
    command = [sys.executable, "-c", _SCRIPT, str(tmp_path / "store.db")]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.stdout.strip() == "as it should be", found.stderr
