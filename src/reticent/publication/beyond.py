"""Going on beyond what the world has: a restored stream reads its input again and sends only what nobody has seen.

Every choice of a stream is a function of its key and of a record's place in the input, so the same input gives the same lines.
That is not taken on trust: each line is compared with the published one before the first new one is sent.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from reticent.errors import StateError
from reticent.store import restored

if TYPE_CHECKING:
    from reticent.publication.ports import Sink
    from reticent.store import Store


def beyond(store: Store, name: str, sink: Sink, out: int) -> Sink:
    """The sink itself, or one that keeps back what a restored store's world has already; `out` bytes are known to the store."""
    told = restored.read(store, name)
    return Beyond(sink, Path(told.lines), told.size) if told.size > out else sink


def refuse_unread(store: Store, name: str, out: int) -> None:
    """Refuses to take in other records before the lost part of the input was read again."""
    if restored.read(store, name).size > out:
        raise StateError(
            "The stream was restored, and the world has seen more of it than its store knows.",
            hint="Run `reticent stream` with the same input first: it sends only what is new.",
        )


class Beyond:
    """Compares lines with those that were published, and sends what comes after them."""

    def __init__(self, sink: Sink, published: Path, size: int) -> None:
        self._sink, self._path, self._size = sink, published, size
        self._at = 0

    def describe(self, codebook: bytes) -> None:
        """What recipients need is the same in every run."""
        self._sink.describe(codebook)

    def resume(self, sent: int, waiting: int) -> None:  # noqa: ARG002 - the published lines say where to begin
        """The sink has all that was published."""
        self._at = sent
        self._sink.resume(self._size, 0)

    def write(self, payload: bytes) -> None:
        """Sends the part of a batch that is new."""
        known = payload[: max(0, self._size - self._at)]
        if known and known != self._published(len(known)):
            raise StateError(
                "What the restored stream releases is not what was published.",
                hint="Give it the same input as before, from the same place; nothing new was sent.",
            )
        self._at += len(payload)
        if len(known) < len(payload):
            self._sink.write(payload[len(known) :])

    def _published(self, size: int) -> bytes:
        try:
            with self._path.open("rb") as file:
                file.seek(self._at)
                return file.read(size)
        except OSError:
            raise StateError(
                f"{self._path} cannot be read.", hint="It is needed until the stream is beyond it."
            ) from None
