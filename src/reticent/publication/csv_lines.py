"""CSV lines as records: complete ones out of blocks of bytes, every cell as text."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from reticent import _core
from reticent.errors import DataError
from reticent.publication.records import Bad

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reticent.publication.records import Batch, RecordReader

_QUOTE = ord('"')


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
        self._delimiter = max(",;\t|", key=text.count)
        self._header = [name.strip().strip('"') for name in text.split(self._delimiter)]
        self._reader.policy.check_columns(self._header)

    def end(self, data: bytes, *, last: bool) -> int:
        """Where the last complete record ends."""
        if b'"' not in data:
            return len(data) if last else data.rfind(b"\n") + 1
        end = _core.stream.csv_end(data, _QUOTE)
        return len(data) if last and end < len(data) and data.count(b'"', end) % 2 == 0 else end

    def parse(self, data: bytes) -> Batch:
        """The records of some complete lines."""
        if not data.strip():
            return self._reader.nothing()
        if not data.isascii() and not _is_text(data):
            return self._without_bad_bytes(data)  # the parser would print bytes of lines it cannot read
        try:
            return self._parse(data)
        except pa.ArrowInvalid:
            return self._without_bad_bytes(data)

    def _parse(self, data: bytes) -> Batch:
        bad: list[Bad] = []
        width = len(self._header)

        def skip(row: pacsv.InvalidRow) -> str:
            reason = f"{row.actual_columns} cells where the header has {width}"
            bad.append(Bad(row.number - 1, reason, row.text.encode()))
            return "skip"

        table = pacsv.read_csv(
            pa.BufferReader(data),
            read_options=pacsv.ReadOptions(column_names=self._header, use_threads=False, block_size=len(data) + 1),
            parse_options=pacsv.ParseOptions(
                delimiter=self._delimiter, newlines_in_values=True, invalid_row_handler=skip
            ),
            convert_options=pacsv.ConvertOptions(
                column_types=dict.fromkeys(self._header, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        total = table.num_rows + len(bad)
        rows = np.delete(np.arange(total), [row for row, _, _ in bad])
        return self._reader.text(table, rows, total, bad)

    def _without_bad_bytes(self, data: bytes) -> Batch:
        """The slow way, for a block that the parser cannot read as a whole: records that it cannot read are set aside."""
        records = [record for record in _records(data) if record.strip()]
        reasons = [self._unfit(record) for record in records]
        broken = [Bad(row, why, records[row]) for row, why in enumerate(reasons) if why]
        places = np.flatnonzero([not why for why in reasons])
        if not len(places):
            return self._reader.nothing(len(records), broken)
        batch = self._parse(b"".join(_ended(records[place]) for place in places))
        bad = [Bad(int(places[row]), reason, record) for row, reason, record in batch.bad]
        return replace(batch, rows=places[batch.rows], total=len(records), bad=sorted(bad + broken))

    def _unfit(self, record: bytes) -> str:
        """Why a record cannot be read by itself; empty where it can."""
        if not _is_text(record):
            return "not UTF-8"
        try:
            return "" if self._parse(_ended(record)).total == 1 else "its quotes do not match"
        except pa.ArrowInvalid:
            return "cannot be read as CSV"


def _records(data: bytes) -> Iterator[bytes]:
    """Complete records: lines, joined where a quote is open at the end of one."""
    record = b""
    for line in data.splitlines(keepends=True):
        record += line
        if record.count(b'"') % 2 == 0:
            yield record
            record = b""
    if record:
        yield record


def _ended(record: bytes) -> bytes:
    return record if record.endswith((b"\n", b"\r")) else record + b"\n"


def _is_text(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
