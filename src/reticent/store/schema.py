"""All tables, for SQLite and PostgreSQL alike.

A new table goes here, with `publisher` as its first key column, and `VERSION` goes up when a table that is already in
use changes. State that only one engine understands needs no table: it fits into `kv`, or into snapshots and deltas.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, MetaData, Table, Text

VERSION = 1
"""1 forgot releases once they were delivered, and kept evolving tables of the service as journals; 2 had no digests."""

metadata = MetaData()


def _table(name: str, *columns: Column[Any]) -> Table:
    """A table whose rows bear a digest under the store's secret; see `integrity`."""
    return Table(f"reticent_{name}", metadata, *columns, Column("digest", LargeBinary, nullable=False))


meta = Table(
    "reticent_meta",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

# One row per publisher: what it may do, where it is, and who writes for it now.
publishers = _table(
    "publishers",
    Column("publisher", Text, primary_key=True),
    Column("policy_hash", Text, nullable=False),
    Column("secret", LargeBinary, nullable=False),
    Column("owner", Text, nullable=False),
    Column("position", Text),
    Column("next_number", BigInteger, nullable=False),
    Column("next_part", BigInteger, nullable=False),
    # What is kept and what was sent of the outbox, so that a row that is missing is noticed.
    Column("first_number", BigInteger, nullable=False),
    Column("next_unsent", BigInteger, nullable=False),
    Column("entries", BigInteger, nullable=False),
    Column("chain", LargeBinary, nullable=False),
)

# What was released, before any sink sees it: one blob per micro-batch.
outbox = _table(
    "outbox",
    Column("publisher", Text, primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("payload", LargeBinary, nullable=False),
    Column("position", Text),
)

# The state to go on from: part 0 is whole, the following parts are changes to it, in order.
snapshots = _table(
    "snapshots",
    Column("publisher", Text, primary_key=True),
    Column("part", BigInteger, primary_key=True, autoincrement=False),
    Column("payload", LargeBinary, nullable=False),
)

# Publications, and per publication who stood in which group: keyed hashes and group numbers side by side, as blobs.
ledger = _table(
    "ledger",
    Column("publisher", Text, primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("time", Text, nullable=False),
    Column("policy_hash", Text, nullable=False),
    Column("method", Text, nullable=False),
    Column("records", Text, nullable=False),
    Column("payload_digest", Text, nullable=False),
    Column("persons", LargeBinary, nullable=False),
    Column("groups", LargeBinary, nullable=False),
)

# Who stands in which publication, as keyed hashes of 8 bytes: the one ledger over all publications of a store.
population = _table(
    "population",
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("publisher", Text, nullable=False),
    Column("time", Text, nullable=False),
    Column("policy_hash", Text, nullable=False),
    Column("method", Text, nullable=False),
    Column("parameters_digest", Text, nullable=False),
    Column("persons", LargeBinary, nullable=False),
    Column("first_events", LargeBinary, nullable=False),
)

dead_letters = _table(
    "dead_letters",
    # SQLite numbers rows by itself only where the key is a plain INTEGER.
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("publisher", Text, nullable=False, index=True),
    Column("position", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("payload", LargeBinary, nullable=False),
)

# Whatever an engine or the service needs beside that, by space and key.
kv = _table(
    "kv",
    Column("publisher", Text, primary_key=True),
    Column("space", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("value", LargeBinary, nullable=False),
)

# Live records of an evolving table: `fixed` holds codes, keyed hashes and what the record shows, which change only when the record
# does; its class changes when others come and go. One row per record, so that a change costs what it touches and not what is there.
evolving_records = _table(
    "evolving_records",
    Column("publisher", Text, primary_key=True),
    Column("row", BigInteger, primary_key=True, autoincrement=False),
    Column("person", Text, nullable=False),
    Column("name", Text),
    Column("fixed", LargeBinary, nullable=False),
    Column("class", BigInteger, nullable=False),
)

Index("reticent_evolving_persons", evolving_records.c.publisher, evolving_records.c.person)
Index("reticent_evolving_names", evolving_records.c.publisher, evolving_records.c.name)

# The distinct values of each column, in the order of their codes; rows are only ever added.
evolving_words = _table(
    "evolving_words",
    Column("publisher", Text, primary_key=True),
    Column("column", Text, primary_key=True),
    Column("first", BigInteger, primary_key=True, autoincrement=False),
    Column("payload", LargeBinary, nullable=False),
)
