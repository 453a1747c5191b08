"""Convert files to lines of UTF-8: other encodings, archives, Parquet, workbooks, statistics files.

A stream stores its position in bytes, so the same file must always give the same lines: text is only decoded, and no
cell is guessed. The lines are in an unnamed file, which disappears when the process ends.
"""

from __future__ import annotations

import codecs
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import IO

import pyarrow as pa

from reticent.connectors.files import read_batches, to_ndjson
from reticent.connectors.files.checked_stream import CheckedStream
from reticent.connectors.files.sniff import Format, sniff
from reticent.connectors.files.source import SAMPLE, open_input
from reticent.disk import read_at
from reticent.encode.columns import to_native
from reticent.errors import DataError

_TEXT = ("csv", "ndjson")
_BLOCK = 1 << 20
_CORRUPT_SHARE = 0.02
"""Share of lines up to which invalid bytes count as corruption."""


def as_lines(name: str, handle: int) -> IO[bytes] | None:
    """Return the lines of an open file, None if it already consists of lines, even with invalid bytes."""
    head = read_at(handle, SAMPLE, 0)
    if not head or _is_text(head) or _has_few_broken_lines(head):
        return None
    try:
        with open_input(name) as opened:
            file_format = sniff(opened)
    except DataError:
        if b"\0" in head:
            raise
        return None  # lines with invalid bytes become dead letters
    with ExitStack() as stack:
        lines = stack.enter_context(tempfile.TemporaryFile())
        for part in _decode_text(name, file_format) if file_format.name in _TEXT else _rows_as_lines(name):
            lines.write(part)
        lines.seek(0)
        stack.pop_all()  # the caller closes the file
    return lines


def _is_text(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")("strict").decode(head, final=False)
    except UnicodeDecodeError:
        return False
    return b"\0" not in head


def _has_few_broken_lines(head: bytes) -> bool:
    """Return whether nearly all lines are UTF-8, including the first: then the others are corrupt."""
    first, *others = head.split(b"\n")
    invalid = sum(not _is_text(line) for line in others[:-1])
    return b"\0" not in head and _is_text(first) and invalid <= max(1, _CORRUPT_SHARE * len(others))


def _decode_text(name: str, file_format: Format) -> Iterator[bytes]:
    with open_input(name) as opened:
        guard = CheckedStream(opened, file_format)
        while data := guard.read(_BLOCK):
            yield data


def _rows_as_lines(name: str) -> Iterator[bytes]:
    with closing(read_batches(name)) as batches:
        for batch in batches:
            columns = {field.name: to_native(column) for field, column in zip(batch.schema, batch.columns, strict=True)}
            yield to_ndjson(pa.record_batch(columns))
