"""Resources out of NDJSON files, one line at a time; every error names the file and the line, never what stands there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from reticent.connectors.files.ndjson_read import lines
from reticent.connectors.files.sniff import Format
from reticent.connectors.files.source import opened
from reticent.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

_SUFFIXES = (".ndjson", ".ndjson.gz", ".jsonl", ".jsonl.gz")
# Records withdrawn by whoever wrote them; they must not count as facts about a patient.
_WITHDRAWN = b'"entered-in-error"'


def files_of(source: str | Path) -> list[Path | str]:
    """The files of an export: every NDJSON file of a folder, or the one file named."""
    folder = Path(source)
    if str(source) == "-" or not folder.is_dir():
        return [source]
    files: list[Path | str] = [path for path in sorted(folder.iterdir()) if path.name.lower().endswith(_SUFFIXES)]
    if not files:
        raise DataError(
            f"{folder} has no NDJSON file.", hint="Name a folder with Patient.ndjson, Encounter.ndjson, ..."
        )
    return files


def resources(source: str | Path) -> Iterator[dict[str, Any]]:
    """Every resource of a file, except withdrawn ones."""
    name = str(source)
    for number, line in _lines(source):
        if _WITHDRAWN in line:
            continue
        try:
            resource = orjson.loads(line)
        except orjson.JSONDecodeError:
            raise DataError(f"{name}, line {number}: not valid JSON.", hint="Write one resource per line.") from None
        if type(resource) is not dict or type(resource.get("resourceType")) is not str:
            raise DataError(
                f"{name}, line {number}: not a FHIR resource.", hint="Every line needs a resourceType; export again."
            )
        yield resource


def _lines(source: str | Path) -> Iterator[tuple[int, bytes]]:
    with opened(source) as there:
        bom = 3 if there.head.startswith(b"\xef\xbb\xbf") else 0
        yield from lines(there, Format("ndjson", bom=bom))
