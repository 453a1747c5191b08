"""Whether a source holds FHIR resources, without what reads them: every table is asked."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

_HEAD = 4096


def is_fhir(source: str | Path) -> bool:
    """Whether a source is a folder of NDJSON files or Bundles, or a file that begins with a resource."""
    if str(source) == "-":
        return False
    path = Path(source)
    if path.is_dir():
        return any(".ndjson" in file.name.lower() or _is_json(file) for file in sorted(path.iterdir()))
    return path.is_file() and _is_resource(path)


def _is_json(path: Path) -> bool:
    return path.name.lower().endswith((".json", ".json.gz")) and path.is_file() and _is_resource(path)


def _is_resource(path: Path) -> bool:
    packed = path.suffix.lower() == ".gz"
    try:
        with gzip.open(path) if packed else path.open("rb") as file:
            head = file.read(_HEAD).lstrip(b"\xef\xbb\xbf \t\r\n")
    except (EOFError, gzip.BadGzipFile, zlib.error):
        return False
    return head.startswith(b"{") and b'"resourceType"' in head
