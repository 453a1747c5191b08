"""Read NDJSON: one flat JSON object per line; an absent field is null.

Types are those of JSON (integer, number, true/false, text); a field of mixed types becomes text. In batches, the first
batch sets the fields and types. A later line that does not fit is an error with its line number.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa

from reticent.connectors.files.checked_stream import CheckedStream
from reticent.connectors.files.read import ReadOptions, check_names, no_rows_error
from reticent.connectors.files.sniff import Format
from reticent.connectors.files.source import OpenInput
from reticent.errors import DataError

_BLOCK = 4 << 20
# Above this limit a double no longer represents every integer exactly.
_EXACT = 2.0**53
# Larger tables must fill at least one field in _SPARSE. Otherwise each line with a new field would cost a whole column,
# and a few kilobytes of such lines could use up all memory.
_CELLS, _SPARSE = 1_000_000, 20
_TYPES = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}


@dataclass(frozen=True)
class _Chunk:
    """A list of records and the line number of each."""

    name: str
    lines: list[int]
    records: list[dict[str, Any]]

    def line_where(self, keys: Iterable[str], bad: Callable[[Any], bool] = lambda _: True) -> int:
        """Return the first line that has a bad value in one of the fields."""
        return next(
            line
            for line, record in zip(self.lines, self.records, strict=True)
            if any(key in record and bad(record[key]) for key in keys)
        )


def table(source: OpenInput, file_format: Format, options: ReadOptions) -> pa.Table:
    """Return the whole file as one table; fields may appear on any line."""
    pieces = [_columns(chunk) for chunk in _iter_chunks(source, file_format, options.batch_rows)]
    if not pieces:
        raise no_rows_error(source.name)
    names = list(dict.fromkeys(name for piece in pieces for name in piece))
    check_names(source.name, names)
    return pa.table(
        {name: _stack_column(source.name, pieces, name) for name in options.select_columns(source.name, names)}
    )


def batches(source: OpenInput, file_format: Format, options: ReadOptions) -> Generator[pa.RecordBatch]:
    """Yield the file piece by piece."""
    schema: pa.Schema | None = None
    known: frozenset[str] = frozenset()
    for chunk in _iter_chunks(source, file_format, options.batch_rows):
        columns = _columns(chunk)
        if schema is None:
            known = frozenset(columns)
            schema = _schema(source.name, columns, options)
        elif new_fields := columns.keys() - known:
            line = chunk.line_where(new_fields)
            raise DataError(
                f"{source.name}, line {line}: a field that the first batch does not have.",
                hint="Write every field in every line, with null for a missing value.",
            )
        yield _batch(source.name, columns, schema, len(chunk.records))
    if schema is None:
        raise no_rows_error(source.name)


def _schema(name: str, columns: dict[str, pa.Array], options: ReadOptions) -> pa.Schema:
    check_names(name, list(columns))
    names = options.select_columns(name, list(columns))
    return pa.schema([(key, _type_or_text(columns[key].type)) for key in names])


def _batch(name: str, columns: dict[str, pa.Array], schema: pa.Schema, rows: int) -> pa.RecordBatch:
    arrays = [
        _cast(name, columns[field.name], field) if field.name in columns else pa.nulls(rows, field.type)
        for field in schema
    ]
    return pa.record_batch(arrays, schema=schema)


def _iter_chunks(source: OpenInput, file_format: Format, rows: int) -> Iterator[_Chunk]:
    numbers: list[int] = []
    lines: list[bytes] = []
    for number, line in iter_lines(source, file_format):
        numbers.append(number)
        lines.append(line)
        if len(lines) >= rows:
            yield _Chunk(source.name, numbers, _parse(source.name, numbers, lines))
            numbers, lines = [], []
    if lines:
        yield _Chunk(source.name, numbers, _parse(source.name, numbers, lines))


def iter_lines(source: OpenInput, file_format: Format) -> Iterator[tuple[int, bytes]]:
    """Yield every line that is not blank, with its number."""
    guard = CheckedStream(source, file_format)
    number, rest = 0, b""
    while block := guard.read(_BLOCK):
        *whole, rest = (rest + block).split(b"\n")
        for line in whole:
            number += 1
            if line and not line.isspace():
                yield number, line
    if rest.strip():
        yield number + 1, rest


def _parse(name: str, numbers: list[int], lines: list[bytes]) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    try:
        records.extend(map(orjson.loads, lines))
    except orjson.JSONDecodeError:
        raise DataError(
            f"{name}, line {numbers[len(records)]}: not valid JSON.",
            hint="Write one complete JSON object per line; NaN and Infinity are not JSON.",
        ) from None
    for number, record in zip(numbers, records, strict=True):
        if type(record) is not dict:
            raise DataError(f"{name}, line {number}: not a JSON object.", hint="Write one JSON object per line.")
    return records


def _columns(chunk: _Chunk) -> dict[str, pa.Array]:
    keys = dict.fromkeys(key for record in chunk.records for key in record)
    cells = len(keys) * len(chunk.records)
    if cells > max(_CELLS, _SPARSE * sum(map(len, chunk.records))):
        raise DataError(
            f"{chunk.name}: the lines share too few fields ({len(keys):,} different fields).",
            hint="Give every line the same fields.",
        )
    return {key: _column(chunk, key) for key in keys}


def _column(chunk: _Chunk, key: str) -> pa.Array:
    values = [record.get(key) for record in chunk.records]
    types = set(map(type, values)) - {type(None)}
    if types & {dict, list}:
        line = chunk.line_where([key], lambda value: isinstance(value, (dict, list)))
        raise DataError(
            f"{chunk.name}, line {line}: field {key!r} is nested.", hint="Flatten it to one value per field."
        )
    if float in types and any(isinstance(value, float) and abs(value) >= _EXACT for value in values):
        raise _inexact_error(chunk, key)
    target = _common_type([_TYPES[python] for python in types])
    if pa.types.is_string(target) and types != {str}:
        values = [v if v is None or isinstance(v, str) else orjson.dumps(v).decode() for v in values]
    try:
        return pa.array(values, type=target)
    except (pa.ArrowException, OverflowError):
        raise _inexact_error(chunk, key) from None


def _inexact_error(chunk: _Chunk, key: str) -> DataError:
    line = chunk.line_where([key], lambda value: type(value) in (int, float) and abs(value) >= _EXACT)
    return DataError(
        f"{chunk.name}, line {line}: field {key!r} has a number too large to store exactly.",
        hint="Write long identifiers as text, in quotes.",
    )


def _common_type(types: list[pa.DataType]) -> pa.DataType:
    distinct = set(types) - {pa.null()}
    if not distinct:
        return pa.null()
    if len(distinct) == 1:
        return distinct.pop()
    return pa.float64() if distinct == {pa.int64(), pa.float64()} else pa.string()


def _type_or_text(data_type: pa.DataType) -> pa.DataType:
    """Return text for a column that is null so far: every later value can be written as text."""
    return pa.string() if pa.types.is_null(data_type) else data_type


def _stack_column(name: str, pieces: list[dict[str, pa.Array]], key: str) -> pa.ChunkedArray:
    data_type = _common_type([piece[key].type for piece in pieces if key in piece])
    field = pa.field(key, _type_or_text(data_type))
    arrays = [
        _cast(name, piece[key], field) if key in piece else pa.nulls(_row_count(piece), field.type) for piece in pieces
    ]
    return pa.chunked_array(arrays, type=field.type)


def _row_count(piece: dict[str, pa.Array]) -> int:
    return len(next(iter(piece.values()))) if piece else 0


def _cast(name: str, array: pa.Array, field: pa.Field) -> pa.Array:
    try:
        return array if array.type == field.type else array.cast(field.type)
    except pa.ArrowException:
        raise DataError(
            f"{name}: field {field.name!r} changes from {field.type} to {array.type} within the file.",
            hint="Write the field with one type throughout.",
        ) from None
