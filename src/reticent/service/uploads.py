"""Uploaded records and tables: their content types, and readers that never unpack archives."""

from __future__ import annotations

import io
from collections.abc import Callable

import pyarrow as pa

from reticent.connectors.files import read_head, read_table
from reticent.errors import DataError
from reticent.service.unpacked_size import refuse_bombs

NDJSON = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"
CONTENT_TYPES = {
    "text/csv": "CSV",
    "application/vnd.apache.parquet": "Parquet",
    ARROW: "Arrow",
    "application/vnd.apache.arrow.file": "Arrow",
    NDJSON: "NDJSON",
    "application/octet-stream": "any of these",
}
_ARCHIVE_MAGIC = (b"\x1f\x8b", b"PK\x03\x04", b"PK\x05\x06")  # gzip; zip, also of workbooks


def read_upload(data: bytes) -> pa.Table:
    """Return an uploaded table."""
    return _rephrase_errors(lambda: read_table(io.BytesIO(_refuse_archives(data))))


def head_of(data: bytes, rows: int) -> pa.Table:
    """Return the first rows of an uploaded table."""
    return _rephrase_errors(lambda: read_head(io.BytesIO(_refuse_archives(data)), rows))


def _rephrase_errors(read: Callable[[], pa.Table]) -> pa.Table:
    """Call `read`, and name the uploaded file in its errors."""
    try:
        return read()
    except DataError as error:
        words = error.message.replace("the input stream", "The file", 1)
        raise DataError(words, hint=error.hint) from None


def _refuse_archives(data: bytes) -> bytes:
    # An archive of a few megabytes can contain terabytes.
    if data.startswith(_ARCHIVE_MAGIC):
        raise DataError(
            "The file is an archive or a workbook.",
            hint="Unpack it, save the sheet as CSV, or use the command line.",
        )
    refuse_bombs(data)
    return data
