"""Read resources from NDJSON files and Bundles one at a time; errors name the place, never its content.

Export files are often named after patients. Messages therefore name a file of a folder by its number, unless its name
is a resource type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from reticent.connectors.fhir.bundle import iter_document, resources_of
from reticent.connectors.files.ndjson_read import iter_lines
from reticent.connectors.files.sniff import Format
from reticent.connectors.files.source import SAMPLE, OpenInput, open_input
from reticent.errors import DataError

_LINES = (".ndjson", ".ndjson.gz", ".jsonl", ".jsonl.gz")
_DOCUMENTS = (".json", ".json.gz")
# Other files of a bulk export or of a release: they contain no resources.
_OTHER_FILES = ("codebook.json", "release.json", "manifest.json", "export.json")
_TYPE = re.compile(
    r"^(Patient|Encounter|Condition|Observation|Procedure|Medication\w*|DiagnosticReport|Immunization)\b"
)
_WITHDRAWN = "entered-in-error"
_LOOK = 4096


def files_of(source: str | Path) -> list[Path | str]:
    """Return the files of an export: all NDJSON and JSON files of a folder, or the single file."""
    folder = Path(source)
    if str(source) == "-" or not folder.is_dir():
        return [source]
    names = (*_LINES, *_DOCUMENTS)
    files: list[Path | str] = [
        path for path in sorted(folder.iterdir()) if path.name.lower().endswith(names) and path.name not in _OTHER_FILES
    ]
    if not files:
        raise DataError(
            f"{folder} has no NDJSON file and no Bundle.",
            hint="Name a folder with Patient.ndjson, Encounter.ndjson, ...",
        )
    return files


def iter_export(source: str | Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every resource of an export with its place, except withdrawn ones."""
    files = files_of(source)
    for number, file in enumerate(files, 1):
        alone = len(files) == 1 and not Path(source).is_dir()
        shown = str(file) if alone or _TYPE.match(Path(file).name) else f"{source}, file {number} of {len(files)}"
        with open_input(file) as opened:
            parts = (
                iter_document(shown, opened.stream) if _is_document(file, opened.head) else _iter_records(opened, shown)
            )
            for place, resource in parts:
                if not is_withdrawn(resource):
                    yield place, resource


def _is_document(file: str | Path, head: bytes) -> bool:
    """Return whether a file is one JSON document rather than one resource per line."""
    if str(file).lower().endswith(_DOCUMENTS):
        return True
    first, end, _ = head.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")
    # A first line longer than the sample is a Bundle that is read piece by piece, whatever its name.
    return first.strip() == b"{" or (not end and b'"Bundle"' in first[:_LOOK] and len(head) >= SAMPLE)


def _iter_records(opened: OpenInput, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    bom = 3 if opened.head.startswith(b"\xef\xbb\xbf") else 0
    for number, line in iter_lines(opened, Format("ndjson", bom=bom)):
        try:
            resource = orjson.loads(line)
        except orjson.JSONDecodeError:
            raise DataError(f"{name}, line {number}: not valid JSON.", hint="Write one resource per line.") from None
        if type(resource) is dict and type(kind := resource.get("resourceType")) is str and kind != "Bundle":
            yield f"{name}, line {number}", resource
        else:
            yield from resources_of(f"{name}, line {number}", resource)


def is_withdrawn(resource: dict[str, Any]) -> bool:
    """Return whether a resource was entered in error: it must not count as a fact about a patient."""
    if resource.get("status") == _WITHDRAWN:
        return True
    status = resource.get("verificationStatus")
    codings = status.get("coding") if type(status) is dict else None
    if type(codings) is not list:
        return False
    return any(type(coding) is dict and coding.get("code") == _WITHDRAWN for coding in codings)
