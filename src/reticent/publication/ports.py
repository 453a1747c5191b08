"""What a stream is connected to: sources of bytes, sinks of lines, and who watches; made by `connectors`."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Protocol

from reticent.errors import DataError


class Source(Protocol):
    """Where bytes come from."""

    name: str
    regular: bool
    """Whether it can be read on from any place."""
    answers: bool
    """Whether a sender waits to hear that what it sent is stored, and sends it again when it hears nothing."""

    def skip(self, offset: int) -> None:
        """Leaves out what was read before; called before the first read."""

    def read(self) -> bytes | None:
        """What is there now; empty at the end; None when woken."""

    def fingerprint(self, offset: int) -> str | None:
        """Tells an input by its first bytes up to `offset`; None where they cannot be read again."""

    def recognize(self, stored: Container[str]) -> None:
        """Tells which messages are stored already, where senders wait for answers."""

    def receipts(self) -> list[str]:
        """The names of the messages that were read and are not acknowledged yet."""

    def acknowledge(self) -> None:
        """Everything read so far is stored."""

    def guess(self, data: bytes) -> str:
        """The format of the input, by how it begins."""


def refuse_other_input(source: Source, offset: int, fingerprint: str | None) -> None:
    """Refuses an input that is not the one that was read before, or that has lost what was read."""
    if offset and fingerprint is not None and source.fingerprint(offset) != fingerprint:
        raise DataError(
            f"{source.name} is not the input that this stream has read {offset:,} bytes of.",
            hint="Put that one back, and append to it instead of replacing it. Another store is for other persons: these would be published anew.",
        )


class Sink(Protocol):
    """Takes released bytes in order."""

    def describe(self, codebook: bytes) -> None:
        """Called once, before the first line: what recipients need to read what follows, the same in every run."""

    def resume(self, sent: int, waiting: int) -> None:
        """Called once: the sinks have confirmed `sent` bytes so far, and `waiting` more are stored and come again."""

    def write(self, payload: bytes) -> None:
        """Takes one batch; when it returns, the batch is safe."""


class Progress(Protocol):
    """Sees a run go by."""

    def batch(self, records: int, seconds: float) -> None:
        """A batch is safe, `seconds` after its first byte was read."""

    def tick(self, metrics: Callable[[], Mapping[str, float]], *, final: bool = False) -> None:
        """Another batch is on its way; `metrics` are made when they are asked for."""
