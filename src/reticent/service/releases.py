"""The releases of the service: published data with their verification results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from reticent.publication.gate import VerifiedRelease
from reticent.release import Release
from reticent.release.codec import from_bytes, to_dict
from reticent.service.actor import actor, can_access
from reticent.service.documents import Documents, new_id, now
from reticent.service.problems import ServiceError
from reticent.service.query_process import ReleaseHandle
from reticent.service.zip_cache import ZipCache
from reticent.store import Store, Transaction, schema

# Releases with cached first rows: a release never changes, and a large one takes long to read.
_MAX_PREVIEWS = 32


def _count_persons(tx: Transaction, publisher: str) -> int:
    """Return the number of persons in a publication so far, from the ledger of the store."""
    table = schema.population
    parts = [row["persons"] for row in tx.rows(table, table.c.publisher == publisher)]
    return len(np.unique(np.frombuffer(b"".join(parts), "<u8")))


def first_rows(table: pa.Table, rows: int) -> list[list[str]]:
    """Return the first rows as text."""
    cells = [row.values() for row in table.slice(0, rows).to_pylist()]
    return [["(missing)" if cell is None else str(cell) for cell in row] for row in cells]


@dataclass(frozen=True)
class TablePreview:
    """A table of a release as a page displays it."""

    name: str
    rows: int
    columns: list[str]
    distinct: list[int]
    first: list[list[str]]

    @classmethod
    def of(cls, name: str, table: pa.Table, rows: int) -> TablePreview:
        """Return the first rows and the number of distinct values of each column."""
        distinct = [len(column.unique()) for column in table.columns]
        return cls(name, table.num_rows, table.column_names, distinct, first_rows(table, rows))


class Releases:
    """All releases in the actor's scope, newest first; `log` appends to the audit log."""

    def __init__(self, store: Store, zip_cache: ZipCache, log: Callable[[str, str], None]) -> None:
        self._store = store
        self._zip_cache = zip_cache
        self._log = log
        self._documents = Documents(store, "release")
        self._previews = lru_cache(_MAX_PREVIEWS)(
            lambda ident, rows: [TablePreview.of(name, table, rows) for name, table in self.load(ident).tables.items()]
        )

    def add(self, tx: Transaction, passed: VerifiedRelease, publisher: str, *, source: str) -> str:
        """List a release that a publisher has just stored; its data stays in the outbox."""
        ident, release, number = new_id(), passed.release, passed.entry.number
        persons = _count_persons(tx, publisher)
        earlier = [int(doc["persons"]) for doc in self.all() if doc["publisher"] == publisher]
        document = to_dict(release) | {
            "id": ident,
            "created": now(),
            "source": source,
            "number": 1 if release.kind == "table" else number,
            "tables": {name: table.num_rows for name, table in release.tables.items()},
            "verification": passed.result.to_dict(),
            "publisher": publisher,
            "outbox": number - 1,
            "withdrawn": None,
            "persons": persons,
            "added": persons - max(earlier, default=0),
        }
        self._documents.put(tx, ident, document)
        return ident

    def all(self) -> list[dict[str, Any]]:
        """Return all releases without their data."""
        return [document for document in self._documents.all() if _is_in_scope(document)]

    def get(self, ident: str) -> dict[str, Any]:
        """Return a release without its data, or raise 404."""
        document = self._documents.get(ident)
        if not _is_in_scope(document):
            raise self._documents.not_found_error()  # the same error as for an unknown id: the caller may not learn that it exists
        return document

    def load(self, ident: str) -> Release:
        """Return a release with its data, even if it was withdrawn; for the verifier."""
        return from_bytes(self._payload(ident))

    def _payload(self, ident: str) -> bytes:
        place = self.get(ident)
        entry = next(self._store.outbox(place["publisher"], after=place["outbox"] - 1), None)
        if entry is None or entry.number != place["outbox"]:
            raise self._documents.not_found_error()
        return entry.payload

    def preview(self, ident: str, rows: int) -> list[TablePreview]:
        """Return the counts and the first rows of the tables of a release; 410 if it was withdrawn."""
        self._refuse_withdrawn_release(ident)
        return self._previews(ident, rows)

    def handle(self, ident: str) -> ReleaseHandle:
        """Return the handle for queries on a release; 410 if it was withdrawn."""
        self._refuse_withdrawn_release(ident)
        return ReleaseHandle(ident, lambda: (self._payload(ident), b""))

    def find_by_publisher(self, publisher: str) -> str:
        """Return the release of a publisher with a single table."""
        return next(str(release["id"]) for release in self.all() if release["publisher"] == publisher)

    def withdraw(self, tx: Transaction, ident: str) -> dict[str, Any]:
        """Withdraw a release; recipients keep their copies, and the ledger still counts its persons."""
        release = self._documents.find(tx, ident)
        if release is None:
            raise self._documents.not_found_error()
        release["withdrawn"] = release["withdrawn"] or now()
        self._documents.put(tx, ident, release)
        return release

    def drop(self, ident: str) -> None:
        """Remove the zip files of a release; downloads in progress continue."""
        self._zip_cache.drop(ident)
        self._previews.cache_clear()

    def open(self, ident: str, file_format: str = "csv") -> BinaryIO:
        """Open the zip file of a release and log the download; 410 if it was withdrawn."""
        file = self.pack(ident, file_format)
        self._log("download", f"release:{ident}")
        return file

    def pack(self, ident: str, file_format: str) -> BinaryIO:
        """Open the zip file of a release without logging a download."""
        self._refuse_withdrawn_release(ident)
        return self._zip_cache.open(ident, file_format, lambda: self.load(ident))

    def _refuse_withdrawn_release(self, ident: str) -> None:
        if self.get(ident)["withdrawn"]:
            raise ServiceError(410, "withdrawn", "This release was withdrawn.", "Ask the custodian for the reason.")


def _is_in_scope(document: dict[str, Any]) -> bool:
    return actor() is None or can_access(document["kind"], document["source"]) or can_access("release", document["id"])
