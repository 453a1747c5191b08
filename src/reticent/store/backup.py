"""Backs up and restores a store. A restore starts a new epoch that accounts for what was published after the backup."""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reticent.disk import move, open_private, sync
from reticent.errors import ConnectorError, StateError
from reticent.store import database, integrity, schema
from reticent.store.opening import check_structure, remove_files
from reticent.store.rollback_marker import RollbackMarker, note_location
from reticent.store.store import Store
from reticent.store.transaction import RestoreOutcome, write_restore_outcome

_MANIFEST = "release.json"
_SERVICE, _TOKENS = "service", "token"


@dataclass
class PublishedState:
    """What was published according to the arguments: numbers of releases, files with the lines of streams."""

    numbers: dict[str, int] = field(default_factory=dict)
    lines: dict[str, Path] = field(default_factory=dict)
    epochs: set[int] = field(default_factory=set)


def backup(where: str | os.PathLike[str], target: Path) -> None:
    """Copy a store while it is in use. The copy is written completely or not at all."""
    path = store_file(where)
    if target.exists():
        raise ConnectorError(f"{target} already exists.", hint="Name a new file for each backup.")
    with Store.open(path, create=False) as store:  # refuses a corrupt store, whose copy would be useless
        check(store)
    _copy(path, target)


def check(store: Store) -> dict[str, int]:
    """Check every row of a store. Return the number of rows by table.

    Raises:
        StateError: the store is corrupt.
    """
    if store.engine.dialect.name == "sqlite":
        check_structure(store.engine)
    rows = {
        table.name: len(store.rows(table, table.c[0].isnot(None), order_by=table.c[0]))
        for table in schema.metadata.sorted_tables
        if table is not schema.meta
    }
    for publisher in store.publishers():
        store.snapshot(publisher)
        store.ledger(publisher)
        for _ in store.outbox(publisher):
            pass
    return rows


def restore(
    source: str | os.PathLike[str], where: str | os.PathLike[str], published: Sequence[str] = ()
) -> dict[str, RestoreOutcome]:
    """Replace a store with a backup. The replaced file is kept under another name.

    Args:
        source: the backup; for a store in a database server the URL of the restored database.
        where: the path or URL of the store.
        published: what was published: release folders, files with a stream's lines, or NAME=NUMBER of releases or batches.

    Returns:
        The outcome for each publication.
    """
    if database.file_of(where) is None:
        return _restore_in_place(source, where, published)
    path, marker, source = store_file(where), RollbackMarker(store_file(where)), Path(source)
    if source.resolve() == path:
        raise StateError("The backup is the store itself.", hint="Name a copy that `reticent store backup` made.")
    seen = _parse_arguments(published)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}.draft")
    try:
        _copy(source, draft)
        latest = marker.read_latest()
        with Store.open(draft, create=False) as store:
            outcomes = {name: _outcome(store, name, seen, complete=latest == store.head) for name in store.publishers()}
            is_known = latest is not None and latest.store == store.head.store
            _start_epoch(store, outcomes, above=latest.epoch if latest is not None and is_known else 0)
            head = store.head
            database.checkpoint(store.engine)
        _replace_store(draft, path)
        with Store.open(path, create=False) as store:
            marker.note(head, store.seal)
        marker.close()
    finally:
        remove_files(draft)
        RollbackMarker(draft).path.unlink(missing_ok=True)
    return outcomes


def _restore_in_place(
    source: str | os.PathLike[str], where: str | os.PathLike[str], published: Sequence[str]
) -> dict[str, RestoreOutcome]:
    """Start a new epoch in a database that its server has restored."""
    if os.fspath(source) != os.fspath(where):
        raise StateError(
            "This store is in a database server.",
            hint="Restore the backup with the tools of the server; then give the database's URL twice, as backup and as store.",
        )
    seen = _parse_arguments(published)
    with Store.open(where, create=False, allow_moved=True) as store:
        outcomes = {name: _outcome(store, name, seen, complete=False) for name in store.publishers()}
        _start_epoch(store, outcomes, above=max(seen.epochs, default=0))
        note_location(store.engine, store.seal)
    return outcomes


