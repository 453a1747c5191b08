"""Small JSON documents in the store: jobs, uploads, releases, audits. Their ids are random and plain."""

from __future__ import annotations

import datetime as dt
import json
import secrets
from typing import Any

from reticent.service.problems import ServiceError
from reticent.store import Store, Transaction

OWNER = "service"


def new_id() -> str:
    """A new id; it cannot be guessed."""
    return secrets.token_hex(8)


def now() -> str:
    """The time, as documents keep it."""
    return dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")


class Documents:
    """All documents of one kind, and a blob beside each where there is one."""

    def __init__(self, store: Store, space: str) -> None:
        self._store = store
        self._space = space

    def put(self, tx: Transaction, ident: str, value: dict[str, Any]) -> None:
        """Sets a document."""
        tx.put(OWNER, self._space, ident, json.dumps(value).encode())

    def find(self, tx: Transaction, ident: str) -> dict[str, Any] | None:
        """A document as a transaction sees it."""
        data = tx.get(OWNER, self._space, ident)
        return None if data is None else json.loads(data)

    def get(self, ident: str) -> dict[str, Any]:
        """A document, or 404."""
        data = self._store.get(OWNER, self._space, ident)
        if data is None:
            raise self.not_found_error()
        document: dict[str, Any] = json.loads(data)
        return document

    def all(self) -> list[dict[str, Any]]:
        """All documents, the newest first."""
        documents = [json.loads(value) for value in self._store.items(OWNER, self._space).values()]
        return sorted(documents, key=lambda value: str(value["created"]), reverse=True)

    def put_blob(self, tx: Transaction, ident: str, data: bytes) -> None:
        """Sets the blob of a document."""
        tx.put(OWNER, f"{self._space}-data", ident, data)

    def blob(self, ident: str) -> bytes:
        """The blob of a document, or 404."""
        data = self._store.get(OWNER, f"{self._space}-data", ident)
        if data is None:
            raise self.not_found_error()
        return data

    def delete(self, tx: Transaction, ident: str) -> None:
        """Removes a document and its blob."""
        tx.delete(OWNER, self._space, ident)
        tx.delete(OWNER, f"{self._space}-data", ident)

    def not_found_error(self) -> ServiceError:
        """The error for an id nobody knows."""
        return ServiceError(404, "not-found", f"There is no such {self._space}.", "Check its id.")
