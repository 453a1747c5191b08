"""The reference pages say what the program does: they are written from it, and this notices when they are not."""

import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).parent.parent.parent


def test_reference_pages_are_up_to_date():
    done = subprocess.run(
        [sys.executable, TOP / "scripts" / "reference", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
