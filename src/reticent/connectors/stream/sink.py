"""Where released bytes go: a file that ends up with exactly the outbox's bytes, or standard output; and dead letters, for the custodian's eyes."""

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
    """A sink by its name on the command line."""
    return StandardOutput() if name == "-" else FileSink(Path(name))


class FileSink:
    """A file; after a crash it is cut back to what was confirmed, and the rest is sent again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with _translate_errors(str(path)):
            self._fd = open_private(path, os.O_RDWR | os.O_CREAT)

    def describe(self, codebook: bytes) -> None:
        """Writes the codebook beside the file, wholly or not at all."""
        place = self._path.with_name(self._path.name + CODEBOOK_SUFFIX)
        if place.is_file():
            known = place.read_bytes()
            if known == codebook:
                return
            if not known.startswith(b'{"type":"codebook"'):
                raise foreign_file_error(place)
        write_text(place, codebook.decode())

    def resume(self, sent: int, waiting: int) -> None:
        """Cuts off what was written and never confirmed; it is stored, so more than that is not ours to cut."""
        size = os.fstat(self._fd).st_size
        if size < sent:
            raise StateError(
                f"{self._path} holds {size:,} bytes, the store says {sent:,} were sent.",
                hint="Put the file back. A new store with the same input would publish the same people anew.",
            )
        if size > sent + waiting or (sent == 0 and not self._is_ours()):
            raise foreign_file_error(self._path)
        os.ftruncate(self._fd, sent)
        os.lseek(self._fd, sent, os.SEEK_SET)

    def _is_ours(self) -> bool:
        """Whether the bytes that were never confirmed are lines of a stream, so that they may be cut off."""
        return read_at(self._fd, 8, 0) in (b'{"type":', b"")

    def write(self, payload: bytes) -> None:
        """Writes and waits until the disk has it."""
        with _translate_errors(str(self._path)):
            _write_all(self._fd, payload)
            sync_data(self._fd)

    def close(self) -> None:
        """Closes the file."""
        os.close(self._fd)


def foreign_file_error(path: Path) -> ConnectorError:
    """The file holds something else: another stream's lines, perhaps."""
    return ConnectorError(
        f"{path} is there already and holds what this store did not release.",
        hint="Go on with the store the file was begun with; if it was lost, `reticent store restore --published` goes on from a backup. "
        "Another stream needs another file.",
    )


class StandardOutput:
    """Standard output; after a crash the last batch may come twice, byte for byte the same."""

    def describe(self, codebook: bytes) -> None:
        """Nothing stands beside a pipe."""

    def resume(self, sent: int, waiting: int) -> None:
        """A pipe cannot be cut back."""

    def write(self, payload: bytes) -> None:
        """Writes all of it."""
        with _translate_errors("standard output"):
            _write_all(sys.stdout.fileno(), payload)

    def close(self) -> None:
        """Standard output stays open."""


def _write_all(fd: int, payload: bytes) -> None:
    view = memoryview(payload)
    while view:
        view = view[os.write(fd, view) :]


def _translate_errors(name: str) -> AbstractContextManager[None]:
    hint = "Start again when it can; what was released is in the store and will be sent."
    return system_errors(f"{name} cannot be written", hint)


@contextmanager
def dead_letters_to(path: Path, known: Iterable[DeadLetter]) -> Iterator[Callable[[int, str, bytes], None]]:
    """Writes a file anew, those that are known first, so that it holds every dead letter once; takes more while open."""
    with system_errors(f"{path} cannot be written", "Check the path."):
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
