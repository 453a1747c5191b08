"""What comes out of the store, none of which shows its content when printed; and what a restored one knows of the time it has lost.

A backup does not know what was published after it. A restore therefore closes every publication, except where it is shown what
the world has seen of it: by the witness (nothing is missing), by the release folders, by the lines of a stream, or by number.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from reticent.errors import StateError

if TYPE_CHECKING:
    from reticent.store.store import Store
    from reticent.store.transaction import Transaction


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


SPACE, KEY = "restored", "what"


@dataclass(frozen=True)
class Restored:
    """How a publication came out of a restore.

    Attributes:
        closed: why nothing more may be published; empty where it may.
        lines: the file with a stream's lines as the world has them.
        size: how many bytes of it the world has.
    """

    closed: str = ""
    lines: str = ""
    size: int = 0


def note_restored(tx: Transaction, publisher: str, restored: Restored) -> None:
    """Keeps what a restore found out about a publication."""
    tx.put(publisher, SPACE, KEY, json.dumps(asdict(restored)).encode())


def read_restored(where: Store | Transaction, publisher: str) -> Restored:
    """What a restore found out about a publication; nothing where there was none."""
    value = where.get(publisher, SPACE, KEY)
    return Restored() if value is None else Restored(**json.loads(value))


def refuse_closed(where: Store | Transaction, publisher: str) -> None:
    """Refuses to publish for a publication whose last releases the store does not know."""
    restored = read_restored(where, publisher)
    if restored.closed:
        raise StateError(
            f"{publisher!r} is closed, since {restored.closed}: to go on would publish the same people anew.",
            hint="If it was restored, restore again with --published, or with a later backup; persons who were never released may "
            "begin a publication of another name.",
        )
