"""MySQL and MariaDB: one SELECT in a read-only transaction, its rows streamed by the server.

A read-only transaction still lets `SELECT ... INTO OUTFILE` write a file on the server; the account's rights (`FILE`)
decide that, and the words are refused here as well.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import closing

import pyarrow as pa
import sqlalchemy as sa

from reticent.connectors.sql.read import cursor_batches, refused
from reticent.connectors.sql.url import SqlSource
from reticent.errors import PolicyError, needing

_READS = re.compile(r"\s*(select|with|table|values)\b", re.IGNORECASE)
# `into` in any form: a comment may stand between it and `outfile`.
_WRITES = re.compile(r"\binto\b|\bfor\s+update\b|/\*!", re.IGNORECASE)


def batches(base: SqlSource, query: str, batch_rows: int) -> Generator[pa.RecordBatch]:
    """The rows of one SELECT."""
    if not _READS.match(query) or _WRITES.search(query):
        raise PolicyError("The query is no plain SELECT.", hint="Write one query that gives rows and writes nothing.")
    with needing("MySQL needs a driver", "mysql"):
        import pymysql
        from pymysql.cursors import SSCursor
    engine = sa.create_engine(base.url, poolclass=sa.NullPool)
    # The driver's own cursor: SQLAlchemy's reads rows ahead, which a cursor of the server gives only once.
    with (
        refused(base, (pymysql.MySQLError, sa.exc.SQLAlchemyError)),
        closing(engine.raw_connection()) as link,
        closing(link.cursor(SSCursor)) as cursor,
    ):
        cursor.execute("SET SESSION TRANSACTION READ ONLY")
        cursor.execute(query)
        yield from cursor_batches(cursor, batch_rows)
