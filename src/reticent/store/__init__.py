"""The private side on disk: SQLite by default, PostgreSQL by URL, one schema.

What a publisher gave out, up to where it read, the state it goes on from, and what the world has seen of whom are
changed in one transaction, so that after a crash the stored bytes are sent again and nothing is ever recomputed.
"""

from reticent.store.snapshot_writer import SnapshotWriter
from reticent.store.store import Store
from reticent.store.transaction import DeadLetter, OutboxEntry, Snapshot, Transaction

__all__ = ["DeadLetter", "OutboxEntry", "Snapshot", "SnapshotWriter", "Store", "Transaction"]
