"""CSV lines as records: complete ones out of blocks of bytes, every cell as text."""

from __future__ import annotations

import csv
from dataclasses import replace
from typing import TYPE_CHECKING

from reticent.errors import DataError
from reticent.policy.decimals import with_points

if TYPE_CHECKING:
    from reticent.publication.records import Batch, RecordReader


class CsvLines:
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
        return (replace(batch, table=with_points(batch.table)) if self._delimiter == ";" else batch), size
