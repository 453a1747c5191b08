"""Write a table or a stream of batches to CSV, Parquet, Arrow IPC or NDJSON, completely or not at all."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePath
from typing import Any, BinaryIO, cast, get_args

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.ipc

from reticent.connectors.files.atomic import atomic_file, write_errors
from reticent.connectors.files.sniff import SUFFIXES, FormatName
from reticent.errors import PolicyError

TargetLike = str | os.PathLike[str]
Write = Callable[[pa.RecordBatch], object]


def write_table(table: pa.Table, target: TargetLike, format: FormatName | None = None) -> None:  # noqa: A002  # the public name
    """Write a table to a path or to ``-`` (standard output); by default, the suffix sets the format."""
    write_batches(table.schema, table.to_batches(), target, format)


def write_batches(
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    target: TargetLike,
    format: FormatName | None = None,  # noqa: A002  # the public name
) -> None:
    """Write batches one by one; the file appears only when all are written."""
    with open_table(target, schema, format) as write:
        for batch in batches:
            write(batch)


@contextlib.contextmanager
def open_table(
    target: TargetLike,
    schema: pa.Schema,
    format: FormatName | None = None,  # noqa: A002  # the public name
    *,
    quotes: bool = True,
) -> Iterator[Write]:
    """Give a function that appends a batch, so that a caller can write several files at once; see `write_batches`.

    With `quotes=False`, CSV is written without quotes; a value that needs them is an error.
    """
    name = _format_name(target, format)
    writer = _unquoted_csv if name == "csv" and not quotes else _WRITERS[name]
    with _open(target) as file, writer(_PositionWriter(file), schema) as write:
        yield write


def _format_name(target: TargetLike, format: FormatName | None) -> FormatName:  # noqa: A002 - the public name
    name = format or ("csv" if os.fspath(target) == "-" else SUFFIXES.get(PurePath(target).suffix.lower()))
    if name not in get_args(FormatName):
        raise PolicyError(
            f"{target}: unknown file format.",
            hint=f"Use csv, parquet, arrow or ndjson, or a suffix of {', '.join(SUFFIXES)}.",
        )
    return cast("FormatName", name)


@contextlib.contextmanager
def _open(target: TargetLike) -> Iterator[BinaryIO]:
    if os.fspath(target) == "-":
        with write_errors("standard output"):
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
    else:
        with atomic_file(target) as file:
            yield file


class _PositionWriter(io.RawIOBase):
    """A file for pyarrow that tracks its position, so that a pipe works too; the caller closes the underlying file."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file = file
        self._position = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        view = memoryview(data)
        self._file.write(view)
        self._position += view.nbytes
        return view.nbytes

    def tell(self) -> int:
        return self._position


@contextlib.contextmanager
def _csv(file: _PositionWriter, schema: pa.Schema) -> Iterator[Write]:
    plain = pa.schema([(field.name, _value_type(field.type)) for field in schema])
    with pacsv.CSVWriter(file, plain) as writer:
        yield lambda batch: writer.write_batch(batch.cast(plain))


@contextlib.contextmanager
def _unquoted_csv(file: _PositionWriter, schema: pa.Schema) -> Iterator[Write]:
    file.write((",".join(schema.names) + "\n").encode())
    options = pacsv.WriteOptions(include_header=False, quoting_style="none")
    with pacsv.CSVWriter(file, schema, write_options=options) as writer:
        yield writer.write_batch


@contextlib.contextmanager
def _parquet(file: _PositionWriter, schema: pa.Schema) -> Iterator[Write]:
    import pyarrow.parquet as pq  # slow import, rarely needed

    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        yield writer.write_batch


@contextlib.contextmanager
def _arrow(file: _PositionWriter, schema: pa.Schema) -> Iterator[Write]:
    # Values, not dictionaries: the file format allows one dictionary per column, but batches may have their own.
    plain = pa.schema([(field.name, _value_type(field.type)) for field in schema])
    with pyarrow.ipc.new_file(file, plain) as writer:
        yield lambda batch: writer.write_batch(batch.cast(plain))


@contextlib.contextmanager
def _ndjson(file: _PositionWriter, _: pa.Schema) -> Iterator[Write]:
    yield lambda batch: file.write(to_ndjson(batch))


def to_ndjson(batch: pa.RecordBatch) -> bytes:
    r"""Return one JSON object per row and line; each distinct value is encoded once.

    >>> to_ndjson(pa.record_batch({"age": [24, None], "sex": ["f", "m"]}))
    b'{"age":24,"sex":"f"}\n{"age":null,"sex":"m"}\n'
    """
    if not batch.num_rows or not batch.num_columns:
        return b"{}\n" * int(batch.num_rows)
    parts = [
        _members(name, column, place)
        for place, (name, column) in enumerate(zip(batch.schema.names, batch.columns, strict=True))
    ]
    lines = pc.binary_join_element_wise(*parts, pa.scalar("}\n", pa.large_string()), pa.scalar("", pa.large_string()))
    return bytes(memoryview(lines.buffers()[2]))


def _members(name: str, column: pa.Array, place: int) -> pa.Array:
    """Return the text `"name":value` of every row, with the preceding delimiter."""
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    before = ("," if place else "{") + orjson.dumps(name).decode() + ":"
    values = [*encoded.dictionary.to_pylist(), None]
    texts = pa.array([before + orjson.dumps(value, default=str).decode() for value in values], pa.large_string())
    return texts.take(pc.fill_null(encoded.indices.cast(pa.int64()), len(values) - 1))


def _value_type(data_type: pa.DataType) -> pa.DataType:
    return data_type.value_type if pa.types.is_dictionary(data_type) else data_type


_WRITERS = {"csv": _csv, "parquet": _parquet, "arrow": _arrow, "ndjson": _ndjson}
