"""All tables of a store, for SQLite and PostgreSQL.

Add new tables here, with `publisher` as the first key column. Raise `VERSION` when a table in use changes. State of a
single engine needs no table: put it into `kv`, or into snapshots and deltas.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, MetaData, Table, Text

VERSION = 1
"""Version 1 deleted delivered releases and kept evolving tables of the service as journals; version 2 had no digests."""

metadata = MetaData()


def _table(name: str, *columns: Column[Any]) -> Table:
    """Return a table whose rows have a digest keyed with the store's secret; see `integrity`."""
    return Table(f"reticent_{name}", metadata, *columns, Column("digest", LargeBinary, nullable=False))


meta = Table("reticent_meta", metadata, Column("name", Text, primary_key=True), Column("value", Text, nullable=False))

# One row per publisher: its policy, its key, its position and its current writer.
publishers = _table(
    "publishers",
    Column("publisher", Text, primary_key=True),
    Column("policy_hash", Text, nullable=False),
    Column("secret", LargeBinary, nullable=False),
    Column("owner", Text, nullable=False),
    Column("position", Text),
    Column("next_number", BigInteger, nullable=False),
    Column("next_part", BigInteger, nullable=False),
    # The kept and the sent part of the outbox, so that a missing row is detected.
    Column("first_number", BigInteger, nullable=False),
    Column("next_unsent", BigInteger, nullable=False),
    Column("entries", BigInteger, nullable=False),
    Column("chain", LargeBinary, nullable=False),
)

# Released bytes, stored before any sink gets them: one blob per micro-batch.
outbox = _table(
    "outbox",
    Column("publisher", Text, primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("payload", LargeBinary, nullable=False),
    Column("position", Text),
)

# The state of a publisher: part 0 is a snapshot, the following parts are changes to it, in order.
snapshots = _table(
    "snapshots",
    Column("publisher", Text, primary_key=True),
    Column("part", BigInteger, primary_key=True, autoincrement=False),
    Column("payload", LargeBinary, nullable=False),
)

# Publications, each with the group of every person: keyed hashes and group numbers, as blobs of the same length.
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

# The persons of each publication, as keyed hashes of 8 bytes: the ledger over all publications of a store.
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
    # SQLite assigns ids only if the key is a plain INTEGER.
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("publisher", Text, nullable=False, index=True),
    Column("position", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("payload", LargeBinary, nullable=False),
)

# Other values of an engine or the service, by space and key.
kv = _table(
    "kv",
    Column("publisher", Text, primary_key=True),
    Column("space", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("value", LargeBinary, nullable=False),
)

# Current records of an evolving table. `fixed` has codes, keyed hashes and published values, which change only with the record; its
# class may change with other records. One row per record, so that the cost of a change does not depend on the size of the table.
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

# The distinct values of each column, in the order of their codes; rows are only added.
evolving_words = _table(
    "evolving_words",
    Column("publisher", Text, primary_key=True),
    Column("column", Text, primary_key=True),
    Column("first", BigInteger, primary_key=True, autoincrement=False),
    Column("payload", LargeBinary, nullable=False),
)
