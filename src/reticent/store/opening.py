"""Opening a store: its file and tables made or found, its structure sound, its head no older than its witness says.

A new SQLite file is made whole under another name and then given its own, so that a half-made store never exists.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from pathlib import Path

import sqlalchemy as sa

from reticent.disk import open_private, sync
from reticent.errors import CORRUPT_HINT, StateError
from reticent.store import database, schema
from reticent.store.integrity import HEAD, SECRET, Head, Seal, corrupt_error, head_text, new_seal, read_head, read_seal
from reticent.store.keys import Key
from reticent.store.rollback_marker import RollbackMarker, refuse_moved_database

# An arbitrary number that all versions of Reticent share: it keeps two of them from making the tables at once.
_CREATION_LOCK = 7_265_746_963
# Looking through a file of this size takes a tenth of a second; a larger one is looked through by `reticent store check`.
_QUICK_CHECK_SIZE = 32 << 20


def open_and_check(
    engine: sa.Engine, path: Path | None, *, create: bool, key: Key | None = None, allow_moved: bool = False
) -> tuple[Seal, Head, RollbackMarker | None]:
    """What a store needs to work with; refuses one that is damaged, of another version, or older than it was."""
    with database.translate_errors(engine), engine.connect() as connection:
        version = _version(connection)
    if version is None:
        _make(engine, create=create, key=key)
    elif version != str(schema.VERSION):
        raise _other_version(engine, version)
    if path is not None and path.stat().st_size <= _QUICK_CHECK_SIZE:
        check_structure(engine)
    with database.translate_errors(engine), engine.connect() as connection:
        seal = read_seal(connection, key)
    witness = None if path is None else RollbackMarker(path)
    # The witness first: another process may commit between the two, and then it is the store that is ahead.
    seen, anyone = (None, None) if witness is None else (witness.read_latest(seal), witness.read_latest())
    with database.translate_errors(engine), engine.connect() as connection:
        head = read_head(connection, seal)
    if witness is None and not allow_moved:
        refuse_moved_database(engine, seal)
    if witness is not None:
        witness.refuse_older(head, seen, anyone, f"Store {database.display_name(engine)}")
    return seal, head, witness


def check_structure(engine: sa.Engine) -> None:
    """Asks SQLite whether pages, rows and indexes belong together."""
    with database.translate_errors(engine), engine.connect() as connection:
        answer = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar()
    if answer != "ok":
        raise corrupt_error(f"Store {database.display_name(engine)}")


def make_tables(connection: sa.Connection, key: Key | None) -> None:
    """The tables of a new store, its secret and its head."""
    schema.metadata.create_all(connection)
    seal, secret = new_seal(key)
    first = {"schema": str(schema.VERSION), SECRET: secret, HEAD: head_text(Head.fresh(), seal)}
    connection.execute(sa.insert(schema.meta), [{"name": name, "value": value} for name, value in first.items()])


def _make(engine: sa.Engine, *, create: bool, key: Key | None) -> None:
    with database.write_transaction(engine) as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_CREATION_LOCK)))
            if _version(connection) is not None:
                return
        # A PostgreSQL database may be shared; an SQLite file with other tables is somebody else's.
        elif not create or sa.inspect(connection).get_table_names():
            raise _no_store(engine)
        if not create:
            raise _no_store(engine)
        make_tables(connection, key)


def _version(connection: sa.Connection) -> str | None:
    """The version of the tables; None where there are none."""
    if schema.meta.name not in sa.inspect(connection).get_table_names():
        return None
    return str(connection.execute(sa.select(schema.meta.c.value).where(schema.meta.c.name == "schema")).scalar())


def _no_store(engine: sa.Engine) -> StateError:
    return StateError(
        f"Store({database.display_name(engine)}) is not a store of Reticent.",
        hint="Check the path, or create a store first.",
    )


def _other_version(engine: sa.Engine, version: str) -> StateError:
    return StateError(
        f"Store({database.display_name(engine)}) has schema {version}, this version of Reticent reads {schema.VERSION}.",
        hint="Use the version of Reticent that made the store.",
    )


# A draft older than this belongs to a process that was killed.
_DRAFT_LIFETIME = 60.0


def prepare_file(path: Path, *, create: bool, key: Key | None = None, link: Path | None = None) -> None:
    """Sees to it that there is a store's file, or says why not; `link` is the name that it was asked for by, if another."""
    if link is not None:
        RollbackMarker(link).refuse_link(f"Store {link}")
    if path.is_dir():
        raise StateError(f"Store {path}: this is a directory.", hint="Name a file in it.")
    if path.exists():
        if not path.stat().st_size:
            raise StateError(
                f"Store {path}: the file is empty, which no store ever is: it is damaged.", hint=CORRUPT_HINT
            )
        return
    RollbackMarker(path).refuse_orphan(f"Store {path}")
    _refuse_lone_log(path)
    if not create:
        raise StateError(
            f"Store {path}: there is no such file.",
            hint="Check the path. `reticent evolve init` makes a table's store; stream, republish and serve make their own.",
        )
    _remove_old_drafts(path)
    try:
        _make_file(path, key)
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


def _make_file(path: Path, key: Key | None) -> None:
    draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}.draft")
    os.close(open_private(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR))
    try:
        engine = database.connect(draft)
        try:
            with database.write_transaction(engine) as connection:
                make_tables(connection, key)
            database.checkpoint(engine)
        finally:
            engine.dispose()  # what is open cannot be removed on Windows
        with contextlib.suppress(FileExistsError):  # another process was quicker: its store is as good
            os.link(draft, path)
        sync(path.parent)
    finally:
        remove_files(draft)


def remove_files(path: Path) -> None:
    """Removes a store's file and its companions."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _remove_old_drafts(path: Path) -> None:
    """Removes drafts that a killed process left."""
    for draft in path.parent.glob(f".{path.name}.*.draft*"):
        with contextlib.suppress(OSError):
            if time.time() - draft.stat().st_mtime > _DRAFT_LIFETIME:
                draft.unlink()
