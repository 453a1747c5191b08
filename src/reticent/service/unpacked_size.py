"""The size of a Parquet or Arrow table in memory, computed from its metadata before it is unpacked.

Parquet and Arrow files can be much smaller than their tables: they compress pages and buffers, store repeated values as
numbers, and need no bytes for an empty column. A few hundred bytes can encode a billion rows.

Guarantee: against an attacker who sends a small body that encodes a large table. The server rejects a body before it
    unpacks more than 256 MiB, or four times the body, where each cell counts as at least eight bytes.
Not covered: a Parquet file made by hand whose pages are larger than its footer states.
Cost: the headers of Arrow messages; for Parquet also a pass over the text columns with repeated values as numbers.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc
import pyarrow.parquet as pq

from reticent.errors import DataError

_MAX_BYTES, _GROWTH, _CELL = 256 << 20, 4, 8
ARROW_STREAM = b"\xff\xff\xff\xff"
"""The first bytes of an Arrow stream."""
_DICTIONARY, _RECORDS = 2, 3  # kinds of Arrow messages
_VIEWS = (pa.string_view(), pa.binary_view())


def refuse_bombs(data: bytes) -> None:
    """Reject a Parquet or Arrow body that encodes a far larger table; ignore all other bodies."""
    limit = max(_MAX_BYTES, _GROWTH * len(data))
    try:
        size = 0
        for part in _sizes(data):
            size += part
            if size > limit:
                break
    except (pa.ArrowException, OSError, ValueError, KeyError, IndexError):
        raise DataError("The Parquet or Arrow file is corrupt.", hint="Write or copy the file again.") from None
    if size > limit:
        raise DataError(
            f"The table would take more than {limit >> 20:,} MiB of memory.",
            hint="Send it in parts, or use the command line.",
        )


def check_arrow_stream(data: bytes) -> bytes:
    """Return a body that is an Arrow stream of acceptable size; reject any other."""
    if not data.startswith(ARROW_STREAM):
        raise DataError("The body is not a valid Arrow stream.", hint="Write it with pyarrow.ipc.new_stream.")
    refuse_bombs(data)
    return data


def _sizes(data: bytes) -> Iterator[int]:
    if data.startswith(b"PAR1"):
        yield from _parquet(data)
    elif data.startswith(b"ARROW1"):
        yield from _message_sizes(data, _file_positions(data))
        yield from _repeated_size(pa.ipc.open_file(data).schema, lambda: pa.ipc.open_file(data).read_all())
    elif data.startswith(ARROW_STREAM):
        yield from _message_sizes(data, _stream_positions(data))
        yield from _repeated_size(pa.ipc.open_stream(data).schema, lambda: pa.ipc.open_stream(data).read_all())


def _parquet(data: bytes) -> Iterator[int]:
    footer = pq.read_metadata(io.BytesIO(data))
    parts = [footer.row_group(number) for number in range(footer.num_row_groups)]
    yield max(footer.num_rows, sum(part.num_rows for part in parts)) * footer.num_columns * _CELL
    yield sum(part.column(i).total_uncompressed_size for part in parts for i in range(part.num_columns))
    schema = pq.read_schema(io.BytesIO(data))
    texts = [field.name for field in schema if pa.types.is_large_string(field.type) or pa.types.is_string(field.type)]
    if texts:
        file = pq.ParquetFile(io.BytesIO(data), read_dictionary=texts)
        for batch in file.iter_batches(columns=texts):
            yield sum(_length(column) for column in batch.columns)


def _repeated_size(schema: pa.Schema, read: Callable[[], pa.Table]) -> Iterator[int]:
    """Yield the bytes of values that are stored once and repeated by reference."""
    names = [f.name for f in schema if pa.types.is_dictionary(f.type) or f.type in _VIEWS]
    if names:
        table = read()
        yield sum(_length(chunk) for name in names for chunk in table.column(name).chunks)


def _length(column: pa.Array) -> int:
    if column.type in _VIEWS:  # sixteen bytes each, the first four of which are the length
        return int(np.frombuffer(column.buffers()[1], "<u4")[::4].sum(dtype=np.int64))
    if not pa.types.is_dictionary(column.type):
        return 0
    words = column.dictionary
    if not (pa.types.is_string(words.type) or pa.types.is_large_string(words.type)):
        return 0  # values of fixed width are counted as cells
    return int(pc.sum(pc.binary_length(words).take(column.indices)).as_py() or 0)


# Arrow messages: a length, a table of flatbuffers with the sizes of all buffers, then the buffers themselves.


def _stream_positions(data: bytes) -> Iterator[int]:
    """Yield the positions of the messages of a stream."""
    at = 0
    while at < len(data) and (length := _number(data, at + 4, "<i")):
        if data[at : at + 4] != ARROW_STREAM or length < 0:
            raise ValueError("not an Arrow stream, or one in the format before 2019")
        yield at
        at += 8 + length + _Table(data, at + 8).number(3)


def _file_positions(data: bytes) -> Iterator[int]:
    """Yield the positions of the messages of a file from its footer."""
    length = _number(data, len(data) - 10, "<i")
    footer = _Table(data, len(data) - 10 - length)
    for field in (2, 3):
        start, count = footer.vector(field)
        for number in range(count):
            yield _number(data, start + 24 * number, "<q")


def _message_sizes(data: bytes, places: Iterator[int]) -> Iterator[int]:
    for at in places:
        length = _number(data, at + 4, "<i")
        message = _Table(data, at + 8)
        kind = message.number(1, "<B")
        if kind in (_DICTIONARY, _RECORDS):
            batch = message.table(2)
            yield _batch_size(data, batch.table(1) if kind == _DICTIONARY else batch, at + 8 + length)


def _batch_size(data: bytes, batch: _Table, body: int) -> int:
    rows = batch.number(0)
    _, nodes = batch.vector(1)
    start, buffers = batch.vector(2)
    packed = batch.place(3) > 0
    size = rows * max(1, nodes) * _CELL
    for number in range(buffers):
        offset, length = struct.unpack_from("<qq", data, start + 16 * number)
        size += max(length, _number(data, body + offset, "<q")) if packed and length >= 8 else length
    return size


class _Table:
    """A flatbuffers table."""

    def __init__(self, data: bytes, root: int, *, direct: bool = False) -> None:
        self._data = data
        self._at = root if direct else root + _number(data, root, "<I")
        self._fields = self._at - _number(data, self._at, "<i")

    def place(self, field: int) -> int:
        """Return the position of a field, or 0 if it is absent."""
        if 4 + 2 * field >= _number(self._data, self._fields, "<H"):
            return 0
        offset = _number(self._data, self._fields + 4 + 2 * field, "<H")
        return self._at + offset if offset else 0

    def number(self, field: int, form: str = "<q") -> int:
        """Return a numeric field, or 0 if it is absent."""
        place = self.place(field)
        return _number(self._data, place, form) if place else 0

    def table(self, field: int) -> _Table:
        """Return a field that is a table."""
        place = self.place(field)
        return _Table(self._data, place + _number(self._data, place, "<I"), direct=True)

    def vector(self, field: int) -> tuple[int, int]:
        """Return the position of the first element of a vector field and the number of elements."""
        place = self.place(field)
        if not place:
            return 0, 0
        start = place + _number(self._data, place, "<I")
        return start + 4, _number(self._data, start, "<I")


def _number(data: bytes, at: int, form: str) -> int:
    if not 0 <= at <= len(data) - struct.calcsize(form):
        raise IndexError(at)
    number: int = struct.unpack_from(form, data, at)[0]
    return number
