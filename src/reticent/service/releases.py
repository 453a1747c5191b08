"""Releases that the service has made: what the world may see, with the judge's verdict beside it."""

from __future__ import annotations

import io
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reticent.release.codec import from_bytes, to_bytes, to_dict
from reticent.service.documents import Documents, fresh_id, now

if TYPE_CHECKING:
    from reticent.audit.verdict import Verdict
    from reticent.release import Release
    from reticent.store import Store, Transaction


class Releases:
    """All releases, the newest first."""

    def __init__(self, store: Store) -> None:
        self._documents = Documents(store, "release", "release")

    def add(self, tx: Transaction, release: Release, verdict: Verdict, *, kind: str, source: str, number: int) -> str:
        """Stores a release; from here on it is published."""
        ident = fresh_id()
        document = to_dict(release) | {
            "id": ident,
            "created": now(),
            "kind": kind,
            "source": source,
            "number": number,
            "tables": {name: table.num_rows for name, table in release.tables.items()},
            "verdict": verdict.to_dict(),
        }
        self._documents.put(tx, ident, document)
        self._documents.put_blob(tx, ident, to_bytes(release))
        return ident

    def all(self) -> list[dict[str, Any]]:
        """Every release without its data."""
        return self._documents.all()

    def of(self, kind: str, source: str) -> list[dict[str, Any]]:
        """The releases of one source in the order they were made."""
        found = [doc for doc in self.all() if (doc["kind"], doc["source"]) == (kind, source)]
        return sorted(found, key=lambda doc: int(doc["number"]))

    def get(self, ident: str) -> dict[str, Any]:
        """One release without its data."""
        return self._documents.get(ident)

    def load(self, ident: str) -> Release:
        """One release with its data."""
        return from_bytes(self._documents.blob(ident))

    def archive(self, ident: str, file_format: str = "csv") -> bytes:
        """The folder of a release as a zip file."""
        release = self.load(ident)
        with tempfile.TemporaryDirectory(prefix="reticent-") as folder:
            where = release.to_dir(Path(folder) / "release", format=file_format)
            packed = io.BytesIO()
            with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
                for file in sorted(where.iterdir()):
                    archive.write(file, file.name)
        return packed.getvalue()
