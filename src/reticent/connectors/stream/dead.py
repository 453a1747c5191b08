"""The file of dead letters: bad lines with their place and reason, for the custodian's eyes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson

from reticent.connectors.files.atomic import system_errors
from reticent.disk import open_private
from reticent.store import DeadLetter


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
