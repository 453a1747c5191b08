"""Cutting a CSV file into blocks of whole rows.

A line end is the end of a row where the number of quotes before it is even. The parser gets one block after the other,
in memory, so it never calls back, never reads ahead without bound, and an error can be searched in one block.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from reticent.connectors.files.guard import MAX_LINE, Guard, too_long
from reticent.connectors.files.sniff import Format
from reticent.connectors.files.source import Opened
from reticent.errors import DataError

# Large enough that starting the parser costs nothing, small enough that a few of them fit anywhere.
_BLOCK = 16 << 20


@dataclass(frozen=True)
class Block:
    """Whole rows, the line of the file on which they begin, and whether the header is among them."""

    line: int
    data: bytes = field(repr=False)
    first: bool


def blocks(source: Opened, file_format: Format) -> Generator[Block]:
    """The blocks of a file; for a regular file the next one is read and checked while this one is parsed."""
    cut = _cut(source, file_format)
    if source.path is None:
        yield from cut  # a pipe may be silent for long, and nobody should wait for a thread that waits for it
        return
    with ThreadPoolExecutor(1) as ahead:
        coming = ahead.submit(next, cut, None)
        while (block := coming.result()) is not None:
            coming = ahead.submit(next, cut, None)
            yield block


def _cut(source: Opened, file_format: Format) -> Iterator[Block]:
    guard, quote = Guard(source, file_format), file_format.quote.encode()
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
            raise too_long(source.name, line)
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
