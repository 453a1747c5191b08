"""Which store a release comes from, as its folder says: generation, number, and the digest of the release before it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from reticent.errors import DataError, StateError
from reticent.release.folder import read_manifest

if TYPE_CHECKING:
    from pathlib import Path

    from reticent.release import Release
    from reticent.store import Store


def stamped(release: Release, store: Store, name: str, number: int) -> Release:
    """A release of a store, as its folder will show it; `number` is that of the outbox."""
    entries = store.ledger(name).entries
    digests = {entry.number: entry.digest for entry in entries}
    place = {
        "publisher": name,
        "generation": store.generation,
        "number": number + 1,
        "digest": digests.get(number + 1, ""),
        "predecessor": digests.get(number, ""),
    }
    return replace(release, store=place)


def refuse_ahead(folder: Path, store: Store) -> None:
    """Refuses to write beside a release of this store that the store does not know, of whatever publication.

    Raises:
        StateError: a folder beside this one holds a release that the store never made: the store is an older copy.
    """
    for beside in sorted(folder.parent.iterdir()) if folder.parent.is_dir() else ():
        place = _place(beside)
        if place is None or not _same_store(place, store):
            continue
        digests = {entry.number: entry.digest for entry in store.ledger(str(place.get("publisher"))).entries}
        if digests.get(place["number"]) != place["digest"]:
            raise StateError(
                f"{beside} holds release {place['number']} of {place['publisher']!r}, which this store does not know.",
                hint="The store is older than its releases: `reticent store restore` goes on without publishing anybody anew.",
            )


def stands_beside(folder: Path, store: Store, name: str, number: int) -> bool:
    """Whether a stored release, by its number in the outbox, stands in another folder beside this one."""
    digests = {entry.number: entry.digest for entry in store.ledger(name).entries}
    asked, shown = (name, number + 1, digests.get(number + 1)), set()
    for beside in folder.parent.iterdir() if folder.parent.is_dir() else ():
        # A hidden folder is a draft that was never renamed: nobody has it.
        place = None if beside == folder or beside.name.startswith(".") else _place(beside)
        if place is not None and _same_store(place, store):
            shown.add((place.get("publisher"), place.get("number"), place.get("digest")))
    return asked in shown


def _same_store(place: dict[str, Any], store: Store) -> bool:
    return str(place.get("generation", "")).rpartition("-")[0] == store.generation.rpartition("-")[0]


def _place(folder: Path) -> dict[str, Any] | None:
    try:
        place = read_manifest(folder).get("store") if folder.is_dir() else None
    except DataError:
        return None
    return place if isinstance(place, dict) else None
