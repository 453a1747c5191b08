"""Runs the harnesses of stores, which are processes of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parents[1] / "integration"


def harness(name, folder, *words, preload=None):
    """What a harness found; `preload` is loaded before libc."""
    command = [sys.executable, HERE / name, folder, *words]
    environment = os.environ | ({"LD_PRELOAD": str(preload)} if preload else {})
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
