"""Read Parquet and Arrow IPC with their types, after checking that the file is valid."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from reticent.connectors.files.read import ReadOptions, check_names, no_rows_error
from reticent.connectors.files.sniff import Format
from reticent.connectors.files.source import OpenInput, seekable
from reticent.errors import DataError

_TITLES = {"parquet": "Parquet", "arrow": "Arrow"}


def batches(source: OpenInput, file_format: Format, options: ReadOptions) -> Generator[pa.RecordBatch]:
    """Yield the file piece by piece."""
    rows = 0
    pieces = _parquet(source, options) if file_format.name == "parquet" else _arrow(source, options)
    while True:
        with _translate_errors(source.name, file_format):
            piece = next(pieces, None)
            if piece is not None:
                # Files are untrusted: validate offsets and text before using them.
                piece.validate(full=True)
        if piece is None:
            break
        rows += piece.num_rows
        for start in range(0, piece.num_rows, options.batch_rows):
            yield piece.slice(start, options.batch_rows)
    if not rows:
        raise no_rows_error(source.name)


def table(source: OpenInput, file_format: Format, options: ReadOptions) -> pa.Table:
    """Return the whole file as one table."""
    return pa.Table.from_batches(list(batches(source, file_format, options)))


def _parquet(source: OpenInput, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    with seekable(source) as file:
        parquet = pq.ParquetFile(file)
        columns = _check_columns(source.name, parquet.schema_arrow, options)
        yield from parquet.iter_batches(batch_size=options.batch_rows, columns=list(columns))


def _arrow(source: OpenInput, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    if source.head.startswith(b"ARROW1"):
        with seekable(source) as file:
            reader = pyarrow.ipc.open_file(file)
            columns = _check_columns(source.name, reader.schema, options)
            for number in range(reader.num_record_batches):
                yield reader.get_batch(number).select(columns)
    else:
        reader = pyarrow.ipc.open_stream(source.stream)
        columns = _check_columns(source.name, reader.schema, options)
        for batch in reader:
            yield batch.select(columns)


def _check_columns(name: str, schema: pa.Schema, options: ReadOptions) -> tuple[str, ...]:
    check_names(name, schema.names)
    columns = options.select_columns(name, schema.names)
    for column in columns:
        if pa.types.is_nested(schema.field(column).type):
            raise DataError(f"{name}: column {column!r} is nested.", hint="Flatten it to one value per row.")
    return columns


@contextlib.contextmanager
def _translate_errors(name: str, file_format: Format) -> Iterator[None]:
    """Replace the library's errors, which may quote cells, with ours."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, EOFError):
        raise DataError(
            f"{name} is a corrupt {_TITLES[file_format.name]} file.", hint="Export or copy it again."
        ) from None
