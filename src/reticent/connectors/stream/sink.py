"""Write released bytes to a file or to standard output, exactly as in the outbox; write dead letters."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import orjson

from reticent.connectors.files.atomic import system_errors, write_text
from reticent.disk import open_private, read_at, sync_data
from reticent.errors import ConnectorError, StateError
from reticent.store import DeadLetter
from reticent.verify.published import CODEBOOK_SUFFIX


def open_sink(name: str) -> FileSink | StandardOutput:
    """Open a sink by its name on the command line."""
    return StandardOutput() if name == "-" else FileSink(Path(name))


class FileSink:
    """A file; after a crash it is truncated to the confirmed bytes, and the rest is sent again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with _translate_errors(str(path)):
            self._fd = open_private(path, os.O_RDWR | os.O_CREAT)

    def describe(self, codebook: bytes) -> None:
        """Write the codebook next to the file, completely or not at all."""
        place = self._path.with_name(self._path.name + CODEBOOK_SUFFIX)
        if place.is_file():
            existing = place.read_bytes()
            if existing == codebook:
                return
            if not existing.startswith(b'{"type":"codebook"'):
                raise foreign_file_error(place)
        write_text(place, codebook.decode())

    def resume(self, sent: int, waiting: int) -> None:
        """Truncate unconfirmed bytes, which the store still has; refuse a file that has more than those."""
        size = os.fstat(self._fd).st_size
        if size < sent:
            raise StateError(
                f"{self._path} has {size:,} bytes, but the store has sent {sent:,}.",
                hint="Restore the file. A new store with the same input would publish the same people again.",
            )
        if size > sent + waiting or (sent == 0 and not self._is_ours()):
            raise foreign_file_error(self._path)
        os.ftruncate(self._fd, sent)
        os.lseek(self._fd, sent, os.SEEK_SET)

    def _is_ours(self) -> bool:
        """Return whether unconfirmed bytes are lines of a stream, so that they may be truncated."""
        return read_at(self._fd, 8, 0) in (b'{"type":', b"")

    def write(self, payload: bytes) -> None:
        """Write the bytes and wait until they are on disk."""
        with _translate_errors(str(self._path)):
            _write_all(self._fd, payload)
            sync_data(self._fd)

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


def foreign_file_error(path: Path) -> ConnectorError:
    """Return the error for a file that contains something else, such as the lines of another stream."""
    return ConnectorError(
        f"{path} already exists with content that this store did not release.",
        hint="Use the store with which the file was started. If it is lost, continue from a backup with `reticent store restore --published`. "
        "Write another stream to another file.",
    )


class StandardOutput:
    """Standard output; after a crash the last batch may be written twice, byte for byte the same."""

    def describe(self, codebook: bytes) -> None:
        """Do nothing: a pipe has no codebook file."""

    def resume(self, sent: int, waiting: int) -> None:
        """Do nothing: a pipe cannot be truncated."""

    def write(self, payload: bytes) -> None:
        """Write all bytes."""
        with _translate_errors("standard output"):
            _write_all(sys.stdout.fileno(), payload)

    def close(self) -> None:
        """Do nothing: standard output stays open."""


def _write_all(fd: int, payload: bytes) -> None:
    view = memoryview(payload)
    while view:
        view = view[os.write(fd, view) :]


def _translate_errors(name: str) -> AbstractContextManager[None]:
    hint = "Fix the output and start again; released records are in the store and will be sent."
    return system_errors(f"{name} cannot be written", hint)


@contextmanager
def dead_letters_to(path: Path, known: Iterable[DeadLetter]) -> Iterator[Callable[[int, str, bytes], None]]:
    """Write a new file with the known dead letters first, each once; give a function that adds more."""
    with system_errors(f"{path} cannot be written", "Check the path and the permissions."):
        file = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    def add(seq: int, reason: str, line: bytes) -> None:
        text = line.decode(errors="replace").rstrip("\r\n")
        os.write(file, orjson.dumps({"seq": seq, "reason": reason, "line": text}) + b"\n")

    try:
        for letter in known:
            add(int(letter.position), letter.reason, letter.payload)
        yield add
    finally:
        os.close(file)
