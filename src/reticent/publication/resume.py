"""A stream that goes on: what it has taken in already, and what the world has seen of it.

Messages that were taken in are known by name: one that is sent again because its answer was lost is answered, not released twice. The
names are stored in the transaction that releases the messages; the latest ones are remembered.

A restored stream reads its input again and sends only what nobody has seen. Every choice of a stream is a function of its key and of a
record's place in the input, so the same input gives the same lines. That is not taken on trust: each line is compared with the
published one before the first new one is sent.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

from reticent.errors import StateError
from reticent.publication.ports import Sink
from reticent.store import Store, Transaction
from reticent.store.transaction import read_restore_outcome


def resume_sink(store: Store, name: str, sink: Sink, out: int) -> Sink:
    """The sink itself, or one that keeps back what a restored store's world has already; `out` bytes are known to the store."""
    told = read_restore_outcome(store, name)
    return ResumingSink(sink, Path(told.lines), told.size) if told.size > out else sink


def refuse_early_push(store: Store, name: str, out: int) -> None:
    """Refuses to take in other records before the lost part of the input was read again."""
    if read_restore_outcome(store, name).size > out:
        raise StateError(
            "The stream was restored, and the world has seen more of it than its store knows.",
            hint="Run `reticent stream` with the same input first: it sends only what is new.",
        )


class ResumingSink:
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
        if known and known != self._read_published_bytes(len(known)):
            raise StateError(
                "What the restored stream releases is not what was published.",
                hint="Give it the same input as before, from the same place; nothing new was sent.",
            )
        self._at += len(payload)
        if len(known) < len(payload):
            self._sink.write(payload[len(known) :])

    def _read_published_bytes(self, size: int) -> bytes:
        try:
            with self._path.open("rb") as file:
                file.seek(self._at)
                return file.read(size)
        except OSError:
            raise StateError(
                f"{self._path} cannot be read.", hint="It is needed until the stream is beyond it."
            ) from None


_SPACE = "receipt"
# A sender repeats within minutes; this is days of a busy hospital.
_MAX_RECEIPTS = 200_000
_FORGET_AT_ONCE = 64


class Receipts:
    """The names of one stream's messages, the oldest first."""

    def __init__(self, store: Store, name: str) -> None:
        self._name = name
        rows = sorted((int(value), key) for key, value in store.items(name, _SPACE).items())
        self._known = OrderedDict((key, number) for number, key in rows)
        self._next = rows[-1][0] + 1 if rows else 0

    def __contains__(self, name: object) -> bool:
        return name in self._known

    def note(self, tx: Transaction, names: Sequence[str]) -> None:
        """Remembers messages within the transaction that releases them, and forgets a few of the oldest."""
        for name in names:
            tx.put(self._name, _SPACE, name, str(self._next).encode())
            self._known[name] = self._next
            self._next += 1
        for _ in range(min(_FORGET_AT_ONCE, max(0, len(self._known) - _MAX_RECEIPTS))):
            tx.delete(self._name, _SPACE, self._known.popitem(last=False)[0])
