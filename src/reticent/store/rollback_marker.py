"""Whether a store is the one that was here: what a small file beside it, or the server that holds it, remembers.

Beside an SQLite store a witness says how many commits it has had. It is written after each commit and never waited for. A store that
has had fewer was put back to an older copy, or lost the end of its log: going on would publish people a second time. In PostgreSQL
the store remembers its server, timeline, database and tables: one that a dump or a base backup was brought back to is another one.

Guarantee: an older copy of the same store in its place is refused, whatever its own content says; in PostgreSQL one that was brought
    to other tables.
Not covered: a copy in another place, or one that came with its own witness; the files of a server that were put back while it was
    down, which looks like a crash. Releases, sinks and cursors that are ahead of their store show those.
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
    """The witness of one store; two places in turn, so that a torn write leaves the other one."""

    def __init__(self, store: Path) -> None:
        self.path = store.with_name(f"{store.name}.head")
        self._handle = -1

    def close(self) -> None:
        """Lets the file go."""
        if self._handle >= 0:
            os.close(self._handle)
        self._handle = -1

    def note(self, head: Head, seal: Seal) -> None:
        """The store has had so many commits; failing to say so harms nobody."""
        text = f"{head.store} {head.epoch} {head.commits} {_signature(head, seal)}\n"
        with suppress(OSError):
            if self._handle < 0:
                self._handle = open_private(self.path, os.O_RDWR | os.O_CREAT)
            write_at(self._handle, text.encode().ljust(_SLOT), head.commits % 2 * _SLOT)

    def read_latest(self, seal: Seal | None = None) -> Head | None:
        """The latest that was noted; with a seal, only what that store noted itself."""
        try:
            data = self.path.read_bytes()
        except OSError:
            return None
        slots = (_read(data[at : at + _SLOT], seal) for at in (0, _SLOT))
        return max(
            (slot for slot in slots if slot is not None), key=lambda seen: (seen.epoch, seen.commits), default=None
        )

    def refuse_older(self, head: Head, own_head: Head | None, any_head: Head | None, name: str) -> None:
        """Refuses a store that has had fewer commits than its witness saw.

        `seen` is what the witness said of this store, `anyone` what it said of any, both before the head was read.
        """
        if own_head is not None and (own_head.epoch, own_head.commits) > (head.epoch, head.commits):
            lost = f", or lost its last {own_head.commits - head.commits:,} commits"
            raise StateError(
                f"{name} is an older copy of the store that was here{lost if own_head.epoch == head.epoch else ''}.",
                hint="Nothing was published. `reticent store restore` goes on from a copy without publishing anybody anew.",
            )
        if own_head is None and any_head is not None and any_head.store != head.store:
            raise StateError(
                f"{name} is another store than the one that was here.",
                hint=f"Put the right one back; if this one is to stay here, remove {self.path.name} beside it.",
            )

    def refuse_link(self, name: str) -> None:
        """Refuses a link where a store was."""
        if self.read_latest() is not None:
            raise StateError(
                f"{name} is a link now, and a store was here: {self.path.name} beside it says so.",
                hint="Put the store back; if it was moved to where the link points, move its witness there, too.",
            )

    def refuse_orphan(self, name: str) -> None:
        """Refuses to begin a new store where one is missing."""
        if self.read_latest() is not None:
            raise StateError(
                f"{name} is gone; {self.path.name} beside it says that it was here.",
                hint="A new one would publish the same people again. Put it back, or run `reticent store restore`.",
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
    """Refuses a store whose database is not the one that it was used in; notes it where that was never noted."""
    with database.translate_errors(engine), engine.connect() as connection:
        here, there = _signed_location(connection, seal), connection.execute(_STORED_LOCATION).scalar()
    if there is None:
        note_location(engine, seal)
    elif here != there:
        raise StateError(
            f"Store {database.display_name(engine)} was brought here from a backup, and may not know what was published since.",
            hint="Nothing was published. `reticent store restore URL URL --published ...`, with the URL of this database twice, "
            "goes on without publishing anybody anew.",
        )


def note_location(engine: sa.Engine, seal: Seal) -> None:
    """From now on the store lives here."""
    with database.write_transaction(engine) as connection:
        write = database.insert(connection.dialect.name, schema.meta).values(
            name=_LOCATION, value=_signed_location(connection, seal)
        )
        connection.execute(write.on_conflict_do_update(index_elements=["name"], set_={"value": write.excluded.value}))


def _signed_location(connection: sa.Connection, seal: Seal) -> str:
    here = str(connection.execute(_CURRENT_LOCATION).scalar())
    return f"{here} {seal.permanent.digest(_LOCATION, [here]).hex()}"
