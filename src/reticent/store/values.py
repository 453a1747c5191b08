"""What comes out of the store; none of it shows its content when printed."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class OutboxEntry:
    """One released batch, as the sinks must see it, byte for byte."""

    number: int
    kind: str
    payload: bytes = field(repr=False)
    position: str | None = None


@dataclass(frozen=True)
class Snapshot:
    """The state to go on from: a whole state and the changes since, in order."""

    payload: bytes = field(repr=False)
    deltas: tuple[bytes, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class DeadLetter:
    """A record that could not be released: where it was, why, and its bytes."""

    position: str
    reason: str
    payload: bytes = field(repr=False)
