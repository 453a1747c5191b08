"""The store: the private state on disk, in SQLite by default or in PostgreSQL by URL, with one schema.

One transaction changes a publisher's released bytes, its input position, its state and the ledger of its persons. After a
crash the stored bytes are sent again, and nothing is computed a second time.
"""

from reticent.store.snapshot_writer import SnapshotWriter
from reticent.store.store import Store
from reticent.store.transaction import DeadLetter, OutboxEntry, Snapshot, Transaction

__all__ = ["DeadLetter", "OutboxEntry", "Snapshot", "SnapshotWriter", "Store", "Transaction"]
