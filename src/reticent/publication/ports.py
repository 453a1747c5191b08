"""Interfaces of a stream to its surroundings: sources of bytes, sinks of lines, progress; implemented in `connectors`."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Protocol

from reticent.errors import DataError


class Source(Protocol):
    """A source of bytes."""

    name: str
    regular: bool
    """Whether the source can be read from any offset."""
    answers: bool
    """Whether senders wait for an acknowledgment and send again without one."""

    def skip(self, offset: int) -> None:
        """Skip the bytes that an earlier run has read; called before the first read."""

    def read(self) -> bytes | None:
        """Return the available bytes: empty at the end, None when the source was woken."""

    def fingerprint(self, offset: int) -> str | None:
        """Return a fingerprint of the first bytes up to `offset`, or None if they cannot be read again."""

    def recognize(self, stored: Container[str]) -> None:
        """Set the names of the messages that are stored already, if senders wait for acknowledgments."""

    def receipts(self) -> list[str]:
        """Return the names of the messages that were read and not acknowledged yet."""

    def acknowledge(self) -> None:
        """Acknowledge all messages read so far: they are stored."""

    def guess(self, data: bytes) -> str:
        """Guess the format of the input from its first bytes."""


def refuse_other_input(source: Source, offset: int, fingerprint: str | None) -> None:
    """Refuse an input whose first bytes are not those that an earlier run has read."""
    if offset and fingerprint is not None and source.fingerprint(offset) != fingerprint:
        raise DataError(
            f"{source.name} was replaced: this stream has read {offset:,} bytes of another input.",
            hint="Restore the original input and append to it. Do not use a new store: it would publish the same people a second time.",
        )


class Sink(Protocol):
    """Receives released bytes in order."""

    def describe(self, codebook: bytes) -> None:
        """Receive the codebook once, before the first line. It is the same in every run."""

    def resume(self, sent: int, waiting: int) -> None:
        """Receive the position once: `sent` bytes are confirmed, and `waiting` more are stored and will be sent again."""

    def write(self, payload: bytes) -> None:
        """Write one batch. The batch is safe when this returns."""


class Progress(Protocol):
    """Receives the progress of a run."""

    def batch(self, records: int, seconds: float) -> None:
        """Report a batch that became safe `seconds` after its first byte was read."""

    def tick(self, metrics: Callable[[], Mapping[str, float]], *, final: bool = False) -> None:
        """Report that another batch has started. `metrics` computes the figures on demand."""
