"""Split rows over temporary files by patient, so that each part can be joined in memory.

The files have no name and are readable by their owner only. Nothing is left behind, however the process ends.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Self

import pyarrow as pa

_ROWS = 8192


def text_batch(rows: Sequence[tuple[str | None, ...]], names: Sequence[str]) -> pa.RecordBatch:
    """Return rows of text cells as a batch of columns."""
    columns = zip(*rows, strict=True) if rows else ([] for _ in names)
    return pa.record_batch([pa.array(column, pa.string()) for column in columns], names=list(names))


class Spill:
    """Rows of text cells in `parts` files; `rows` returns one part."""

    def __init__(self, width: int, parts: int) -> None:
        self._stack = ExitStack()
        self.empty = True
        """Whether no row has been added yet."""
        self._schema = pa.schema([(str(i), pa.string()) for i in range(width)])
        self._buffers: list[list[tuple[str | None, ...]]] = [[] for _ in range(parts)]
        files = (tempfile.TemporaryFile() for _ in range(parts if parts > 1 else 0))  # noqa: SIM115 - the stack closes them
        self._files = [self._stack.enter_context(file) for file in files]
        self._writers = [pa.ipc.new_stream(file, self._schema) for file in self._files]

    def add(self, part: int, row: tuple[str | None, ...]) -> None:
        """Add a row to its part."""
        self.empty = False
        buffer = self._buffers[part]
        buffer.append(row)
        if self._files and len(buffer) >= _ROWS:
            self._write(part)

    def _write(self, part: int) -> None:
        self._writers[part].write_batch(text_batch(self._buffers[part], self._schema.names))
        self._buffers[part] = []

    def rows(self, part: int) -> Iterator[tuple[str | None, ...]]:
        """Yield the rows of one part in their original order; each part can be read once."""
        if self._files:
            if self._buffers[part]:
                self._write(part)
            self._writers[part].close()
            self._files[part].seek(0)
            for batch in pa.ipc.open_stream(self._files[part]):
                yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
            self._files[part].truncate(0)
        else:
            buffer, self._buffers[part] = self._buffers[part], []
            yield from buffer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
