"""Connects to SQLite or PostgreSQL with durable commits and one writer per publisher, and translates database errors.

SQLite: WAL with synchronous=FULL, because NORMAL does not reach the disk at every commit; writers take the write lock at the
beginning of a transaction, so that two of them cannot deadlock. PostgreSQL: synchronous commit.

The lock of a publisher is a lock file next to an SQLite store, or an advisory lock of PostgreSQL. Both end with their process, even
if it is killed. A broken connection can lose a lock unnoticed. Therefore the owner of a lock also writes a fresh owner id into the
publisher's row, and every transaction checks that the row still has this id.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError

from reticent.disk import file_lock
from reticent.errors import CORRUPT_HINT, StateError

# How long a writer waits for another one: longer than any normal commit.
BUSY_MS = 30_000

_REASONS = {
    "SQLITE_BUSY": ("another process has locked it", "Wait for the other process, or stop it."),
    "SQLITE_FULL": ("the disk is full", "Free some disk space. Nothing was changed."),
    "SQLITE_IOERR_WRITE": ("the disk is full or failing", "Check the disk. Nothing was changed."),
    "SQLITE_READONLY": ("it is read-only", "Check the permissions of the file and its directory."),
    "SQLITE_CANTOPEN": ("it cannot be opened", "Check the path and the permissions."),
    "SQLITE_NOTADB": ("it is not a store, or its header is corrupt", "Check the path. " + CORRUPT_HINT),
    "SQLITE_CORRUPT": ("it is corrupt", CORRUPT_HINT),
    "SQLITE_ERROR": ("its tables do not match the schema", CORRUPT_HINT),
    "53100": ("the disk of the server is full", "Free some disk space. Nothing was changed."),
    "28P01": ("the password is wrong", "Check the URL."),
    "3D000": ("the database does not exist", "Create it first."),
    "42501": ("the database user lacks permissions", "Grant the user the rights to create and change tables."),
}


def connect(where: str | os.PathLike[str]) -> sa.Engine:
    """Return a database engine for a path, a `sqlite:///` URL or a `postgresql://` URL."""
    url = _url(file_of(where) or where)
    try:
        engine = sa.create_engine(url, hide_parameters=True, connect_args=_connect_args(url))
    except ModuleNotFoundError:
        raise StateError("The PostgreSQL driver is missing.", hint="Run pip install 'reticent[postgres]'.") from None
    event.listen(engine, "connect", _on_sqlite if url.get_backend_name() == "sqlite" else _on_postgres)
    if url.get_backend_name() == "sqlite":
        event.listen(engine, "begin", _begin)
    return engine


def file_of(where: str | os.PathLike[str]) -> Path | None:
    """Return the file of a store, or None for a store in a database server."""
    url = _url(where)
    # Resolve links: the log, the lock and the rollback marker are next to the file itself.
    return Path(url.database or "").resolve() if url.get_backend_name() == "sqlite" else None


def link_of(where: str | os.PathLike[str]) -> Path | None:
    """Return the path of a store's file if it is a symbolic link."""
    url = _url(where)
    path = Path(url.database or "")
    return path if url.get_backend_name() == "sqlite" and path.is_symlink() else None


def insert(dialect: str, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
    """Return an INSERT with ON CONFLICT for a dialect."""
    return sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)


def select_rows(table: sa.Table, which: str) -> sa.TextClause:
    """Return a query for whole rows as text: compiling one for each connection takes longer than running it."""
    return sa.text(f"SELECT * FROM {table.name} WHERE {which}")  # noqa: S608 - no user input


@contextlib.contextmanager
def translate_errors(engine: sa.Engine) -> Iterator[None]:
    """Replace the database's errors, which may contain cell values, with a StateError."""
    try:
        yield
    except SQLAlchemyError as error:
        original = error.orig if isinstance(error, DBAPIError) else None
        code = getattr(original, "sqlite_errorname", None) or getattr(original, "sqlstate", None) or ""
        reason, hint = next(
            (reason for known, reason in _REASONS.items() if code.startswith(known)),
            (f"{type(original or error).__name__} {code}".strip(), "Check that the store exists and can be reached."),
        )
        raise StateError(f"Store {display_name(engine)}: {reason}.", hint=hint) from None
    except UnicodeDecodeError:  # SQLite quotes a corrupt schema
        reason, hint = _REASONS["SQLITE_CORRUPT"]
        raise StateError(f"Store {display_name(engine)}: {reason}.", hint=hint) from None


