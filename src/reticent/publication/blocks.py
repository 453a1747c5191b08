"""Blocks of bytes cut into batches of complete records; what is left waits for the next block."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Protocol

from reticent.errors import DataError
from reticent.policy.cells import with_decimal_points
from reticent.publication.records import Batch, RecordReader, RejectedRecord

# A record longer than this is taken for a quote that was never closed.
_MAX_RECORD_SIZE = 16 << 20


class LineFormat(Protocol):
    """Records out of blocks of bytes, in one format."""

    needs_header: bool
    by_line: bool
    """Whether records end with their lines."""

    def begin(self, line: bytes) -> None:
        """Takes the header line."""

    def read(self, data: bytes, *, last: bool) -> tuple[Batch, int]:
        """The complete records, and how many bytes they take; at the end (`last`) a record needs no end."""


class JsonLineFormat:
    """NDJSON out of blocks of bytes."""

    needs_header = False
    by_line = True

    def __init__(self, reader: RecordReader) -> None:
        self._reader = reader

    def begin(self, line: bytes) -> None:
        """There is no header."""

    def read(self, data: bytes, *, last: bool) -> tuple[Batch, int]:
        """The records of the complete lines, and how many bytes they take."""
        size = len(data) if last else data.rfind(b"\n") + 1
        return self._reader.ndjson(data[:size]), size


class CsvLineFormat:
    """CSV out of blocks of bytes; `begin` takes the header line first."""

    needs_header = True
    by_line = True

    def __init__(self, reader: RecordReader) -> None:
        self._reader = reader
        self._header: list[str] = []
        self._delimiter = ","

    def begin(self, line: bytes) -> None:
        """Takes the header line."""
        try:
            text = line.decode("utf-8-sig").rstrip("\r\n")
        except UnicodeDecodeError:
            raise DataError("The header line is not UTF-8.", hint="Convert the input to UTF-8.") from None
        ways = {delimiter: next(csv.reader([text], delimiter=delimiter), []) for delimiter in ",;\t|"}
        self._delimiter = max(ways, key=lambda delimiter: len(ways[delimiter]))
        known = self._reader.policy.columns
        self._header = [name if name in known else name.strip() for name in ways[self._delimiter]]
        self._reader.policy.check_columns(self._header)
        if len(set(self._header)) < len(self._header):
            raise DataError("Two columns have the same name.", hint="Rename one of them.")

    def read(self, data: bytes, *, last: bool) -> tuple[Batch, int]:
        """The complete records, and how many bytes they take."""
        batch, size = self._reader.csv(data, self._header, self._delimiter, last=last)
        return (replace(batch, table=with_decimal_points(batch.table)) if self._delimiter == ";" else batch), size


Formats = Mapping[str, Callable[[RecordReader], LineFormat]]
FORMATS: Formats = {"csv": CsvLineFormat, "ndjson": JsonLineFormat}


class Blocks:
    """Cuts an input in one format; `header` is its first line where it has one, or that of an input read on."""

    def __init__(self, lines: LineFormat, reader: RecordReader, header: str | None = None) -> None:
        self._lines, self._reader, self.header = lines, reader, header
        self._rest = b""
        if header is not None:
            lines.begin(header.encode())

    @property
    def unfinished(self) -> bytes:
        """What stands after the last line's end; messages need none."""
        return b"" if self._rest.endswith(b"\n") or not self._lines.by_line else self._rest.rpartition(b"\n")[2]

    def iter_batches(self, block: bytes, *, last: bool = False, final: bool = True) -> Iterator[tuple[Batch, int]]:
        """The batches that are complete now, with their lengths in bytes; the header is one without records.

        At the end (`last`) an unfinished line is a record like others where the end is `final`, and is set aside otherwise.
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
                # A quote that is never closed: its line is set aside, what follows may be fine.
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
