"""Bytes from a file or a pipe: as many as are there, never waiting for more."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Container
from contextlib import ExitStack

from reticent.connectors.files.atomic import system_errors
from reticent.connectors.stream.line_conversion import as_lines
from reticent.disk import open_private, read_at, readable_handles, widen_pipe
from reticent.errors import ConnectorError

BLOCK = 4 << 20


class FileSource:
    """Reads blocks of at most a few megabytes; a signal on `wake` ends the wait for a pipe.

    A file of another encoding or format is read as lines of UTF-8.
    """

    answers = False
    """Whether a sender waits to hear that what it sent is stored."""

    def __init__(self, name: str, *, wake: int | None = None, block: int = BLOCK) -> None:
        self.name = "standard input" if name == "-" else name
        self._wake, self._block = wake, block
        with ExitStack() as stack:
            with system_errors(f"{self.name} cannot be read", "Check the path."):
                self._fd = os.dup(sys.stdin.fileno()) if name == "-" else open_private(name, os.O_RDONLY)
                stack.callback(self.close)
                kind = os.fstat(self._fd).st_mode
            if stat.S_ISDIR(kind):
                raise ConnectorError(f"{self.name} is a folder.", hint="A stream reads one file, a pipe, or a port.")
            self.regular, self._skip = stat.S_ISREG(kind), 0
            if self.regular and (lines := as_lines(name, self._fd)) is not None:
                with lines:
                    os.dup2(lines.fileno(), self._fd)
            if not self.regular:
                widen_pipe(self._fd)  # the writer goes on while a batch is committed
            stack.pop_all()

    def skip(self, offset: int) -> None:
        """Leaves out what was read before; called before the first read."""
        if self.regular:
            os.lseek(self._fd, offset, os.SEEK_SET)
        else:
            self._skip = offset

    def fingerprint(self, offset: int) -> str | None:
        """A fingerprint of a file up to a place: of its beginning, and of what stands before the place."""
        return fingerprint(self._fd, offset) if self.regular else None

    def read(self) -> bytes | None:
        """What is there now; empty at the end; None when woken."""
        while True:
            block = self._read_ready()
            if not block or not self._skip:
                return block
            left, self._skip = block[self._skip :], max(0, self._skip - len(block))
            if left:
                return left

    def _read_ready(self) -> bytes | None:
        if self.regular:
            return self._read_bytes(self._block)
        watched = [self._fd] if self._wake is None else [self._fd, self._wake]
        if self._wake in readable_handles(watched):
            return None
        parts = [self._read_bytes(self._block)]
        size = len(parts[0])
        while parts[-1] and size < self._block and readable_handles([self._fd], 0):
            parts.append(self._read_bytes(self._block - size))
            size += len(parts[-1])
        return b"".join(parts)  # at the end, the next call sees it again

    def _read_bytes(self, size: int) -> bytes:
        with system_errors(f"{self.name} cannot be read", "Start again when it can."):
            return os.read(self._fd, size)

    def recognize(self, stored: Container[str]) -> None:
        """Nothing is sent twice."""

    def receipts(self) -> list[str]:
        """Records have no names of their own."""
        return []

    def acknowledge(self) -> None:
        """Nobody waits for an answer."""

    def guess(self, data: bytes) -> str:
        """csv, ndjson or hl7, by how the input begins and what it is called."""
        if data.lstrip(b"\x0b\r\n ").startswith(b"MSH"):
            return "hl7"
        if self.name.endswith((".ndjson", ".jsonl", ".json")):
            return "ndjson"
        return "ndjson" if data.lstrip()[:1] == b"{" else "csv"

    def close(self) -> None:
        """Closes the file."""
        os.close(self._fd)


_END = 64 << 10


def fingerprint(handle: int, size: int) -> str:
    """Of the first `size` bytes of an open file: their number, the beginning and the end of them.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryFile() as file:
        ...     _ = file.write(b"one line"), file.flush()
        ...     before = fingerprint(file.fileno(), 4)
        ...     _ = file.write(b", one more"), file.flush()
        ...     before == fingerprint(file.fileno(), 4), before == fingerprint(file.fileno(), 5)
        (True, False)
    """
    last = max(0, size - _END)
    ends = read_at(handle, min(size, _END), 0), read_at(handle, size - last, last)
    digest = hashlib.blake2b(digest_size=12)
    for end in (str(size).encode(), *ends):
        digest.update(len(end).to_bytes(8, "little") + end)
    return digest.hexdigest()
