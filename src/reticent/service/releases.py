"""Releases that the service has made: what the world may see, with the judge's verdict beside it."""

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

# Releases whose first rows are remembered: a release does not change, and to read a large one takes its time.
_MAX_PREVIEWS = 32


def _count_persons(tx: Transaction, publisher: str) -> int:
    """Persons whom a publication has shown so far, as the ledger of the store counts them."""
    table = schema.population
    parts = [row["persons"] for row in tx.rows(table, table.c.publisher == publisher)]
    return len(np.unique(np.frombuffer(b"".join(parts), "<u8")))


def first_rows(table: pa.Table, rows: int) -> list[list[str]]:
    """The first rows as text."""
    cells = [row.values() for row in table.slice(0, rows).to_pylist()]
    return [["(missing)" if cell is None else str(cell) for cell in row] for row in cells]


@dataclass(frozen=True)
class TablePreview:
    """A table of a release, as a page shows it."""

    name: str
    rows: int
    columns: list[str]
    distinct: list[int]
    first: list[list[str]]

    @classmethod
    def of(cls, name: str, table: pa.Table, rows: int) -> TablePreview:
        """The first rows, and how many different values there are in each column."""
        distinct = [len(column.unique()) for column in table.columns]
        return cls(name, table.num_rows, table.column_names, distinct, first_rows(table, rows))


class Releases:
    """All releases that the actor's scope holds, the newest first; `note` tells the audit trail."""

    def __init__(self, store: Store, zip_cache: ZipCache, log: Callable[[str, str], None]) -> None:
        self._store = store
        self._zip_cache = zip_cache
        self._log = log
        self._documents = Documents(store, "release")
        self._previews = lru_cache(_MAX_PREVIEWS)(
            lambda ident, rows: [TablePreview.of(name, table, rows) for name, table in self.load(ident).tables.items()]
        )

    def add(self, tx: Transaction, passed: VerifiedRelease, publisher: str, *, source: str) -> str:
        """Lists a release that a publisher has just stored; its data stays where it is."""
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
        """Every release without its data."""
        return [document for document in self._documents.all() if _is_in_scope(document)]

    def get(self, ident: str) -> dict[str, Any]:
        """One release without its data."""
        document = self._documents.get(ident)
        if not _is_in_scope(document):
            raise self._documents.not_found_error()  # as if it were not there: even its being there is not theirs to know
        return document

    def load(self, ident: str) -> Release:
        """One release with its data, withdrawn or not: for the judge."""
        return from_bytes(self._payload(ident))

    def _payload(self, ident: str) -> bytes:
        place = self.get(ident)
        entry = next(self._store.outbox(place["publisher"], after=place["outbox"] - 1), None)
        if entry is None or entry.number != place["outbox"]:
            raise self._documents.not_found_error()
        return entry.payload

    def preview(self, ident: str, rows: int) -> list[TablePreview]:
        """What a page shows of a release's tables: counts and a few rows, and nothing that has to be computed there."""
        self._refuse_withdrawn(ident)
        return self._previews(ident, rows)

    def handle(self, ident: str) -> ReleaseHandle:
        """Where a release is for whoever asks it; 410 when it was withdrawn."""
        self._refuse_withdrawn(ident)
        return ReleaseHandle(ident, lambda: (self._payload(ident), b""))

    def find_by_publisher(self, publisher: str) -> str:
        """The release that a publisher of one table has made."""
        return next(str(release["id"]) for release in self.all() if release["publisher"] == publisher)

    def withdraw(self, tx: Transaction, ident: str) -> dict[str, Any]:
        """Hands a release out no more; whoever has it keeps it, and the ledger goes on counting its persons."""
        release = self._documents.find(tx, ident)
        if release is None:
            raise self._documents.not_found_error()
        release["withdrawn"] = release["withdrawn"] or now()
        self._documents.put(tx, ident, release)
        return release

    def drop(self, ident: str) -> None:
        """Removes what was packed of a release; what is being read is read to its end."""
        self._zip_cache.drop(ident)
        self._previews.cache_clear()

    def open(self, ident: str, file_format: str = "csv") -> BinaryIO:
        """The folder of a release as a zip file, to be read piece by piece; 410 when it was withdrawn."""
        file = self.pack(ident, file_format)
        self._log("download", f"release:{ident}")
        return file

    def pack(self, ident: str, file_format: str) -> BinaryIO:
        """The same, before it is handed to anybody."""
        self._refuse_withdrawn(ident)
        return self._zip_cache.open(ident, file_format, lambda: self.load(ident))

    def _refuse_withdrawn(self, ident: str) -> None:
        if self.get(ident)["withdrawn"]:
            raise ServiceError(410, "withdrawn", "This release was withdrawn.", "Ask its custodian why.")


def _is_in_scope(document: dict[str, Any]) -> bool:
    return actor() is None or can_access(document["kind"], document["source"]) or can_access("release", document["id"])
