"""Finding the line of a bad row after the fast parser gave up: slow, and only ever done once per failed file."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, cast

from reticent.connectors.files.guard import Guard
from reticent.connectors.files.source import Opened, opened
from reticent.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reticent.connectors.files.sniff import Format


def ragged_line(source: Opened, form: Format, width: int) -> tuple[int, int] | None:
    """The line where the first row with another number of cells begins, and that number; None when not found."""
    for start, _, row in _rows(source, form):
        if row and len(row) != width:
            return start, len(row)
    return None


def open_quote_line(source: Opened, form: Format) -> int | None:
    """The line where the row with a quote that never closes most likely begins: the row over the most lines."""
    longest = max(((end - start, -start) for start, end, _ in _rows(source, form)), default=None)
    return -longest[1] if longest and longest[0] else None


def _rows(source: Opened, form: Format) -> Iterator[tuple[int, int, list[str]]]:
    if source.path is None:
        return
    with opened(source.path) as again:
        lines = io.TextIOWrapper(io.BufferedReader(_Raw(Guard(again, form))), "utf-8", newline="")
        reader = csv.reader(lines, delimiter=form.delimiter, quotechar=form.quote)
        before = 0
        try:
            for row in reader:
                yield before + 1, reader.line_num, row
                before = reader.line_num
        except (csv.Error, DataError):
            return


class _Raw(io.RawIOBase):
    """The guard as the kind of stream that the standard library's csv module reads from."""

    def __init__(self, guard: Guard) -> None:
        super().__init__()
        self._guard = guard

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = cast("memoryview", buffer)
        data = self._guard.read(len(view))
        view[: len(data)] = data
        return len(data)
