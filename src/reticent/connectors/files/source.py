"""Opening what the caller named: a path, ``-`` for standard input, or a binary stream; gzip is unpacked."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import shutil
import sys
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from reticent.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

SourceLike = str | os.PathLike[str] | BinaryIO

# Enough for any sane header and for some thousand rows to guess the dialect from.
SAMPLE = 1 << 20
_GZIP = b"\x1f\x8b"


class _Replay(io.RawIOBase):
    """A stream whose first bytes were already looked at."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        super().__init__()
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if self._head:
            size = len(self._head) if size < 0 else size
            part, self._head = self._head[:size], self._head[size:]
            return part
        return self._rest.read(size)


@dataclass(frozen=True)
class Opened:
    """An open source: its name for messages, its first bytes, and the whole of it as a stream."""

    name: str
    head: bytes
    stream: BinaryIO
    path: Path | None

    @property
    def whole(self) -> bool:
        """Whether the sample already is all there is."""
        return len(self.head) < SAMPLE


@contextlib.contextmanager
def opened(source: SourceLike) -> Iterator[Opened]:
    """Open a source for one pass."""
    with contextlib.ExitStack() as stack:
        name, path, raw = _raw(source, stack)
        with read_errors(name):
            head = _read_fully(raw, SAMPLE)
            if head.startswith(_GZIP):
                raw = cast("BinaryIO", stack.enter_context(gzip.open(_Replay(head, raw))))
                head = _read_fully(raw, SAMPLE)
        if not head:
            raise DataError(f"{name} is empty.", hint="Give a file with a header line and at least one row.")
        yield Opened(name, head, cast("BinaryIO", _Replay(head, raw)), path)


@contextlib.contextmanager
def read_errors(name: str) -> Iterator[None]:
    """Say in our words what the system said about reading; its own words may carry more than they should."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise DataError(f"{name} is a damaged gzip file.", hint="Pack or copy it again.") from None
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "the read failed"
        raise DataError(f"{name} cannot be read: {reason}.", hint="Check the path and the permissions.") from None


@contextlib.contextmanager
def seekable(source: Opened) -> Iterator[BinaryIO]:
    """The source as a file one can jump about in; a pipe is first copied to an unnamed temporary file."""
    if source.path is not None:
        with source.path.open("rb") as file:
            magic = file.read(2)
            file.seek(0)
            if magic != _GZIP:
                yield file
                return
    with tempfile.TemporaryFile() as copy:
        shutil.copyfileobj(source.stream, copy)
        copy.seek(0)
        yield cast("BinaryIO", copy)


def _raw(source: SourceLike, stack: contextlib.ExitStack) -> tuple[str, Path | None, BinaryIO]:
    if isinstance(source, (str, os.PathLike)):
        if os.fspath(source) == "-":
            return "standard input", None, sys.stdin.buffer
        path = Path(source)
        if path.is_dir():
            raise DataError(f"{path} is a directory.", hint="Name a file in it.")
        with read_errors(str(path)):
            file = stack.enter_context(path.open("rb"))
        return str(path), path if path.is_file() else None, file
    return "the input stream", None, source


def _read_fully(stream: BinaryIO, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size and (part := stream.read(size - len(parts))):
        parts += part
    return bytes(parts)
