"""Cuts blocks of bytes into batches of complete records. An incomplete record waits for the next block."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Protocol

from reticent.errors import DataError
from reticent.policy.cells import with_decimal_points
from reticent.publication.records import Batch, RecordReader, RejectedRecord

# A longer record means a quote that is never closed.
_MAX_RECORD_SIZE = 16 << 20


class LineFormat(Protocol):
    """Reads records of one format from blocks of bytes."""

    needs_header: bool
    by_line: bool
    """Whether each line holds one record."""

    def begin(self, line: bytes) -> None:
        """Read the header line."""

    def read(self, data: bytes, *, last: bool) -> tuple[Batch, int]:
        """Return the complete records and their size in bytes. With `last`, the final record needs no line end."""


class JsonLineFormat:
    """Reads NDJSON from blocks of bytes."""

    needs_header = False
    by_line = True

    def __init__(self, reader: RecordReader) -> None:
        self._reader = reader

    def begin(self, line: bytes) -> None:
        """Do nothing: NDJSON has no header."""

    def read(self, data: bytes, *, last: bool) -> tuple[Batch, int]:
        """Return the records of the complete lines and their size in bytes."""
        size = len(data) if last else data.rfind(b"\n") + 1
        return self._reader.ndjson(data[:size]), size


class CsvLineFormat:
    """Reads CSV from blocks of bytes. Call `begin` with the header line first."""

    needs_header = True
    by_line = True

    def __init__(self, reader: RecordReader) -> None:
        self._reader = reader
        self._header: list[str] = []
        self._delimiter = ","

    def begin(self, line: bytes) -> None:
        """Read the header line and detect the delimiter."""
        try:
            text = line.decode("utf-8-sig").rstrip("\r\n")
        except UnicodeDecodeError:
            raise DataError("The header line is not UTF-8.", hint="Convert the input to UTF-8.") from None
        headers = {delimiter: next(csv.reader([text], delimiter=delimiter), []) for delimiter in ",;\t|"}
        self._delimiter = max(headers, key=lambda delimiter: len(headers[delimiter]))
        known = self._reader.policy.columns
        self._header = [name if name in known else name.strip() for name in headers[self._delimiter]]
        self._reader.policy.check_columns(self._header)
        if len(set(self._header)) < len(self._header):
            raise DataError("Two columns have the same name.", hint="Rename one of them.")

    def read(self, data: bytes, *, last: bool) -> tuple[Batch, int]:
        """Return the complete records and their size in bytes."""
        batch, size = self._reader.csv(data, self._header, self._delimiter, last=last)
        return (replace(batch, table=with_decimal_points(batch.table)) if self._delimiter == ";" else batch), size


Formats = Mapping[str, Callable[[RecordReader], LineFormat]]
FORMATS: Formats = {"csv": CsvLineFormat, "ndjson": JsonLineFormat}


class Blocks:
    """Cuts an input of one format into batches. `header` is its first line, given when a run continues an input."""

    def __init__(self, lines: LineFormat, reader: RecordReader, header: str | None = None) -> None:
        self._lines, self._reader, self.header = lines, reader, header
        self._rest = b""
        if header is not None:
            lines.begin(header.encode())

    @property
    def unfinished(self) -> bytes:
        """The bytes after the last line end; empty for formats that do not end records with lines."""
        return b"" if self._rest.endswith(b"\n") or not self._lines.by_line else self._rest.rpartition(b"\n")[2]

    def iter_batches(self, block: bytes, *, last: bool = False, final: bool = True) -> Iterator[tuple[Batch, int]]:
        """Yield the complete batches with their sizes in bytes. The header is a batch without records.

        With `last`, an unfinished last line is a record if the input is `final`, and is rejected otherwise.
        """
        if last and not final and (tail := self.unfinished):
            self._rest = self._rest[: len(self._rest) - len(tail)]
            yield from self.iter_batches(b"", last=True)
            yield self._reader.empty_batch(1, [RejectedRecord(0, "the last line has no end", tail)]), len(tail)
            return
        self._rest += block
        if self._lines.needs_header and self.header is None:
            size = self._rest.find(b"\n") + 1 or (len(self._rest) if last else 0)
            if not size:
                return
            line = self._take(size)
            self._lines.begin(line)
            self.header = line.decode()
            yield self._reader.empty_batch(), size
        while self._rest:
            batch, size = self._lines.read(self._rest, last=last)
            if size:
                self._rest = self._rest[size:]
                yield batch, size
            elif last or len(self._rest) > _MAX_RECORD_SIZE:
                # A quote is never closed: reject its line only, because later lines may be readable.
                size = self._rest.find(b"\n") + 1 or len(self._rest)
                yield (
                    self._reader.empty_batch(
                        1, [RejectedRecord(0, "a quote is opened and never closed", self._take(size))]
                    ),
                    size,
                )
            else:
                return

    def _take(self, size: int) -> bytes:
        data, self._rest = self._rest[:size], self._rest[size:]
        return data
