"""One writer per publisher: the lock, and the fence behind it.

The lock is a file lock beside an SQLite store or an advisory lock of PostgreSQL; both vanish with the process that
holds them, however it dies. A lock can be lost without noticing (a broken connection), so whoever gets it also writes a
fresh owner into the publisher's row, and every transaction checks that the row still names its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import sqlalchemy as sa

from reticent.disk import locked
from reticent.errors import StateError
from reticent.store.database import errors

_PAUSE = 0.02


@contextlib.contextmanager
def held(engine: sa.Engine, publisher: str, wait: float) -> Iterator[None]:
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
            stack.enter_context(locked(path, wait, _PAUSE))
        except TimeoutError:
            raise _taken(publisher) from None
        except OSError as error:
            reason = os.strerror(error.errno or 0)
            raise StateError(f"Store {store}: cannot be locked: {reason}.", hint="Check the directory.") from None
        yield


@contextlib.contextmanager
def _advisory_lock(engine: sa.Engine, publisher: str, wait: float) -> Iterator[None]:
    number = int.from_bytes(_digest(publisher), "big", signed=True)
    with errors(engine):
        connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    try:
        take = sa.select(sa.func.pg_try_advisory_lock(number))
        with errors(engine):
            _until(lambda: bool(connection.execute(take).scalar()), publisher, wait)
        yield
    finally:
        # The lock belongs to the connection: closing it for good frees the lock, whatever state it is in.
        connection.invalidate()
        connection.close()


def _until(take: Callable[[], bool], publisher: str, wait: float) -> None:
    deadline = time.monotonic() + wait
    while not take():
        if time.monotonic() >= deadline:
            raise _taken(publisher)
        time.sleep(_PAUSE)


def _taken(publisher: str) -> StateError:
    return StateError(
        f"Another process writes for {publisher!r} at this moment.",
        hint="Wait until it has finished, or stop it; two writers would release the same people twice.",
    )


def _digest(publisher: str) -> bytes:
    return hashlib.blake2b(publisher.encode(), digest_size=8, person=b"reticent-lock").digest()
