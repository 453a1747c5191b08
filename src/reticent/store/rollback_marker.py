"""Detects a store that was rolled back to an older copy, with a small marker file or the identity of its database.

Next to an SQLite store, the rollback marker has its number of commits. It is written after each commit, without a flush. A store with
fewer commits was replaced by an older copy or lost the end of its log, and would publish people a second time. In PostgreSQL the store
remembers its server, timeline, database and tables, which change when a dump or a base backup is restored.

Guarantee: an older copy in the place of the store is refused, regardless of its content; in PostgreSQL a copy in other tables.
Not covered: a copy in another place, or one that was copied with its marker; the files of a server that were replaced while it was
    down, which looks like a crash. Releases, sinks and cursors that are ahead of their store reveal these cases.
Cost: one write of 128 bytes per commit, without a flush.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import sqlalchemy as sa

from reticent.disk import open_private, write_at
from reticent.errors import StateError
from reticent.store import database, schema
from reticent.store.integrity import Head, Seal

_SLOT = 128


class RollbackMarker:
    """The rollback marker of one store. It writes two slots in turn, so that an incomplete write leaves the other one."""

    def __init__(self, store: Path) -> None:
        self.path = store.with_name(f"{store.name}.head")
        self._handle = -1

    def close(self) -> None:
        """Close the file."""
        if self._handle >= 0:
            os.close(self._handle)
        self._handle = -1

    def note(self, head: Head, seal: Seal) -> None:
        """Write the store's number of commits. A failure is harmless and ignored."""
        text = f"{head.store} {head.epoch} {head.commits} {_signature(head, seal)}\n"
        with suppress(OSError):
            if self._handle < 0:
                self._handle = open_private(self.path, os.O_RDWR | os.O_CREAT)
            write_at(self._handle, text.encode().ljust(_SLOT), head.commits % 2 * _SLOT)

    def read_latest(self, seal: Seal | None = None) -> Head | None:
        """Return the latest head in the marker; with a seal, only a head that this store has written."""
        try:
            data = self.path.read_bytes()
        except OSError:
            return None
        slots = (_read(data[at : at + _SLOT], seal) for at in (0, _SLOT))
        return max(
            (slot for slot in slots if slot is not None), key=lambda head: (head.epoch, head.commits), default=None
        )

    def refuse_older(self, head: Head, own_head: Head | None, any_head: Head | None, name: str) -> None:
        """Refuse a store that has fewer commits than its marker.

        `own_head` is the marker's head of this store and `any_head` that of any store, both read before `head`.
        """
        if own_head is not None and (own_head.epoch, own_head.commits) > (head.epoch, head.commits):
            lost = f", or lost its last {own_head.commits - head.commits:,} commits"
            raise StateError(
                f"{name} is an older copy of the store that was here{lost if own_head.epoch == head.epoch else ''}. "
                "Nothing was published.",
                hint="Run `reticent store restore` to continue from a copy without publishing the same people again.",
            )
        if own_head is None and any_head is not None and any_head.store != head.store:
            raise StateError(
                f"{name} is not the store that was here before.",
                hint=f"Put the earlier store back. To use this store here, remove {self.path.name} next to it.",
            )

    def refuse_link(self, name: str) -> None:
        """Refuse a symbolic link in the place of a store."""
        if self.read_latest() is not None:
            raise StateError(
                f"{name} is now a link, but {self.path.name} next to it shows that a store was here.",
                hint=f"Put the store back. If you moved it to the target of the link, move {self.path.name} there, too.",
            )

    def refuse_orphan(self, name: str) -> None:
        """Refuse to create a new store in the place of a missing one."""
        if self.read_latest() is not None:
            raise StateError(
                f"{name} is missing, but {self.path.name} next to it shows that it was here.",
                hint="Put the store back, or run `reticent store restore`. A new store would publish the same people again.",
            )


def _read(slot: bytes, seal: Seal | None) -> Head | None:
    parts = slot.decode("ascii", "replace").split()
    if len(parts) != 4 or not (parts[1].isdigit() and parts[2].isdigit()):
        return None
    head = Head(parts[0], int(parts[1]), int(parts[2]))
    return head if seal is None or _signature(head, seal) == parts[3] else None


def _signature(head: Head, seal: Seal) -> str:
    return seal.permanent.digest("witness", (head.store, head.epoch, head.commits)).hex()


_LOCATION = "place"
_CURRENT_LOCATION = sa.text(
    "SELECT concat_ws(' ', (SELECT system_identifier FROM pg_control_system()), "
    "substring(pg_walfile_name(pg_current_wal_lsn()) FOR 8), "
    "(SELECT oid FROM pg_database WHERE datname = current_database()), CAST('reticent_meta' AS regclass)::oid)"
)
_STORED_LOCATION = sa.select(schema.meta.c.value).where(schema.meta.c.name == _LOCATION)


def refuse_moved_database(engine: sa.Engine, seal: Seal) -> None:
    """Refuse a store that was moved to another database. Note the database on first use."""
    with database.translate_errors(engine), engine.connect() as connection:
        here, there = _signed_location(connection, seal), connection.execute(_STORED_LOCATION).scalar()
    if there is None:
        note_location(engine, seal)
    elif here != there:
        raise StateError(
            f"Store {database.display_name(engine)} was restored from a backup and may not know what was published since. "
            "Nothing was published.",
            hint="Run `reticent store restore URL URL --published ...` with the URL of this database twice.",
        )


def note_location(engine: sa.Engine, seal: Seal) -> None:
    """Note the current database as the store's own."""
    with database.write_transaction(engine) as connection:
        write = database.insert(connection.dialect.name, schema.meta).values(
            name=_LOCATION, value=_signed_location(connection, seal)
        )
        connection.execute(write.on_conflict_do_update(index_elements=["name"], set_={"value": write.excluded.value}))


def _signed_location(connection: sa.Connection, seal: Seal) -> str:
    here = str(connection.execute(_CURRENT_LOCATION).scalar())
    return f"{here} {seal.permanent.digest(_LOCATION, [here]).hex()}"