def _start_epoch(store: Store, outcomes: dict[str, RestoreOutcome], above: int) -> None:
    """Start a new epoch, and store the outcome of each publication."""
    with store.transaction() as tx:
        for name, outcome in outcomes.items():
            write_restore_outcome(tx, name, outcome)
        for token in store.items(_SERVICE, _TOKENS):  # a token revoked after the backup would be valid again
            tx.delete(_SERVICE, _TOKENS, token)
    with database.write_transaction(store.engine) as connection:
        store.head = store.head.start_epoch(above)
        integrity.write_head(connection, store.head, store.seal)


def _outcome(store: Store, name: str, seen: PublishedState, *, complete: bool) -> RestoreOutcome:
    row = store.publisher_row(name)
    published, lines = row["next_number"], seen.lines.get(name)
    if complete or name == _SERVICE:  # each table of the service is a publication of its own
        return RestoreOutcome()
    if lines is not None:
        out = int(json.loads(row["position"] or "{}").get("out", 0))
        return RestoreOutcome(lines=str(lines.resolve()), size=max(out, lines.stat().st_size))
    if name not in seen.numbers:
        return RestoreOutcome(closed="--published does not say what was published after the backup")
    if seen.numbers[name] > published:
        return RestoreOutcome(closed=f"{seen.numbers[name] - published:,} releases are newer than the backup")
    return RestoreOutcome()


def _parse_arguments(published: Sequence[str]) -> PublishedState:
    seen = PublishedState()
    for word in published:
        name, _, number = word.partition("=")
        path = Path(word)
        if path.is_dir():
            _add_folder(seen, path)
        elif number.isdigit():
            seen.numbers[name] = max(int(number), seen.numbers.get(name, 0))
        elif path.is_file():
            seen.lines["stream"] = path
        else:
            raise ConnectorError(
                f"--published {word}: there is no such file or folder.",
                hint="Give a release folder, a file with a stream's lines, or NAME=NUMBER.",
            )
    return seen


def _add_folder(seen: PublishedState, path: Path) -> None:
    try:
        manifest: dict[str, Any] = json.loads((path / _MANIFEST).read_bytes())
        provenance = manifest["store"]
        name, number = str(provenance["publisher"]), int(provenance["number"])
        epoch = int(str(provenance["epoch"]).rpartition("-")[2])
    except (OSError, ValueError, KeyError, TypeError):
        raise ConnectorError(
            f"{path} does not say which store released it.",
            hint="Give NAME=NUMBER instead: the publication and its number of releases.",
        ) from None
    seen.numbers[name] = max(number, seen.numbers.get(name, 0))
    seen.epochs.add(epoch)


def _copy(source: Path, target: Path) -> None:
    """Copy a consistent snapshot of a store to a new file."""
    if not source.is_file():
        raise StateError(f"Store {source}: there is no such file.", hint="Check the path.")
    draft = target.with_name(f".{target.name}.{secrets.token_hex(6)}.draft")
    try:
        os.close(open_private(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR))
        with (
            closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as old,
            closing(sqlite3.connect(draft)) as new,
        ):
            old.backup(new)
        sync(draft)
        move(draft, target)
        sync(target.parent)
    except (OSError, sqlite3.Error) as error:
        raise StateError(
            f"{source} cannot be copied ({type(error).__name__}).",
            hint="Check both paths, and that the source is a store.",
        ) from None
    finally:
        remove_files(draft)


def _replace_store(draft: Path, path: Path) -> None:
    try:
        _set_aside(path)
        move(draft, path)
    except OSError as error:  # Windows cannot replace an open file
        reason = os.strerror(error.errno or 0)
        raise StateError(f"Store {path} cannot be replaced: {reason}.", hint="Stop the process that uses it.") from None
    sync(path.parent)


def _set_aside(path: Path) -> None:
    """Keep the replaced store under another name: it may be the only record of what was published."""
    if not path.exists():
        return
    aside = path.with_name(f"{path.name}.before-restore-{secrets.token_hex(4)}")
    for suffix in ("-wal", "-shm"):  # SQLite would apply an old log to the new file
        companion = path.with_name(path.name + suffix)
        if companion.exists():
            move(companion, aside.with_name(aside.name + suffix))
    aside.hardlink_to(path)


def store_file(where: str | os.PathLike[str]) -> Path:
    """Return the file of a store. Refuse a store in a database server."""
    path = database.file_of(where)
    if path is None:
        raise StateError("This store is in a database server.", hint="Back it up with the tools of the server.")
    return path
