"""The file of an SQLite store: made whole under another name and then given its own, so that a half-made store never exists."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from typing import TYPE_CHECKING

from reticent.disk import open_private, sync
from reticent.errors import DAMAGED, StateError
from reticent.store import database, opening
from reticent.store.witness import Witness

if TYPE_CHECKING:
    from pathlib import Path

    from reticent.store.keys import Key

# A draft older than this belongs to a process that was killed.
_LEFT_OVER = 60.0


def prepare(path: Path, *, create: bool, key: Key | None = None, link: Path | None = None) -> None:
    """Sees to it that there is a store's file, or says why not; `link` is the name that it was asked for by, if another."""
    if link is not None:
        Witness(link).refuse_replaced(f"Store {link}")
    if path.is_dir():
        raise StateError(f"Store {path}: this is a directory.", hint="Name a file in it.")
    if path.exists():
        if not path.stat().st_size:
            raise StateError(f"Store {path}: the file is empty, which no store ever is: it is damaged.", hint=DAMAGED)
        return
    Witness(path).refuse_orphan(f"Store {path}")
    _refuse_lone_log(path)
    if not create:
        raise StateError(
            f"Store {path}: there is no such file.",
            hint="Check the path. `reticent evolve init` makes a table's store; stream, republish and serve make their own.",
        )
    _clean(path)
    try:
        _make(path, key)
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise StateError(f"Store {path}: cannot be created: {reason}.", hint="Choose another place.") from None


def _refuse_lone_log(path: Path) -> None:
    """Refuses a log whose store is missing: a new store would take it for its own."""
    log = path.with_name(path.name + "-wal")
    if log.exists() and log.stat().st_size:
        raise StateError(
            f"Store {path} is gone; {log.name}, its log, is there.",
            hint="Put the file back beside its log, or run `reticent store restore`: a new one would publish the same people again.",
        )


def _make(path: Path, key: Key | None) -> None:
    draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}.draft")
    os.close(open_private(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR))
    try:
        engine = database.connect(draft)
        try:
            with database.writing(engine) as connection:
                opening.make_tables(connection, key)
            database.settle(engine)
        finally:
            engine.dispose()  # what is open cannot be removed on Windows
        with contextlib.suppress(FileExistsError):  # another process was quicker: its store is as good
            os.link(draft, path)
        sync(path.parent)
    finally:
        remove(draft)


def remove(path: Path) -> None:
    """Removes a store's file and its companions."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _clean(path: Path) -> None:
    """Removes drafts that a killed process left."""
    for draft in path.parent.glob(f".{path.name}.*.draft*"):
        with contextlib.suppress(OSError):
            if time.time() - draft.stat().st_mtime > _LEFT_OVER:
                draft.unlink()
