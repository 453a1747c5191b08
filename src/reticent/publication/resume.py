"""Resumes a stream: recognizes messages that were received before and lines that were published before.

Received messages are known by name: a message that is sent again because its acknowledgment was lost is acknowledged, not released
twice. The transaction that releases the messages stores their names; the latest names are remembered.

A restored stream reads its input again and sends only lines that were not published. Every choice of a stream is a function of its key
and a record's position in the input, so the same input gives the same lines. This is checked: each line is compared with the published
line before the first new line is sent.
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
    """Return the sink, or one that skips what was published after the backup; the store knows `out` bytes."""
    restored = read_restore_outcome(store, name)
    return ResumingSink(sink, Path(restored.lines), restored.size) if restored.size > out else sink


def refuse_early_push(store: Store, name: str, out: int) -> None:
    """Refuse other records until the lost part of the input was read again."""
    if read_restore_outcome(store, name).size > out:
        raise StateError(
            "The stream was restored, and more of it was published than its store knows.",
            hint="Run `reticent stream` with the same input first: it sends only what is new.",
        )


class ResumingSink:
    """Compares lines with the published lines, and sends the lines after them."""

    def __init__(self, sink: Sink, published: Path, size: int) -> None:
        self._sink, self._path, self._size = sink, published, size
        self._at = 0

    def describe(self, codebook: bytes) -> None:
        """Pass the codebook on: it is the same in every run."""
        self._sink.describe(codebook)

    def resume(self, sent: int, waiting: int) -> None:  # noqa: ARG002 - the published lines say where to begin
        """Tell the sink that it has all published bytes."""
        self._at = sent
        self._sink.resume(self._size, 0)

    def write(self, payload: bytes) -> None:
        """Send the new part of a batch."""
        known = payload[: max(0, self._size - self._at)]
        if known and known != self._read_published_bytes(len(known)):
            raise StateError(
                "The restored stream produces other lines than those published. Nothing new was sent.",
                hint="Run it with the same input as before, from the same position.",
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
                f"{self._path} cannot be read.",
                hint="Restore the file: the stream needs it until it has passed its end.",
            ) from None


_SPACE = "receipt"
# Senders repeat a message within minutes; this is days of traffic in a busy hospital.
_MAX_RECEIPTS = 200_000
_FORGET_AT_ONCE = 64


class Receipts:
    """The names of one stream's received messages, oldest first."""

    def __init__(self, store: Store, name: str) -> None:
        self._name = name
        rows = sorted((int(value), key) for key, value in store.items(name, _SPACE).items())
        self._known = OrderedDict((key, number) for number, key in rows)
        self._next = rows[-1][0] + 1 if rows else 0

    def __contains__(self, name: object) -> bool:
        return name in self._known

    def note(self, tx: Transaction, names: Sequence[str]) -> None:
        """Remember messages in the transaction that releases them, and forget a few of the oldest."""
        for name in names:
            tx.put(self._name, _SPACE, name, str(self._next).encode())
            self._known[name] = self._next
            self._next += 1
        for _ in range(min(_FORGET_AT_ONCE, max(0, len(self._known) - _MAX_RECEIPTS))):
            tx.delete(self._name, _SPACE, self._known.popitem(last=False)[0])
