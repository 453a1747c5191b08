"""What a Python without `fcntl` lacks, as on Windows; every Python that finds this folder on its path loads it at its start.

Locks are then those of Windows, played here on the locks of this system: of the first byte, by descriptor, gone with the process.
"""

import errno
import fcntl
import os
import subprocess  # noqa: F401 - before it can take this for Windows
import sys
from types import ModuleType


def locking(handle, mode, size):
    assert size == 1
    try:
        fcntl.flock(handle, fcntl.LOCK_UN if mode == msvcrt.LK_UNLCK else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise PermissionError(errno.EACCES, "Permission denied") from None


msvcrt = ModuleType("msvcrt")
msvcrt.LK_UNLCK, msvcrt.LK_NBLCK, msvcrt.locking = 0, 2, locking

sys.modules["fcntl"] = None
sys.modules["msvcrt"] = msvcrt
for name in ("fdatasync", "pread"):
    vars(os).pop(name, None)
