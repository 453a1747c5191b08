"""How large a packed table would be in memory, from what it says of itself, before anything unpacks it.

Parquet and Arrow hold more than they weigh: pages and buffers are compressed, a value that comes again is a number, and a column of
nothing has no bytes at all. Some hundred bytes can stand for a billion rows.

Guarantee: against whoever sends a small body that stands for a large table: what is unpacked is at most 256 MiB, or four times
    the body, a cell counting for eight bytes at least; anything larger is refused before it is unpacked.
Not covered: a Parquet file made by hand whose pages are larger than its footer says.
Cost: the headers of Arrow messages; of Parquet a look at the text columns, in which values that come again are not repeated.
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
"""How a stream of Arrow begins."""
_DICTIONARY, _RECORDS = 2, 3  # kinds of Arrow messages
_VIEWS = (pa.string_view(), pa.binary_view())


def refuse_bombs(data: bytes) -> None:
    """Refuses a Parquet or Arrow body that stands for much more than it weighs; leaves all others to their readers."""
    limit = max(_MAX_BYTES, _GROWTH * len(data))
    try:
        size = 0
        for part in _sizes(data):
            size += part
            if size > limit:
                break
    except (pa.ArrowException, OSError, ValueError, KeyError, IndexError):
        raise DataError("This is no sound Parquet or Arrow.", hint="Write or copy it again.") from None
    if size > limit:
        raise DataError(
            f"Unpacked, this would be more than {limit >> 20:,} MiB.",
            hint="Send it in parts, or use the command line.",
        )


def check_arrow_stream(data: bytes) -> bytes:
    """A body that is to be a stream of Arrow, if it is one and no bomb."""
    if not data.startswith(ARROW_STREAM):
        raise DataError("The body is not a sound Arrow stream.", hint="Write it with pyarrow.ipc.new_stream.")
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
    about = pq.read_metadata(io.BytesIO(data))
    parts = [about.row_group(number) for number in range(about.num_row_groups)]
    yield max(about.num_rows, sum(part.num_rows for part in parts)) * about.num_columns * _CELL
    yield sum(part.column(i).total_uncompressed_size for part in parts for i in range(part.num_columns))
    schema = pq.read_schema(io.BytesIO(data))
    texts = [field.name for field in schema if pa.types.is_large_string(field.type) or pa.types.is_string(field.type)]
    if texts:
        file = pq.ParquetFile(io.BytesIO(data), read_dictionary=texts)
        for batch in file.iter_batches(columns=texts):
            yield sum(_length(column) for column in batch.columns)


def _repeated_size(schema: pa.Schema, read: Callable[[], pa.Table]) -> Iterator[int]:
    """What values weigh that stand in a table once and are meant many times."""
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
        return 0  # of one width, so the cells count them
    return int(pc.sum(pc.binary_length(words).take(column.indices)).as_py() or 0)


# Arrow messages: a length, a table of flatbuffers with the sizes of all buffers, then the buffers themselves.


def _stream_positions(data: bytes) -> Iterator[int]:
    """Places of the messages of a stream."""
    at = 0
    while at < len(data) and (length := _number(data, at + 4, "<i")):
        if data[at : at + 4] != ARROW_STREAM or length < 0:
            raise ValueError("the form of Arrow before 2019, or none")
        yield at
        at += 8 + length + _Table(data, at + 8).number(3)


def _file_positions(data: bytes) -> Iterator[int]:
    """Places of the messages of a file, as its end lists them."""
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
    """A table of flatbuffers in some bytes."""

    def __init__(self, data: bytes, root: int, *, direct: bool = False) -> None:
        self._data = data
        self._at = root if direct else root + _number(data, root, "<I")
        self._fields = self._at - _number(data, self._at, "<i")

    def place(self, field: int) -> int:
        """Where a field stands; 0 where it does not."""
        if 4 + 2 * field >= _number(self._data, self._fields, "<H"):
            return 0
        offset = _number(self._data, self._fields + 4 + 2 * field, "<H")
        return self._at + offset if offset else 0

    def number(self, field: int, form: str = "<q") -> int:
        """A field that is a number; 0 where it is left out."""
        place = self.place(field)
        return _number(self._data, place, form) if place else 0

    def table(self, field: int) -> _Table:
        """A field that is a table."""
        place = self.place(field)
        return _Table(self._data, place + _number(self._data, place, "<I"), direct=True)

    def vector(self, field: int) -> tuple[int, int]:
        """Where the first of a field's elements stands, and how many there are."""
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
