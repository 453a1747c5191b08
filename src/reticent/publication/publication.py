"""What the drivers of all kinds share: a store, a name in it, a way to commit, the judge at the end; and the folder's stamp.

The stamp says which store a release comes from: generation, number, and the digest of the release before it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from reticent.engine import publisher_class
from reticent.engine.rng import Rng
from reticent.errors import DataError, StateError
from reticent.policy import Policy
from reticent.publication.gate import VerifiedRelease
from reticent.publication.population import Population
from reticent.release import Kind, Release
from reticent.release.codec import from_bytes
from reticent.release.folder import read_manifest
from reticent.store import OutboxEntry, Store, Transaction

T = TypeVar("T")
TransactionHook = Callable[["Transaction", VerifiedRelease], None]
"""What else the transaction of a publication does: a job is done, a document is listed."""


class Commit(Protocol):
    """How a step becomes durable: runs a change in a transaction and returns when it is on disk."""

    def __call__(self, change: Callable[[Transaction], T], /) -> T:
        """The value of the change."""


def commit_each_step(store: Store) -> Commit:
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
        self.commit = commit or commit_each_step(store)
        self.allow_republication = False
        """Whether persons who stand in other publications of the store may stand in this one too."""
        self.step_lock = threading.RLock()
        """Held while a step is made; callers of several threads take it around steps that belong together."""

    def rng(self, method: str) -> Rng:
        """The keys of this publication, and the one that its house shares with others of the store."""
        digest = publisher_class(self.kind, method).pin_digest(self.policy)
        return Rng(self.store.key(self.name), veil_secret=self.store.veil_key(digest) if digest else b"")

    def earlier_releases(self) -> list[Release]:
        """Everything that was given out, in order."""
        return [from_bytes(entry.payload) for entry in self.store.outbox(self.name)]

    def _population(self, *, allow_republication: bool = False) -> Population:
        """The persons of this publication, beside those of all others in the store."""
        method = str(getattr(self.policy, self.kind).method)
        return Population(
            self.store, self.name, self.policy, kind=self.kind, method=method, allow_republication=allow_republication
        )

    def _deliver(
        self,
        folder: Path | None,
        file_format: str,
        *,
        stored: Callable[[OutboxEntry], Release],
        publish: Callable[[], VerifiedRelease],
    ) -> Release:
        """Publishes and writes the folder, or writes the one that a crash kept from being written."""
        with self.step_lock:
            if folder is not None:
                refuse_unknown_siblings(folder, self.store)
            waiting = self._pending_release(folder)
            if waiting is not None:
                return self._hand_over(stored(waiting), waiting.number, folder, file_format)
            passed = publish()
            return self._hand_over(passed.release, passed.entry.number - 1, folder, file_format, passed.digests)

    def _pending_release(self, folder: Path | None) -> OutboxEntry | None:
        """The release that a crash kept from its folder. One whose folder is there was handed over, and only not noted."""
        waiting = next(self.store.iter_undelivered_batches(self.name), None)
        if waiting is None or folder is None or not is_in_sibling_folder(folder, self.store, self.name, waiting.number):
            return waiting
        self.commit(lambda tx: tx.confirm_delivery(self.name, waiting.number))
        return None

    def _hand_over(
        self,
        release: Release,
        number: int,
        folder: Path | None,
        file_format: str,
        digests: Mapping[int, str] | None = None,
    ) -> Release:
        """Writes a stored release to its folder and notes that it is there."""
        if folder is not None:
            release = add_provenance(release, self.store, self.name, number, digests)
            release.to_dir(folder, format=file_format)
        self.commit(lambda tx: tx.confirm_delivery(self.name, number))
        return release


def add_provenance(
    release: Release, store: Store, name: str, number: int, digests: Mapping[int, str] | None = None
) -> Release:
    """A release of a store, as its folder will show it; `number` is that of the outbox, `digests` are the ledger's where they are known."""
    digests = store.ledger(name).digests if digests is None else digests
    place = {
        "publisher": name,
        "epoch": store.epoch,
        "number": number + 1,
        "digest": digests.get(number + 1, ""),
        "predecessor": digests.get(number, ""),
    }
    return replace(release, store=place)


def refuse_unknown_siblings(folder: Path, store: Store) -> None:
    """Refuses to write beside a release of this store that the store does not know, of whatever publication.

    Raises:
        StateError: a folder beside this one holds a release that the store never made: the store is an older copy.
    """
    for beside in sorted(folder.parent.iterdir()) if folder.parent.is_dir() else ():
        place = _read_provenance(beside)
        if place is None or not _is_same_store(place, store):
            continue
        digests = store.ledger(str(place.get("publisher"))).digests
        if digests.get(place["number"]) != place["digest"]:
            raise StateError(
                f"{beside} holds release {place['number']} of {place['publisher']!r}, which this store does not know.",
                hint="The store is older than its releases: `reticent store restore` goes on without publishing anybody anew.",
            )


def is_in_sibling_folder(folder: Path, store: Store, name: str, number: int) -> bool:
    """Whether a stored release, by its number in the outbox, stands in another folder beside this one."""
    asked, shown = (name, number + 1, store.ledger(name).digests.get(number + 1)), set()
    for beside in folder.parent.iterdir() if folder.parent.is_dir() else ():
        # A hidden folder is a draft that was never renamed: nobody has it.
        place = None if beside == folder or beside.name.startswith(".") else _read_provenance(beside)
        if place is not None and _is_same_store(place, store):
            shown.add((place.get("publisher"), place.get("number"), place.get("digest")))
    return asked in shown


def _is_same_store(provenance: dict[str, Any], store: Store) -> bool:
    return str(provenance.get("epoch", "")).rpartition("-")[0] == store.epoch.rpartition("-")[0]


def _read_provenance(folder: Path) -> dict[str, Any] | None:
    try:
        place = read_manifest(folder).get("store") if folder.is_dir() else None
    except DataError:
        return None
    return place if isinstance(place, dict) else None
