"""Guess the format of a file from its first bytes: name, encoding, delimiter, quote.

The content decides; the suffix only decides between CSV and NDJSON when the content is unclear. Text that is not UTF-8
is read as Windows-1252, which agrees with Latin-1 on every printable character. Text that is mostly UTF-8 with some
invalid bytes is refused, because a guess could silently change names and codes.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import itertools
import re
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Literal

from reticent.connectors.files.magic import hint_for, kind_of, ole_kind, program_of
from reticent.connectors.files.source import OLE, ZIP, OpenInput
from reticent.errors import DataError

FormatName = Literal["csv", "ndjson", "parquet", "arrow"]
# Formats that are read but never written.
ReadName = FormatName | Literal["excel", "stats"]

SUFFIXES: dict[str, FormatName] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".psv": "csv",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".json": "ndjson",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
}
DELIMITERS = (",", ";", "\t", "|")
# The longer marks first: the mark of UTF-32 begins with the one of UTF-16.
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_ROWS_TO_GUESS_FROM = 50


@dataclass(frozen=True)
class Format:
    """Format of a file; `bom` is the number of bytes to skip at its start."""

    name: ReadName
    encoding: str = "utf-8"
    delimiter: str = ","
    quote: str = '"'
    bom: int = 0


def sniff(source: OpenInput) -> Format:
    """Guess the format from the first bytes of the source."""
    head = source.head
    if head.startswith(b"PAR1"):
        return Format("parquet")
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return Format("arrow")
    if source.workbook or program_of(head) is not None:
        return Format("excel" if source.workbook else "stats")
    if (kind := _kind(head)) == "excel":
        return Format("excel")
    if kind is not None:
        raise DataError(f"{source.name} is {kind}, not a table.", hint=hint_for(kind))
    bom, encoding = _guess_codec(source.name, head)
    text = decode_head(source.name, head[bom:], encoding)
    file_format = Format("csv", encoding=encoding, bom=bom)
    if text.lstrip().startswith("{") or _format_of_suffix(source) == "ndjson":
        return replace(file_format, name="ndjson")
    delimiter = _guess_delimiter(text)
    return replace(file_format, delimiter=delimiter, quote=_guess_quote(text, delimiter))


def _kind(head: bytes) -> str | None:
    if head.startswith(ZIP):
        return "a zip archive inside another archive"
    return ole_kind(head) if head.startswith(OLE) else kind_of(head)


def decode_head(name: str, head: bytes, encoding: str) -> str:
    """Decode the sample, which may end in the middle of a character."""
    try:
        return codecs.getincrementaldecoder(encoding)("strict").decode(head, final=False)
    except UnicodeDecodeError as error:
        line = error.object[: error.start].decode(encoding, "replace").count("\n") + 1
        raise encoding_error(name, line, encoding) from None


def encoding_error(name: str, line: int, encoding: str) -> DataError:
    """Return the error for bytes that are not valid text in the encoding."""
    return DataError(f"{name}, line {line}: not valid {encoding} text.", hint="Save the file as UTF-8.")


def _format_of_suffix(source: OpenInput) -> FormatName | None:
    suffixes = [part for part in PurePath(source.name.lower()).suffixes if part != ".gz"]
    return SUFFIXES.get(suffixes[-1]) if suffixes else None


def _guess_codec(name: str, head: bytes) -> tuple[int, str]:
    for mark, encoding in _BOMS:
        if head.startswith(mark):
            return len(mark), encoding
    if len(head) >= 4 and (head[0] == 0) != (head[1] == 0) and (head[2] == 0) != (head[3] == 0):
        return 0, "utf-16-be" if head[0] == 0 else "utf-16-le"
    decoded = codecs.getincrementaldecoder("utf-8")("replace").decode(head, final=False)
    # A replacement character that is already in the file is not a decoding error.
    invalid = decoded.count("\ufffd") - head.count("\ufffd".encode())
    if not invalid:
        return 0, "utf-8"
    valid = sum(map(len, re.findall(r"[^\x00-\x7f\ufffd]+", decoded)))
    if valid >= invalid or not _is_cp1252(head):
        raise encoding_error(name, decoded[: decoded.index("\ufffd")].count("\n") + 1, "UTF-8")
    return 0, "cp1252"


def _is_cp1252(head: bytes) -> bool:
    try:
        head.decode("cp1252")
    except UnicodeDecodeError:
        return False
    return True


def _guess_delimiter(text: str) -> str:
    """Return the delimiter with which most rows have as many cells as the header, and the header has most cells."""
    scores = []
    for delimiter in DELIMITERS:
        widths = [len(row) for row in first_rows(text, delimiter, '"') if row]
        width = widths[0] if widths else 1
        agree = sum(cells == width for cells in widths) / max(len(widths), 1)
        scores.append((width > 1, agree > 0.5, width * agree, delimiter))
    best = max(scores, key=lambda score: score[:3])
    return best[3] if best[0] else _delimiter_below_title(text)


def _delimiter_below_title(text: str) -> str:
    """Return the delimiter of the lines below a title line, which has none; the title is refused later as a header."""
    for delimiter in DELIMITERS:
        widths = [len(row) for row in first_rows(text, delimiter, '"')[1:] if row]
        if len(widths) > 1 and len(set(widths)) == 1 and widths[0] > 1:
            return delimiter
    return ","


def first_rows(text: str, delimiter: str, quote: str) -> list[list[str]]:
    """Return the first rows of a sample; the last one may be cut off."""
    rows: list[list[str]] = []
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quotechar=quote)
    with contextlib.suppress(csv.Error):
        rows.extend(itertools.islice(reader, _ROWS_TO_GUESS_FROM))
    return rows


def _guess_quote(text: str, delimiter: str) -> str:
    """Return the quote; an apostrophe only if no double quote occurs and most rows have a cell in apostrophes."""
    sample = text.splitlines()[:_ROWS_TO_GUESS_FROM]
    if not sample or '"' in text:
        return '"'
    edge = re.escape(delimiter)
    wrapped = re.compile(rf"(?:^|{edge})'[^']*'(?={edge}|$)")
    return "'" if sum(bool(wrapped.search(line)) for line in sample) > len(sample) / 2 else '"'
