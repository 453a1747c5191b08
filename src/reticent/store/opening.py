"""Opens a store: creates or finds its file and tables, checks its structure, and compares its head with the rollback marker.

A new SQLite file is written completely under another name and then renamed, so that an incomplete store never exists.
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

# An arbitrary number that all versions of Reticent share: it prevents two processes from creating the tables at once.
_CREATION_LOCK = 7_265_746_963
# Checking a file of this size takes 0.1 s; `reticent store check` checks larger files.
_QUICK_CHECK_SIZE = 32 << 20


def open_and_check(
    engine: sa.Engine, path: Path | None, *, create: bool, key: Key | None = None, allow_moved: bool = False
) -> tuple[Seal, Head, RollbackMarker | None]:
    """Return a store's seal, head and rollback marker. Refuse a store that is corrupt, of another version, or rolled back."""
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
    marker = None if path is None else RollbackMarker(path)
    # Read the marker first: if another process commits in between, the store is ahead of the marker.
    own_head, any_head = (None, None) if marker is None else (marker.read_latest(seal), marker.read_latest())
    with database.translate_errors(engine), engine.connect() as connection:
        head = read_head(connection, seal)
    if marker is None and not allow_moved:
        refuse_moved_database(engine, seal)
    if marker is not None:
        marker.refuse_older(head, own_head, any_head, f"Store {database.display_name(engine)}")
    return seal, head, marker


def check_structure(engine: sa.Engine) -> None:
    """Run SQLite's integrity check."""
    with database.translate_errors(engine), engine.connect() as connection:
        answer = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar()
    if answer != "ok":
        raise corrupt_error(f"Store {database.display_name(engine)}")


def make_tables(connection: sa.Connection, key: Key | None) -> None:
    """Create the tables, the secret and the head of a new store."""
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
        # A PostgreSQL database may be shared; an SQLite file with other tables belongs to another program.
        elif not create or sa.inspect(connection).get_table_names():
            raise _no_store(engine)
        if not create:
            raise _no_store(engine)
        make_tables(connection, key)


def _version(connection: sa.Connection) -> str | None:
    """Return the schema version, or None if there are no tables."""
    if schema.meta.name not in sa.inspect(connection).get_table_names():
        return None
    return str(connection.execute(sa.select(schema.meta.c.value).where(schema.meta.c.name == "schema")).scalar())


def _no_store(engine: sa.Engine) -> StateError:
    return StateError(
        f"{database.display_name(engine)} is not a Reticent store.", hint="Check the path, or create a store first."
    )


def _other_version(engine: sa.Engine, version: str) -> StateError:
    return StateError(
        f"Store {database.display_name(engine)} has schema {version}; this version of Reticent reads schema {schema.VERSION}.",
        hint="Use the version of Reticent that created the store.",
    )


# An older temporary file belongs to a process that was killed.
_DRAFT_LIFETIME = 60.0


def prepare_file(path: Path, *, create: bool, key: Key | None = None, link: Path | None = None) -> None:
    """Create the store's file if it is missing and `create` is set. `link` is the symbolic link to it, if one was given."""
    if link is not None:
        RollbackMarker(link).refuse_link(f"Store {link}")
    if path.is_dir():
        raise StateError(f"Store {path} is a directory.", hint="Give the path of a file.")
    if path.exists():
        if not path.stat().st_size:
            raise StateError(f"Store {path} is corrupt: the file is empty.", hint=CORRUPT_HINT)
        return
    RollbackMarker(path).refuse_orphan(f"Store {path}")
    _refuse_lone_log(path)
    if not create:
        raise StateError(
            f"Store {path}: there is no such file.",
            hint="Check the path. `reticent evolve init` creates a table's store; stream, republish and serve create their own.",
        )
    _remove_old_drafts(path)
    try:
        _make_file(path, key)
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise StateError(f"Store {path} cannot be created: {reason}.", hint="Choose another path.") from None


def _refuse_lone_log(path: Path) -> None:
    """Refuse a log whose store is missing: SQLite would apply it to a new store."""
    log = path.with_name(path.name + "-wal")
    if log.exists() and log.stat().st_size:
        raise StateError(
            f"Store {path} is missing, but its log {log.name} exists.",
            hint="Put the file back next to its log, or run `reticent store restore`. A new store would publish the same people again.",
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
            engine.dispose()  # Windows cannot remove an open file
        with contextlib.suppress(FileExistsError):  # another process has created the store: use that one
            os.link(draft, path)
        sync(path.parent)
    finally:
        remove_files(draft)


def remove_files(path: Path) -> None:
    """Remove a store's file and its log files."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _remove_old_drafts(path: Path) -> None:
    """Remove temporary files of killed processes."""
    for draft in path.parent.glob(f".{path.name}.*.draft*"):
        with contextlib.suppress(OSError):
            if time.time() - draft.stat().st_mtime > _DRAFT_LIFETIME:
                draft.unlink()
