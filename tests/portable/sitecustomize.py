"""What a Python without `fcntl` lacks, as on Windows; every Python that finds this folder on its path loads it at its start.

Locks are then those of Windows, played here on the locks of this system: of the first byte, by descriptor, gone with the process.
Files that this process has open are not moved, replaced or removed by Reticent, nor are folders that they lie in.
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
for name in (
    "fchmod",
    "fchown",
    "fdatasync",
    "lockf",
    "nice",
    "posix_fadvise",
    "posix_fallocate",
    "pread",
    "preadv",
    "pwrite",
    "pwritev",
):
    vars(os).pop(name, None)


def _ours():
    """Whether it is Reticent that asks; others know the system they are on."""
    frame = sys._getframe(2)
    for _ in range(6):
        if frame is None:
            return False
        if frame.f_globals.get("__name__", "").startswith("reticent"):
            return True
        frame = frame.f_back
    return False


def _open_here(path):
    place = os.path.realpath(path)
    for handle in os.listdir("/proc/self/fd"):  # noqa: PTH208 - as plain as what it looks after
        try:
            file = os.readlink(f"/proc/self/fd/{handle}")  # noqa: PTH115
        except OSError:  # the list's own
            continue
        if file == place or file.startswith(place + "/"):
            return True
    return False


def _refusing(call):
    def refuse(*paths, **options):
        if _ours() and not options and any(_open_here(path) for path in paths if isinstance(path, str | os.PathLike)):
            raise PermissionError(
                errno.EACCES, "The process cannot access the file because it is being used", str(paths[0])
            )
        return call(*paths, **options)

    return refuse


if os.path.isdir("/proc/self/fd"):  # noqa: PTH112
    for name in ("rename", "replace", "unlink", "remove", "rmdir"):
        setattr(os, name, _refusing(getattr(os, name)))
