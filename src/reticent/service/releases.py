"""Releases that the service has made: what the world may see, with the judge's verdict beside it."""

from __future__ import annotations

import io
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reticent.release.codec import from_bytes, to_dict
from reticent.service.documents import Documents, fresh_id, now

if TYPE_CHECKING:
    from reticent.publication.gate import Passed
    from reticent.release import Release
    from reticent.store import Store, Transaction


class Releases:
    """All releases, the newest first."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._documents = Documents(store, "release", "release")

    def add(self, tx: Transaction, passed: Passed, publisher: str, *, source: str) -> str:
        """Lists a release that a publisher has just stored; its data stays where it is."""
        ident, release, number = fresh_id(), passed.release, passed.entry.number
        document = to_dict(release) | {
            "id": ident,
            "created": now(),
            "source": source,
            "number": 1 if release.kind == "table" else number,
            "tables": {name: table.num_rows for name, table in release.tables.items()},
            "verdict": passed.verdict.to_dict(),
            "publisher": publisher,
            "outbox": number - 1,
        }
        self._documents.put(tx, ident, document)
        return ident

    def all(self) -> list[dict[str, Any]]:
        """Every release without its data."""
        return self._documents.all()

    def get(self, ident: str) -> dict[str, Any]:
        """One release without its data."""
        return self._documents.get(ident)

    def load(self, ident: str) -> Release:
        """One release with its data."""
        place = self.get(ident)
        entry = next(self._store.outbox(place["publisher"], after=place["outbox"] - 1), None)
        if entry is None or entry.number != place["outbox"]:
            raise self._documents.missing()
        return from_bytes(entry.payload)

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
