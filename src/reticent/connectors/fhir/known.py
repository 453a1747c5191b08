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
        names = {file: file.name.lower() for file in sorted(path.iterdir())}
        return any(
            ".ndjson" in name or (name.endswith((".json", ".json.gz")) and file.is_file() and _is_resource(file))
            for file, name in names.items()
        )
    return path.is_file() and _is_resource(path)


def _is_resource(path: Path) -> bool:
    packed = path.suffix.lower() == ".gz"
    try:
        with gzip.open(path) if packed else path.open("rb") as file:
            head = file.read(_HEAD).lstrip(b"\xef\xbb\xbf \t\r\n")
    except (EOFError, gzip.BadGzipFile, zlib.error):
        return False
    return head.startswith(b"{") and b'"resourceType"' in head
