"""File operations that differ between operating systems: permissions, flushing, moving, locks, waiting.

On Windows a file has no mode bits: its folder sets the permissions. The names in a folder cannot be flushed there, and
waiting for a pipe cannot be interrupted. Everything else is the same.
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
    """Open a file. A new file is accessible to its owner only."""
    return os.open(path, flags | _BINARY, OWNER_FILE)


def open_new(path: str | os.PathLike[str]) -> int:
    """Open a new file for writing. The file must not exist."""
    return open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)


def make_folder(path: Path, *, parents: bool = False, exist_ok: bool = False) -> None:
    """Create a folder that is accessible to its owner only."""
    path.mkdir(mode=OWNER_FOLDER, parents=parents, exist_ok=exist_ok)


def is_readable_by_others(path: Path) -> bool:
    """Whether the mode bits give access to other users; always False on Windows, which has no mode bits."""
    return not WINDOWS and bool(stat.S_IMODE(path.stat().st_mode) & 0o077)


def sync(path: Path) -> None:
    """Flush a file, or the names in a folder, to disk."""
    if WINDOWS and path.is_dir():
        return
    handle = os.open(path, (os.O_RDWR if WINDOWS else os.O_RDONLY) | _BINARY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_data(handle: int) -> None:
    """Flush written data to disk."""
    getattr(os, "fdatasync", os.fsync)(handle)


def read_at(handle: int, size: int, offset: int) -> bytes:
    """Read bytes at an offset, without changing the position of the file."""
    with _seek(handle, offset):
        return os.read(handle, size)


def write_at(handle: int, data: bytes, offset: int) -> None:
    """Write a few bytes at an offset, without changing the position of the file."""
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
    """Rename a finished file or folder, and replace an existing file.

    Windows refuses while another process has one of the files open. Virus scanners open every new file, so the move is retried.
    """
    for pause in _RETRY_SECONDS if WINDOWS else ():
        with contextlib.suppress(PermissionError):
            source.replace(target)
            return
        time.sleep(pause)
    source.replace(target)


@contextlib.contextmanager
def staged_path(path: Path) -> Iterator[Path]:
    """Yield a hidden path next to `path`. The file or folder written there is renamed to `path`, or removed if anything fails."""
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
    """Return the descriptors that can be read without waiting. Windows cannot tell, so there the first one is returned."""
    if WINDOWS:
        return list(handles[:1]) if timeout is None else []
    return list(select.select(handles, [], [], timeout)[0])


def set_idle_priority() -> None:
    """Give this process the lowest priority, if the system supports it."""
    _set_priority(nice=19, session=10)


def set_low_priority() -> None:
    """Give this process a lower priority, about a third of the normal CPU share: for work that a user waits for."""
    _set_priority(nice=5, session=5)


def _set_priority(nice: int, session: int) -> None:
    """Lower the priority of the process, in a new session of its own.

    Linux may schedule whole sessions against each other and against kernel threads, which write commits to disk. A low priority within
    a busy session is not low compared with them. A session gets at least a tenth of the normal share, so that its work finishes even on
    a busy machine.
    """
    if hasattr(os, "nice"):
        os.nice(nice)
    with contextlib.suppress(OSError, AttributeError):
        os.setsid()
        Path("/proc/self/autogroup").write_text(str(session), encoding="ascii")


def widen_pipe(handle: int) -> None:
    """Enlarge a pipe if possible, so that its writer can continue while its reader is busy."""
    if fcntl is None:
        return
    with contextlib.suppress(OSError, AttributeError):
        fcntl.fcntl(handle, fcntl.F_SETPIPE_SZ, _PIPE)


@contextlib.contextmanager
def file_lock(path: Path, wait: float, pause: float) -> Iterator[None]:
    """Lock a file within the block. The lock ends with the process, even if it is killed.

    Raises:
        TimeoutError: another process has the lock for longer than `wait` seconds.
        OSError: the file cannot be created or locked.
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
    """Lock an open file. Return False if another process has the lock."""
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
    """Unlock explicitly: a child process may have the file open, too."""
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_UN)
    else:
        windows = import_module("msvcrt")
        windows.locking(handle, windows.LK_UNLCK, 1)
