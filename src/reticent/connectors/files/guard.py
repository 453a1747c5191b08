"""A byte stream that refuses what no table should hold: broken text, NUL bytes, endless lines.

It sits between the file and the parser, turns any encoding into UTF-8, and knows the line it is on, so that errors
can say where. Memory is bounded by the line limit, whatever the file does.
"""

from __future__ import annotations

import codecs
from typing import BinaryIO

from reticent.connectors.files.sniff import Format, wrong_encoding
from reticent.connectors.files.source import Opened, read_errors
from reticent.errors import DataError

# A row of a table is rarely above a few kilobytes; this leaves room for long notes and still bounds the memory.
MAX_LINE = 16 << 20
_CHUNK = 1 << 20


class Guard:
    """The readable end of a checked stream, always UTF-8 without a byte order mark."""

    def __init__(self, source: Opened, file_format: Format) -> None:
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
        data = self._decoded(raw)
        self._check_nul(data)
        self._check_lines(data)
        return data

    def _decoded(self, raw: bytes) -> bytes:
        try:
            text = self._decoder.decode(raw, final=self._ended)
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode(self._encoding, "replace").count("\n")
            raise wrong_encoding(self._name, self.lines + before + 1, self._encoding) from None
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
            raise too_long(self._name, self.lines + 1)
        last = max(data.rfind(b"\n"), data.rfind(b"\r"))
        self._open = len(data) - 1 - last if ends else self._open + len(data)
        self.lines += data.count(b"\n")


def too_long(name: str, line: int) -> DataError:
    """The error for a line, or a quoted cell over many lines, that exceeds the limit."""
    return DataError(
        f"{name}, line {line}: a row is longer than {MAX_LINE >> 20} MB.",
        hint="Check the line ends of the file, and that every quote that is opened is closed.",
    )
