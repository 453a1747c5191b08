"""Copies of a store, and going on from one: a restore begins a new generation that knows what the world has seen."""

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
    """What the world has seen, as far as it was shown: releases by number, lines of streams by file."""

    numbers: dict[str, int] = field(default_factory=dict)
    lines: dict[str, Path] = field(default_factory=dict)
    epochs: set[int] = field(default_factory=set)


def backup(where: str | os.PathLike[str], target: Path) -> None:
    """Copies a store while it is in use; the copy is there wholly or not at all."""
    path = store_file(where)
    if target.exists():
        raise ConnectorError(f"{target} is there already.", hint="Name a new file for each backup.")
    with Store.open(path, create=False) as store:  # refuses one that is damaged: a copy of it would be of no use
        check(store)
    _copy(path, target)


def check(store: Store) -> dict[str, int]:
    """Looks at every row of a store; gives their numbers by table.

    Raises:
        StateError: something is not as it was written.
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
    """Goes on from a backup in the place of a store; what lies there is set aside.

    Args:
        source: the backup; for a store in a database server the store itself, once the server has brought it back.
        where: the place of the store.
        published: what the world has seen: release folders, files of a stream's lines, or NAME=NUMBER of releases or batches.

    Returns:
        How each publication came out of it.
    """
    if database.file_of(where) is None:
        return _restore_in_place(source, where, published)
    path, witness, source = store_file(where), RollbackMarker(store_file(where)), Path(source)
    if source.resolve() == path:
        raise StateError("The backup is the store itself.", hint="Name a copy that `reticent store backup` made.")
    seen = _parse_arguments(published)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}.draft")
    try:
        _copy(source, draft)
        said = witness.read_latest()
        with Store.open(draft, create=False) as store:
            outcomes = {name: _outcome(store, name, seen, complete=said == store.head) for name in store.publishers()}
            _start_epoch(store, outcomes, above=said.epoch if said and said.store == store.head.store else 0)
            head = store.head
            database.checkpoint(store.engine)
        _replace_store(draft, path)
        with Store.open(path, create=False) as store:
            witness.note(head, store.seal)
        witness.close()
    finally:
        remove_files(draft)
        RollbackMarker(draft).path.unlink(missing_ok=True)
    return outcomes


def _restore_in_place(
    source: str | os.PathLike[str], where: str | os.PathLike[str], published: Sequence[str]
) -> dict[str, RestoreOutcome]:
    """Goes on from what a database server has brought back."""
    if os.fspath(source) != os.fspath(where):
        raise StateError(
            "This store is in a database server.",
            hint="Bring the backup back with the means of the server; then name the database twice, as backup and as store.",
        )
    seen = _parse_arguments(published)
    with Store.open(where, create=False, allow_moved=True) as store:
        outcomes = {name: _outcome(store, name, seen, complete=False) for name in store.publishers()}
        _start_epoch(store, outcomes, above=max(seen.epochs, default=0))
        note_location(store.engine, store.seal)
    return outcomes


def _start_epoch(store: Store, outcomes: dict[str, RestoreOutcome], above: int) -> None:
    """A new generation, in one transaction with what is known of each publication."""
    with store.transaction() as tx:
        for name, outcome in outcomes.items():
            write_restore_outcome(tx, name, outcome)
        for token in store.items(_SERVICE, _TOKENS):  # one that was revoked since would work again
            tx.delete(_SERVICE, _TOKENS, token)
    with database.write_transaction(store.engine) as connection:
        store.head = store.head.start_epoch(above)
        integrity.write_head(connection, store.head, store.seal)


def _outcome(store: Store, name: str, seen: PublishedState, *, complete: bool) -> RestoreOutcome:
    row = store.publisher_row(name)
    published, lines = row["next_number"], seen.lines.get(name)
    if complete or name == _SERVICE:  # the service itself publishes single tables, each for itself
        return RestoreOutcome()
    if lines is not None:
        out = int(json.loads(row["position"] or "{}").get("out", 0))
        return RestoreOutcome(lines=str(lines.resolve()), size=max(out, lines.stat().st_size))
    if name not in seen.numbers:
        return RestoreOutcome(closed="nobody said what was published of it since the backup")
    if seen.numbers[name] > published:
        return RestoreOutcome(closed=f"{seen.numbers[name] - published:,} of its releases are newer than the backup")
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
                hint="Give release folders, the file of a stream's lines, or NAME=NUMBER.",
            )
    return seen


def _add_folder(seen: PublishedState, path: Path) -> None:
    try:
        manifest: dict[str, Any] = json.loads((path / _MANIFEST).read_bytes())
        stamp = manifest["store"]
        name, number = str(stamp["publisher"]), int(stamp["number"])
        lives = int(str(stamp["epoch"]).rpartition("-")[2])
    except (OSError, ValueError, KeyError, TypeError):
        raise ConnectorError(
            f"{path} does not say which store released it.",
            hint="Give NAME=NUMBER instead: how many releases there were.",
        ) from None
    seen.numbers[name] = max(number, seen.numbers.get(name, 0))
    seen.epochs.add(lives)


def _copy(source: Path, target: Path) -> None:
    """The pages of a store as of one moment, in a file of their own."""
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
            f"{source} cannot be copied ({type(error).__name__}).", hint="Check both places, and that it is a store."
        ) from None
    finally:
        remove_files(draft)


def _replace_store(draft: Path, path: Path) -> None:
    try:
        _set_aside(path)
        move(draft, path)
    except OSError as error:  # on Windows a file that anybody has open stays where it is
        reason = os.strerror(error.errno or 0)
        raise StateError(f"Store {path}: cannot be replaced: {reason}.", hint="Stop whoever uses it.") from None
    sync(path.parent)


def _set_aside(path: Path) -> None:
    """What was there is kept under another name: it may be the only one that knows what was published."""
    if not path.exists():
        return
    aside = path.with_name(f"{path.name}.before-restore-{secrets.token_hex(4)}")
    for suffix in ("-wal", "-shm"):  # a log that stayed would be taken for that of the new file
        companion = path.with_name(path.name + suffix)
        if companion.exists():
            move(companion, aside.with_name(aside.name + suffix))
    aside.hardlink_to(path)


def store_file(where: str | os.PathLike[str]) -> Path:
    """The file of a store; refuses one in a database server."""
    path = database.file_of(where)
    if path is None:
        raise StateError("This store is in a database server.", hint="Back it up with the means of the server.")
    return path
