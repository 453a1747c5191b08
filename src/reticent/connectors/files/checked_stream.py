"""A byte stream that refuses what no table should hold: broken text, NUL bytes, endless lines.

It sits between the file and the parser, turns any encoding into UTF-8, and knows the line it is on, so that errors
can say where. Memory is bounded by the line limit, whatever the file does.

A CSV parser gets blocks of whole rows, one after the other, in memory: so it never calls back, never reads ahead without bound, and an
error can be searched in one block. A line end is the end of a row where the number of quotes before it is even.
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

# A row of a table is rarely above a few kilobytes; this leaves room for long notes and still bounds the memory.
MAX_LINE = 16 << 20
_CHUNK = 1 << 20


class CheckedStream:
    """The readable end of a checked stream, always UTF-8 without a byte order mark."""

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
        """Give `size` checked bytes; fewer only at the end, because the parser takes a short read for a short block."""
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
                hint="Export the file again as text, or name its true format by its suffix.",
            )

    def _check_lines(self, data: bytes) -> None:
        ends = [place for place in (data.find(b"\n"), data.find(b"\r")) if place >= 0]
        if self._open + (min(ends) if ends else len(data)) > MAX_LINE:
            raise line_length_error(self._name, self.lines + 1)
        last = max(data.rfind(b"\n"), data.rfind(b"\r"))
        self._open = len(data) - 1 - last if ends else self._open + len(data)
        self.lines += data.count(b"\n")


def line_length_error(name: str, line: int) -> DataError:
    """The error for a line, or a quoted cell over many lines, that exceeds the limit."""
    return DataError(
        f"{name}, line {line}: a row is longer than {MAX_LINE >> 20} MB.",
        hint="Check the line ends of the file, and that every quote that is opened is closed.",
    )


# Large enough that starting the parser costs nothing, small enough that a few of them fit anywhere.
_BLOCK = 16 << 20


@dataclass(frozen=True)
class Block:
    """Whole rows, the line of the file on which they begin, and whether the header is among them."""

    line: int
    data: bytes = field(repr=False)
    first: bool


def iter_blocks(source: OpenInput, file_format: Format) -> Generator[Block]:
    """The blocks of a file; for a regular file the next one is read and checked while this one is parsed."""
    cut = _cut_blocks(source, file_format)
    if source.path is None:
        yield from cut  # a pipe may be silent for long, and nobody should wait for a thread that waits for it
        return
    with ThreadPoolExecutor(1) as ahead:
        coming = ahead.submit(next, cut, None)
        while (block := coming.result()) is not None:
            coming = ahead.submit(next, cut, None)
            yield block


def _cut_blocks(source: OpenInput, file_format: Format) -> Iterator[Block]:
    guard, quote = CheckedStream(source, file_format), file_format.quote.encode()
    rest, line, first = b"", 1, True
    while data := guard.read(_BLOCK):
        rest += data
        # A file with bare carriage returns as line ends has none of the others; the parser knows them all.
        newline = b"\n" if b"\n" in rest else b"\r"
        end = _last_row_end(rest, quote, newline)
        if end:
            yield Block(line, rest[:end], first)
            line += rest.count(newline, 0, end)
            rest, first = rest[end:], False
        if len(rest) > MAX_LINE:
            raise line_length_error(source.name, line)
    if rest.count(quote) % 2:
        # The parser would close the quote by itself: all rows after it would become one cell.
        raise DataError(
            f"{source.name}, line {line}: a quote is opened and never closed.",
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
