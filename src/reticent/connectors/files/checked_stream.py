"""A byte stream that refuses invalid text, NUL bytes and very long lines.

It converts any encoding to UTF-8 for the parser and counts lines, so that errors can name the line. The line limit
bounds the memory.

A CSV parser gets blocks of whole rows in memory. So it never reads ahead without bound, and an error can be located in
one block. A line end is the end of a row if the number of quotes before it is even.
"""

from __future__ import annotations

import codecs
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import BinaryIO

from reticent.connectors.files.sniff import Format, encoding_error
from reticent.connectors.files.source import OpenInput, read_errors
from reticent.errors import DataError

# A row rarely exceeds a few kilobytes; this limit allows long notes and still bounds the memory.
MAX_LINE = 16 << 20
_CHUNK = 1 << 20


class CheckedStream:
    """A readable stream of checked bytes, always UTF-8 without a byte order mark."""

    def __init__(self, source: OpenInput, file_format: Format) -> None:
        self._name = source.name
        self._stream: BinaryIO = source.stream
        self._encoding = file_format.encoding
        self._decoder = codecs.getincrementaldecoder(file_format.encoding)("strict")
        self._pass_through = codecs.lookup(file_format.encoding).name == "utf-8"
        self._skip = file_format.bom
        self._ready = b""
        self._open = 0
        self._ended = False
        self.lines = 0

    def read(self, size: int) -> bytes:
        """Return `size` checked bytes, fewer only at the end: the parser treats a short read as a short block."""
        parts = [self._ready]
        have = len(self._ready)
        while have < size and not self._ended:
            part = self._next()
            parts.append(part)
            have += len(part)
        data = b"".join(parts)
        self._ready = data[size:]
        return data[:size]

    def _next(self) -> bytes:
        with read_errors(self._name):
            raw = self._stream.read(_CHUNK)
        self._ended = not raw
        if self._skip and raw:
            raw, self._skip = raw[self._skip :], max(self._skip - len(raw), 0)
        data = self._decode(raw)
        self._check_nul(data)
        self._check_lines(data)
        return data

    def _decode(self, raw: bytes) -> bytes:
        try:
            text = self._decoder.decode(raw, final=self._ended)
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode(self._encoding, "replace").count("\n")
            raise encoding_error(self._name, self.lines + before + 1, self._encoding) from None
        return raw if self._pass_through else text.encode("utf-8", "surrogatepass")

    def _check_nul(self, data: bytes) -> None:
        place = data.find(b"\0")
        if place >= 0:
            line = self.lines + data.count(b"\n", 0, place) + 1
            raise DataError(
                f"{self._name}, line {line}: a NUL byte, so this is not a text table.",
                hint="Export the file again as text, or give it the suffix of its real format.",
            )

    def _check_lines(self, data: bytes) -> None:
        ends = [place for place in (data.find(b"\n"), data.find(b"\r")) if place >= 0]
        if self._open + (min(ends) if ends else len(data)) > MAX_LINE:
            raise line_length_error(self._name, self.lines + 1)
        last = max(data.rfind(b"\n"), data.rfind(b"\r"))
        self._open = len(data) - 1 - last if ends else self._open + len(data)
        self.lines += data.count(b"\n")


def line_length_error(name: str, line: int) -> DataError:
    """Return the error for a line, or a quoted cell over many lines, that exceeds the limit."""
    return DataError(
        f"{name}, line {line}: a row is longer than {MAX_LINE >> 20} MB.",
        hint="Check the line ends of the file, and close every opening quote.",
    )


# Large enough to make the parser's start-up cost negligible, small enough to keep several in memory.
_BLOCK = 16 << 20


@dataclass(frozen=True)
class Block:
    """Whole rows, the line number where they begin, and whether they include the header."""

    line: int
    data: bytes = field(repr=False)
    first: bool


def iter_blocks(source: OpenInput, file_format: Format) -> Generator[Block]:
    """Yield the blocks of a file; for a regular file, a thread reads the next block during parsing."""
    cut = _cut_blocks(source, file_format)
    if source.path is None:
        yield from cut  # a thread would block on a silent pipe
        return
    with ThreadPoolExecutor(1) as ahead:
        pending = ahead.submit(next, cut, None)
        while (block := pending.result()) is not None:
            pending = ahead.submit(next, cut, None)
            yield block


def _cut_blocks(source: OpenInput, file_format: Format) -> Iterator[Block]:
    guard, quote = CheckedStream(source, file_format), file_format.quote.encode()
    rest, line, first = b"", 1, True
    while data := guard.read(_BLOCK):
        rest += data
        # A file with bare carriage returns has no newline; the parser accepts every line end.
        newline = b"\n" if b"\n" in rest else b"\r"
        end = _last_row_end(rest, quote, newline)
        if end:
            yield Block(line, rest[:end], first)
            line += rest.count(newline, 0, end)
            rest, first = rest[end:], False
        if len(rest) > MAX_LINE:
            raise line_length_error(source.name, line)
    if rest.count(quote) % 2:
        # The parser would close the quote silently and turn all later rows into one cell.
        raise DataError(
            f"{source.name}, line {line}: a quote is opened but never closed.",
            hint="Double every quote inside a cell and wrap the cell in quotes.",
        )
    if rest:
        yield Block(line, rest, first)


def _last_row_end(data: bytes, quote: bytes, newline: bytes) -> int:
    end = data.rfind(newline)
    quotes = data.count(quote, 0, max(end, 0))
    while end >= 0 and quotes % 2:
        before = data.rfind(newline, 0, end)
        quotes -= data.count(quote, max(before, 0), end)
        end = before
    return end + 1
