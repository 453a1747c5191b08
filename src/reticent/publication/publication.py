"""What the drivers of all kinds share: a store, a name in it, a way to commit, and the provenance of a release folder.

The provenance says which store a release comes from: the store's epoch, the release's number and digest, and its predecessor's digest.
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
"""Runs in the transaction of a publication, for example to mark a job as done."""


class Commit(Protocol):
    """Runs a change in a transaction and returns when it is on disk."""

    def __call__(self, change: Callable[[Transaction], T], /) -> T:
        """Return the value of the change."""


def commit_each_step(store: Store) -> Commit:
    """Return a commit that uses one transaction for each step."""

    def commit(change: Callable[[Transaction], T], /) -> T:
        with store.transaction() as tx:
            return change(tx)

    return commit


class Publication:
    """One publication in a store. The caller holds the store's lock for its name."""

    kind: ClassVar[Kind]

    def __init__(self, store: Store, policy: Policy, *, name: str = "", commit: Commit | None = None) -> None:
        self.store, self.policy, self.name = store, policy, name or self.kind
        self.commit = commit or commit_each_step(store)
        self.allow_republication = False
        """Whether persons of other publications in the store may be published here too."""
        self.step_lock = threading.RLock()
        """Locked during each step. Callers with several threads take it around steps that belong together."""

    def rng(self, method: str) -> Rng:
        """Return the keys of this publication: its own, and the veil key that it shares with others of the store."""
        digest = publisher_class(self.kind, method).pin_digest(self.policy)
        return Rng(self.store.key(self.name), veil_secret=self.store.veil_key(digest) if digest else b"")

    def earlier_releases(self) -> list[Release]:
        """Return all earlier releases of this publication, in order."""
        return [from_bytes(entry.payload) for entry in self.store.outbox(self.name)]

    def _population(self, *, allow_republication: bool = False) -> Population:
        """Return the persons of this publication, to be compared with all others in the store."""
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
        """Publish and write the folder, or write the release that a crash left undelivered."""
        with self.step_lock:
            if folder is not None:
                refuse_unknown_siblings(folder, self.store)
            waiting = self._pending_release(folder)
            if waiting is not None:
                return self._hand_over(stored(waiting), waiting.number, folder, file_format)
            passed = publish()
            return self._hand_over(passed.release, passed.entry.number - 1, folder, file_format, passed.digests)

    def _pending_release(self, folder: Path | None) -> OutboxEntry | None:
        """Return the release that a crash left undelivered. If its folder exists, only note the delivery."""
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
        """Write a stored release to its folder and note the delivery."""
        if folder is not None:
            release = add_provenance(release, self.store, self.name, number, digests)
            release.to_dir(folder, format=file_format)
        self.commit(lambda tx: tx.confirm_delivery(self.name, number))
        return release


def add_provenance(
    release: Release, store: Store, name: str, number: int, digests: Mapping[int, str] | None = None
) -> Release:
    """Return a release with its provenance. `number` is its number in the outbox, `digests` are those of the ledger if known."""
    digests = store.ledger(name).digests if digests is None else digests
    provenance = {
        "publisher": name,
        "epoch": store.epoch,
        "number": number + 1,
        "digest": digests.get(number + 1, ""),
        "predecessor": digests.get(number, ""),
    }
    return replace(release, store=provenance)


def refuse_unknown_siblings(folder: Path, store: Store) -> None:
    """Refuse to write next to a release of this store that the store does not know, of any publication.

    Raises:
        StateError: a sibling folder has a release of this store that is not in its ledger: the store is an older copy.
    """
    for sibling in sorted(folder.parent.iterdir()) if folder.parent.is_dir() else ():
        provenance = _read_provenance(sibling)
        if provenance is None or not _is_same_store(provenance, store):
            continue
        digests = store.ledger(str(provenance.get("publisher"))).digests
        if digests.get(provenance["number"]) != provenance["digest"]:
            raise StateError(
                f"{sibling} has release {provenance['number']} of {provenance['publisher']!r}, which is not in this store.",
                hint="Run `reticent store restore`: the store is older than its releases, and must not publish the same people again.",
            )


def is_in_sibling_folder(folder: Path, store: Store, name: str, number: int) -> bool:
    """Whether a sibling folder has the stored release with this number in the outbox."""
    wanted, published = (name, number + 1, store.ledger(name).digests.get(number + 1)), set()
    for sibling in folder.parent.iterdir() if folder.parent.is_dir() else ():
        # A hidden folder was never renamed to its final name, so it was not delivered.
        is_skipped = sibling == folder or sibling.name.startswith(".")
        provenance = None if is_skipped else _read_provenance(sibling)
        if provenance is not None and _is_same_store(provenance, store):
            published.add((provenance.get("publisher"), provenance.get("number"), provenance.get("digest")))
    return wanted in published


def _is_same_store(provenance: dict[str, Any], store: Store) -> bool:
    return str(provenance.get("epoch", "")).rpartition("-")[0] == store.epoch.rpartition("-")[0]


def _read_provenance(folder: Path) -> dict[str, Any] | None:
    try:
        provenance = read_manifest(folder).get("store") if folder.is_dir() else None
    except DataError:
        return None
    return provenance if isinstance(provenance, dict) else None
