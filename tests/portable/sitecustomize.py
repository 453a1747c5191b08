"""What a Python without `fcntl` lacks, as on Windows; every Python that finds this folder on its path loads it at its start.

Only filelock keeps it: it has a lock for each system, and would take one for none that outlives a killed process.
"""

import contextlib
import os
import sys

with contextlib.suppress(ImportError):
    import filelock  # noqa: F401

sys.modules["fcntl"] = None
for name in ("fdatasync", "pread"):
    vars(os).pop(name, None)
