"""Which database of which server holds a store: one that a dump or a base backup was brought back to is another one.

Guarantee: against a store in PostgreSQL that goes on from older data in silence: it is refused where the server, its timeline, the
    database or the tables are not those that it was last used in.
Not covered: the files of a server that were put back while it was down: that looks like a crash. Releases, sinks and cursors that
    are ahead of their store show those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from reticent.errors import StateError
from reticent.store import database, schema

if TYPE_CHECKING:
    from reticent.store.integrity import Seal

_NAME = "place"
_HERE = sa.text(
    "SELECT concat_ws(' ', (SELECT system_identifier FROM pg_control_system()), "
    "substring(pg_walfile_name(pg_current_wal_lsn()) FOR 8), "
    "(SELECT oid FROM pg_database WHERE datname = current_database()), CAST('reticent_meta' AS regclass)::oid)"
)
_THERE = sa.select(schema.meta.c.value).where(schema.meta.c.name == _NAME)


def refuse_moved(engine: sa.Engine, seal: Seal) -> None:
    """Refuses a store whose database is not the one that it was used in; notes it where that was never noted."""
    with database.errors(engine), engine.connect() as connection:
        here, there = _told(connection, seal), connection.execute(_THERE).scalar()
    if there is None:
        note_place(engine, seal)
    elif here != there:
        raise StateError(
            f"Store {database.show(engine)} was brought here from a backup, and may not know what was published since.",
            hint="Nothing was published. `reticent store restore URL URL --published ...`, with the URL of this database twice, "
            "goes on without publishing anybody anew.",
        )


def note_place(engine: sa.Engine, seal: Seal) -> None:
    """From now on the store lives here."""
    with database.writing(engine) as connection:
        write = database.insert(connection, schema.meta).values(name=_NAME, value=_told(connection, seal))
        connection.execute(write.on_conflict_do_update(index_elements=["name"], set_={"value": write.excluded.value}))


def _told(connection: sa.Connection, seal: Seal) -> str:
    here = str(connection.execute(_HERE).scalar())
    return f"{here} {seal.lasting.digest(_NAME, [here]).hex()}"