@contextlib.contextmanager
def write_transaction(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Open a transaction with the write lock. It is committed at the end of the block."""
    with translate_errors(engine), engine.connect() as plain:
        connection = plain.execution_options(writes=True)
        with connection.begin():
            yield connection


def truncate_log(engine: sa.Engine) -> bool:
    """Write SQLite's log back and truncate it. Return False if another process prevented it. Does nothing for PostgreSQL."""
    if engine.dialect.name != "sqlite":
        return True
    with translate_errors(engine), engine.connect() as plain:
        connection = plain.execution_options(isolation_level="AUTOCOMMIT")
        busy = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").scalar()
    return not busy


def checkpoint(engine: sa.Engine) -> None:
    """Write the log into the store's file before the file is renamed: closing the store alone can fail silently.

    Raises:
        StateError: another process uses the store, or the disk fails.
    """
    if not truncate_log(engine):
        raise StateError(
            f"Store {display_name(engine)}: another process uses it.", hint="Wait for the other process, or stop it."
        )
    engine.dispose()


def display_name(engine: sa.Engine) -> str:
    """Return the store's name for messages, without a password."""
    url = engine.url
    return str(url.database) if url.get_backend_name() == "sqlite" else url.render_as_string(hide_password=True)


def _url(where: str | os.PathLike[str]) -> sa.URL:
    text = os.fspath(where) if isinstance(where, str | os.PathLike) else "://"
    if "://" not in text:
        return sa.URL.create("sqlite+pysqlite", database=text)
    try:
        url = sa.make_url(text)
        backend = url.get_backend_name()
    except (ArgumentError, NoSuchModuleError, ValueError):
        backend = ""
    if backend in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if backend == "sqlite" and url.database and url.database != ":memory:":
        return url.set(drivername="sqlite+pysqlite")
    raise StateError(
        "The store's URL is invalid.", hint="Give a path, sqlite:///path, or postgresql://user@host/database."
    )


def _connect_args(url: sa.URL) -> dict[str, Any]:
    # The driver must not begin transactions itself: it would not take the write lock.
    if url.get_backend_name() == "sqlite":
        return {"isolation_level": None, "timeout": BUSY_MS / 1000, "check_same_thread": False}
    return {"connect_timeout": 10}


def _on_sqlite(raw: Any, _: Any) -> None:
    # Applies to a new store: batches need half as many pages, and single rows are no slower.
    raw.execute("PRAGMA page_size = 8192")
    raw.execute("PRAGMA journal_mode = WAL")
    raw.execute("PRAGMA synchronous = FULL")
    raw.execute("PRAGMA secure_delete = ON")  # overwrites deleted content in the file


def _on_postgres(raw: Any, _: Any) -> None:
    with raw.cursor() as cursor:
        cursor.execute("SELECT current_setting('synchronous_commit')")
        if cursor.fetchone()[0] == "off":
            cursor.execute("SET synchronous_commit = on")
    raw.commit()


def _begin(connection: sa.Connection) -> None:
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


_PAUSE = 0.02


@contextlib.contextmanager
def hold_lock(engine: sa.Engine, publisher: str, wait: float) -> Iterator[None]:
    """Hold the lock of a publisher; wait at most `wait` seconds for it."""
    of_backend = _file_lock if engine.dialect.name == "sqlite" else _advisory_lock
    with of_backend(engine, publisher, wait):
        yield


@contextlib.contextmanager
def _file_lock(engine: sa.Engine, publisher: str, wait: float) -> Iterator[None]:
    store = Path(str(engine.url.database)).resolve()
    path = store.with_name(f"{store.name}.{_digest(publisher).hex()}.lock")
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(file_lock(path, wait, _PAUSE))
        except TimeoutError:
            raise _lock_error(publisher) from None
        except OSError as error:
            reason = os.strerror(error.errno or 0)
            raise StateError(f"Store {store} cannot be locked: {reason}.", hint="Check the directory.") from None
        yield


@contextlib.contextmanager
def _advisory_lock(engine: sa.Engine, publisher: str, wait: float) -> Iterator[None]:
    number = int.from_bytes(_digest(publisher), "big", signed=True)
    with translate_errors(engine):
        connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    try:
        take = sa.select(sa.func.pg_try_advisory_lock(number))
        with translate_errors(engine):
            _wait_for_lock(lambda: bool(connection.execute(take).scalar()), publisher, wait)
        yield
    finally:
        # The lock belongs to the connection: invalidating the connection frees the lock in every state.
        connection.invalidate()
        connection.close()


def _wait_for_lock(take: Callable[[], bool], publisher: str, wait: float) -> None:
    deadline = time.monotonic() + wait
    while not take():
        if time.monotonic() >= deadline:
            raise _lock_error(publisher)
        time.sleep(_PAUSE)


def _lock_error(publisher: str) -> StateError:
    return StateError(
        f"Another process is writing to {publisher!r}.",
        hint="Wait until it has finished, or stop it. Two writers would release the same people twice.",
    )


def _digest(publisher: str) -> bytes:
    return hashlib.blake2b(publisher.encode(), digest_size=8, person=b"reticent-lock").digest()
