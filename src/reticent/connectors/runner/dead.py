"""The file of dead letters: bad lines with their place and reason, for the custodian's eyes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import orjson

from reticent.errors import ConnectorError

if TYPE_CHECKING:
    from pathlib import Path

    from reticent.store import Store


class DeadLetterFile:
    """Written anew from the store on each start, so that it holds every dead letter once."""

    def __init__(self, path: Path, store: Store, publisher: str) -> None:
        known = store.dead_letters(publisher) if publisher in store.publishers() else []
        try:
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ConnectorError(
                f"{path} cannot be written: {os.strerror(error.errno or 0)}.", hint="Check the path."
            ) from None
        for letter in known:
            self.add(int(letter.position), letter.reason, letter.payload)

    def add(self, seq: int, reason: str, line: bytes) -> None:
        """One more bad line."""
        text = line.decode(errors="replace").rstrip("\r\n")
        os.write(self._fd, orjson.dumps({"seq": seq, "reason": reason, "line": text}) + b"\n")

    def close(self) -> None:
        """Closes the file."""
        os.close(self._fd)
