"""What operating systems do differently about files: rights, flushing, moving, locks, waiting. Nothing else calls them by name.

On Windows a file has no mode bits: it belongs to whom its folder belongs to. Names of a folder cannot be flushed there,
and the wait for a pipe cannot be cut short; everything else is the same.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import select
import shutil
import stat
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

fcntl: Any = None
with contextlib.suppress(ImportError):  # on Windows
    fcntl = import_module("fcntl")

OWNER_FILE = 0o600
OWNER_FOLDER = 0o700
WINDOWS = os.name == "nt"
_BINARY = getattr(os, "O_BINARY", 0)
_PIPE = 1 << 20
_RETRY_SECONDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
_LOCK_ERRORS = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)


def open_private(path: str | os.PathLike[str], flags: int) -> int:
    """A descriptor of a file that, where it is made here, belongs to its owner alone."""
    return os.open(path, flags | _BINARY, OWNER_FILE)


def open_new(path: str | os.PathLike[str]) -> int:
    """A descriptor for writing a file that must not exist yet."""
    return open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)


def make_folder(path: Path, *, parents: bool = False, exist_ok: bool = False) -> None:
    """A folder of its owner's alone."""
    path.mkdir(mode=OWNER_FOLDER, parents=parents, exist_ok=exist_ok)


def is_readable_by_others(path: Path) -> bool:
    """Whether the mode bits let anybody but the owner in; never on Windows, where they say nothing."""
    return not WINDOWS and bool(stat.S_IMODE(path.stat().st_mode) & 0o077)


def sync(path: Path) -> None:
    """Waits until the disk has a file, or the names in a folder."""
    if WINDOWS and path.is_dir():
        return
    handle = os.open(path, (os.O_RDWR if WINDOWS else os.O_RDONLY) | _BINARY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_data(handle: int) -> None:
    """Waits until the disk has what was written."""
    getattr(os, "fdatasync", os.fsync)(handle)


def read_at(handle: int, size: int, offset: int) -> bytes:
    """Bytes of a file, wherever its position is."""
    with _seek(handle, offset):
        return os.read(handle, size)


def write_at(handle: int, data: bytes, offset: int) -> None:
    """Writes a few bytes of a file, wherever its position is."""
    with _seek(handle, offset):
        os.write(handle, data)


@contextlib.contextmanager
def _seek(handle: int, offset: int) -> Iterator[None]:
    before = os.lseek(handle, 0, os.SEEK_CUR)
    try:
        os.lseek(handle, offset, os.SEEK_SET)
        yield
    finally:
        os.lseek(handle, before, os.SEEK_SET)


def move(source: Path, target: Path) -> None:
    """Gives a finished file or folder its name, in the place of a file that has it.

    Windows refuses as long as anybody has one of them open, and a scanner for viruses opens whatever is new: then it is tried again.
    """
    for pause in _RETRY_SECONDS if WINDOWS else ():
        with contextlib.suppress(PermissionError):
            source.replace(target)
            return
        time.sleep(pause)
    source.replace(target)


@contextlib.contextmanager
def staged_path(path: Path) -> Iterator[Path]:
    """A hidden name beside a path: the file or folder that is made there takes its place once it is on disk, and is gone if anything fails."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")
    try:
        yield draft
        sync(draft)
        move(draft, path)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        with contextlib.suppress(OSError):
            draft.unlink()
        raise
    sync(path.parent)


def readable_handles(handles: Sequence[int], timeout: float | None = None) -> list[int]:
    """Which of some descriptors can be read without waiting; on Windows nobody can say, and the first is read."""
    if WINDOWS:
        return list(handles[:1]) if timeout is None else []
    return list(select.select(handles, [], [], timeout)[0])


def set_idle_priority() -> None:
    """Lets every other process go first, where the system has an order of them."""
    _set_priority(nice=19, session=10)


def set_low_priority() -> None:
    """Lets others go first and still gets a third of what they get: for work that somebody waits for."""
    _set_priority(nice=5, session=5)


def _set_priority(nice: int, session: int) -> None:
    """Lowers the process, and the session that it leaves its own for.

    Linux may weigh whole sessions against each other and against its own threads, which bring a commit to disk; what is low within
    a busy session is not low beside them. A session gets at least a tenth of what an ordinary one gets, so that its work comes to
    an end on a machine that is never idle, too.
    """
    if hasattr(os, "nice"):
        os.nice(nice)
    with contextlib.suppress(OSError, AttributeError):
        os.setsid()
        Path("/proc/self/autogroup").write_text(str(session), encoding="ascii")


def widen_pipe(handle: int) -> None:
    """A larger pipe lets its writer go on while its reader is busy; where it cannot be had, it stays as it is."""
    if fcntl is None:
        return
    with contextlib.suppress(OSError, AttributeError):
        fcntl.fcntl(handle, fcntl.F_SETPIPE_SZ, _PIPE)


@contextlib.contextmanager
def file_lock(path: Path, wait: float, pause: float) -> Iterator[None]:
    """Hold the lock of a file, which vanishes with the process however it dies.

    Raises:
        TimeoutError: another holds it for longer than `wait` seconds.
        OSError: the file cannot be made or locked.
    """
    handle = open_private(path, os.O_RDWR | os.O_CREAT)
    try:
        deadline = time.monotonic() + wait
        while not _lock(handle):
            if time.monotonic() >= deadline:
                raise TimeoutError
            time.sleep(pause)
        try:
            yield
        finally:
            _unlock(handle)
    finally:
        os.close(handle)


def _lock(handle: int) -> bool:
    """Takes the lock of an open file, unless another has it."""
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            windows = import_module("msvcrt")
            windows.locking(handle, windows.LK_NBLCK, 1)
    except OSError as error:
        if error.errno in _LOCK_ERRORS:
            return False
        raise
    return True


def _unlock(handle: int) -> None:
    """Said aloud: a child of this process may have the file open, too."""
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_UN)
    else:
        windows = import_module("msvcrt")
        windows.locking(handle, windows.LK_UNLCK, 1)
