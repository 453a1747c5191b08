"""Read the available bytes of a file or a pipe, without waiting for more."""

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
    """Reads blocks of at most a few megabytes; a byte on `wake` ends the wait for a pipe.

    A file in another encoding or format is read as lines of UTF-8.
    """

    answers = False
    """Whether senders wait for an acknowledgment."""

    def __init__(self, name: str, *, wake: int | None = None, block: int = BLOCK) -> None:
        self.name = "standard input" if name == "-" else name
        self._wake, self._block = wake, block
        with ExitStack() as stack:
            with system_errors(f"{self.name} cannot be read", "Check the path and the permissions."):
                self._fd = os.dup(sys.stdin.fileno()) if name == "-" else open_private(name, os.O_RDONLY)
                stack.callback(self.close)
                kind = os.fstat(self._fd).st_mode
            if stat.S_ISDIR(kind):
                raise ConnectorError(f"{self.name} is a folder.", hint="Name a file, a pipe or a port.")
            self.regular, self._skip = stat.S_ISREG(kind), 0
            if self.regular and (lines := as_lines(name, self._fd)) is not None:
                with lines:
                    os.dup2(lines.fileno(), self._fd)
            if not self.regular:
                widen_pipe(self._fd)  # the writer can continue while a batch is committed
            stack.pop_all()

    def skip(self, offset: int) -> None:
        """Skip the bytes that were read before; called before the first read."""
        if self.regular:
            os.lseek(self._fd, offset, os.SEEK_SET)
        else:
            self._skip = offset

    def fingerprint(self, offset: int) -> str | None:
        """Return a fingerprint of a file up to an offset: of its start and of the bytes before the offset."""
        return fingerprint(self._fd, offset) if self.regular else None

    def read(self) -> bytes | None:
        """Return the bytes available now; empty at the end; None when woken."""
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
        handles = [self._fd] if self._wake is None else [self._fd, self._wake]
        if self._wake in readable_handles(handles):
            return None
        parts = [self._read_bytes(self._block)]
        size = len(parts[0])
        while parts[-1] and size < self._block and readable_handles([self._fd], 0):
            parts.append(self._read_bytes(self._block - size))
            size += len(parts[-1])
        return b"".join(parts)  # the next call sees the end again

    def _read_bytes(self, size: int) -> bytes:
        with system_errors(f"{self.name} cannot be read", "Fix the input and start again."):
            return os.read(self._fd, size)

    def recognize(self, stored: Container[str]) -> None:
        """Do nothing: no record is sent twice."""

    def receipts(self) -> list[str]:
        """Return nothing: records of a file have no names."""
        return []

    def acknowledge(self) -> None:
        """Do nothing: nobody waits for an acknowledgment."""

    def guess(self, data: bytes) -> str:
        """Return csv, ndjson or hl7, by the first bytes and the file name."""
        if data.lstrip(b"\x0b\r\n ").startswith(b"MSH"):
            return "hl7"
        if self.name.endswith((".ndjson", ".jsonl", ".json")):
            return "ndjson"
        return "ndjson" if data.lstrip()[:1] == b"{" else "csv"

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


_END = 64 << 10


def fingerprint(handle: int, size: int) -> str:
    """Return a fingerprint of the first `size` bytes of an open file: their number, their start and their end.

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
