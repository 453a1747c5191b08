"""Small JSON documents in the store: jobs, uploads, releases, audits. Their ids are random."""

from __future__ import annotations

import datetime as dt
import json
import secrets
from typing import Any

from reticent.service.problems import ServiceError
from reticent.store import Store, Transaction

OWNER = "service"


def new_id() -> str:
    """Return a new random id."""
    return secrets.token_hex(8)


def now() -> str:
    """Return the current UTC time as documents store it."""
    return dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")


class Documents:
    """All documents of one kind, each with an optional blob."""

    def __init__(self, store: Store, space: str) -> None:
        self._store = store
        self._space = space

    def put(self, tx: Transaction, ident: str, value: dict[str, Any]) -> None:
        """Store a document."""
        tx.put(OWNER, self._space, ident, json.dumps(value).encode())

    def find(self, tx: Transaction, ident: str) -> dict[str, Any] | None:
        """Return a document within a transaction, or None."""
        data = tx.get(OWNER, self._space, ident)
        return None if data is None else json.loads(data)

    def get(self, ident: str) -> dict[str, Any]:
        """Return a document, or raise 404."""
        data = self._store.get(OWNER, self._space, ident)
        if data is None:
            raise self.not_found_error()
        document: dict[str, Any] = json.loads(data)
        return document

    def all(self) -> list[dict[str, Any]]:
        """Return all documents, newest first."""
        documents = [json.loads(value) for value in self._store.items(OWNER, self._space).values()]
        return sorted(documents, key=lambda value: str(value["created"]), reverse=True)

    def put_blob(self, tx: Transaction, ident: str, data: bytes) -> None:
        """Store the blob of a document."""
        tx.put(OWNER, f"{self._space}-data", ident, data)

    def blob(self, ident: str) -> bytes:
        """Return the blob of a document, or raise 404."""
        data = self._store.get(OWNER, f"{self._space}-data", ident)
        if data is None:
            raise self.not_found_error()
        return data

    def delete(self, tx: Transaction, ident: str) -> None:
        """Remove a document and its blob."""
        tx.delete(OWNER, self._space, ident)
        tx.delete(OWNER, f"{self._space}-data", ident)

    def not_found_error(self) -> ServiceError:
        """Return the error for an unknown id."""
        return ServiceError(404, "not-found", f"There is no such {self._space}.", "Check the id.")
