"""What the drivers of all kinds share: a store, a name in it, a way to commit, and the judge at the end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar

from reticent.engine import publisher_class
from reticent.engine.rng import Rng
from reticent.publication.gate import Passed
from reticent.publication.population import Population
from reticent.publication.stamp import refuse_ahead, stamped, stands_beside
from reticent.release.codec import from_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from reticent.policy import Policy
    from reticent.release import Release
    from reticent.release.release import Kind
    from reticent.store import OutboxEntry, Store, Transaction

T = TypeVar("T")
Also = Callable[["Transaction", Passed], None]
"""What else the transaction of a publication does: a job is done, a document is listed."""


class Commit(Protocol):
    """How a step becomes durable: runs a change in a transaction and returns when it is on disk."""

    def __call__(self, change: Callable[[Transaction], T], /) -> T:
        """The value of the change."""


def at_once(store: Store) -> Commit:
    """A transaction for each step."""

    def commit(change: Callable[[Transaction], T], /) -> T:
        with store.transaction() as tx:
            return change(tx)

    return commit


class Publication:
    """One publication in a store; whoever uses it holds the store's lock of its name."""

    kind: ClassVar[Kind]

    def __init__(self, store: Store, policy: Policy, *, name: str = "", commit: Commit | None = None) -> None:
        self.store, self.policy, self.name = store, policy, name or self.kind
        self.commit = commit or at_once(store)
        self.despite = False
        """Whether persons who stand in other publications of the store may stand in this one too."""
        self.turn = threading.RLock()
        """Held while a step is made; callers of several threads take it around steps that belong together."""

    def rng(self, method: str) -> Rng:
        """The keys of this publication, and the one that its house shares with others of the store."""
        digest = publisher_class(self.kind, method).pinned(self.policy)
        return Rng(self.store.key(self.name), house=self.store.house(digest) if digest else b"")

    def earlier(self) -> list[Release]:
        """Everything that was given out, in order."""
        return [from_bytes(entry.payload) for entry in self.store.outbox(self.name)]

    def _population(self, *, despite: bool = False) -> Population:
        """The persons of this publication, beside those of all others in the store."""
        method = str(getattr(self.policy, self.kind).method)
        return Population(self.store, self.name, self.policy, kind=self.kind, method=method, despite=despite)

    def _deliver(
        self,
        folder: Path | None,
        file_format: str,
        *,
        stored: Callable[[OutboxEntry], Release],
        publish: Callable[[], Passed],
    ) -> Release:
        """Publishes and writes the folder, or writes the one that a crash kept from being written."""
        with self.turn:
            if folder is not None:
                refuse_ahead(folder, self.store)
            waiting = self._waiting(folder)
            if waiting is not None:
                return self._hand_over(stored(waiting), waiting.number, folder, file_format)
            passed = publish()
            return self._hand_over(passed.release, passed.entry.number - 1, folder, file_format)

    def _waiting(self, folder: Path | None) -> OutboxEntry | None:
        """The release that a crash kept from its folder. One whose folder is there was handed over, and only not noted."""
        waiting = next(self.store.unsent(self.name), None)
        if waiting is None or folder is None or not stands_beside(folder, self.store, self.name, waiting.number):
            return waiting
        self.commit(lambda tx: tx.mark_sent(self.name, waiting.number))
        return None

    def _hand_over(self, release: Release, number: int, folder: Path | None, file_format: str) -> Release:
        """Writes a stored release to its folder and notes that it is there."""
        if folder is not None:
            release = stamped(release, self.store, self.name, number)
            release.to_dir(folder, format=file_format)
        self.commit(lambda tx: tx.mark_sent(self.name, number))
        return release
