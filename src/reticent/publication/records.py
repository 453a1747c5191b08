"""Reads records into batches for every interface: NDJSON, CSV, Arrow tables and cells of text.

How a record is read never depends on other records. Each published cell keeps its JSON type; internally a cell is its text, so
that 5, 5.0 and "5" are the same person, quasi-identifier or value in every batch. A record that cannot be released is rejected with
a reason that names columns and never contains a cell. The core parses the bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from reticent import _core
from reticent.arrays import Int64s
from reticent.encode.columns import normalize_names, to_native
from reticent.errors import DataError
from reticent.policy import Policy
from reticent.policy.cells import without_markers

_TEXT = pa.string()
_DIRECT_TYPES = (_TEXT, pa.int64(), pa.bool_())
# Columns whose digits are codes and not numbers.
_CODE_NAMES = re.compile(r"(zip|post_?code|postal|plz|code)", re.IGNORECASE)
_JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]+)?")


class RejectedRecord(NamedTuple):
    """A record that cannot be released: its number in the batch, the reason and the record itself."""

    row: int
    reason: str
    payload: bytes


@dataclass(frozen=True, repr=False)
class Batch:
    """The records of one read.

    Attributes:
        table: the columns of the policy as text.
        rows: the number of each accepted record among all records of the batch.
        total: the number of records, accepted and rejected.
        rejected: the rejected records.
        tokens: published columns whose cells are not all text, as JSON.
        numbers: columns of text whose cells are published as numbers if they look like numbers.
    """

    table: pa.Table
    rows: Int64s
    total: int
    rejected: Sequence[RejectedRecord] = ()
    tokens: Mapping[str, pa.Array] = field(default_factory=dict)
    numbers: frozenset[str] = frozenset()

    def token_column(self, name: str) -> pa.Array:
        """Return a column with each cell as JSON."""
        if name in self.tokens:
            return self.tokens[name]
        numbers = name in self.numbers
        cells = self.table.column(name).to_pylist()
        return pa.array([_token(cell, numbers=numbers) for cell in cells], _TEXT)


class RecordReader:
    """Reads records under a policy. `numbers` are the columns whose cells must be numbers."""

    def __init__(self, policy: Policy, numbers: Iterable[str] = ()) -> None:
        self.policy = policy
        self._names = list(policy.columns)
        self._published, released = frozenset((*policy.quasi, *policy.plain)), frozenset(policy.released)
        unit = policy.household if policy.stream.method == "veil" else None
        required = {name: word for name, word in ((policy.person, "no person"), (unit, "no household")) if name}
        self._required, self._numbers = required, tuple(numbers)
        self._look_like_numbers = frozenset(_number_columns(policy))
        self._core = _core.wire.Reader(
            self._names,
            published=[name in self._published for name in self._names],
            released=[name in released for name in self._names],
            required=[(self._names.index(name), word) for name, word in required.items()],
            numbers=[self._names.index(name) for name in self._numbers],
            missing=policy.missing,
        )

    def ndjson(self, data: bytes) -> Batch:
        """Read one JSON object per line. A missing field is null."""
        return self._batch(self._core.ndjson(data))

    def objects(self, values: Sequence[bytes | str | None]) -> Batch:
        """Read one JSON object per value."""
        return self._batch(self._core.objects(values))

    def csv(self, data: bytes, header: Sequence[str], delimiter: str, *, last: bool) -> tuple[Batch, int]:
        """Read CSV lines with the columns of `header`. Return the batch and its size in bytes.

        An incomplete record is not read unless the input ends there (`last`). A record with an open quote is never read.
        """
        columns = [self._names.index(name) for name in header]
        read, size = self._core.csv(data, ord(delimiter), columns, last)
        return replace(self._batch(read), numbers=self._look_like_numbers), size

    def arrow(self, data: bytes) -> Batch:
        """Read an Arrow IPC stream. Its buffers are validated before use."""
        try:
            table = pa.ipc.open_stream(data).read_all()
            table.validate(full=True)
        except (pa.ArrowException, OSError, ValueError, TypeError, KeyError):
            raise DataError(
                "The body is not a valid Arrow stream.", hint="Write it with pyarrow.ipc.new_stream."
            ) from None
        return self.table(table)

    def table(self, table: pa.Table) -> Batch:
        """Read a table with the columns of the policy, of any scalar type."""
        names = table.column_names
        if len(set(names)) < len(names):
            raise DataError("Two columns have the same name.", hint="Rename one of them.")
        self.policy.check_columns(names)
        table = without_markers(table, self.policy.missing)
        if any(pa.types.is_nested(kind) for kind in table.schema.types):
            raise DataError("The table has nested columns.", hint="Flatten them: each cell must be a single value.")
        try:
            columns = {name: _to_readable(table.column(name)) for name in self._names}
        except pa.ArrowException:
            raise DataError("A column has an unsupported type.", hint="Convert it to text or numbers.") from None
        return self._batch_from_types(columns) if self._is_direct(columns) else self._batch_from_cells(columns)

    def _is_direct(self, columns: Mapping[str, pa.Array]) -> bool:
        """Whether all columns are text, 64-bit integers or booleans, and no record will be rejected."""
        if self._numbers or any(column.type not in _DIRECT_TYPES for column in columns.values()):
            return False
        return all(_has_all_values(columns[name]) for name in self._required)

    def _batch_from_types(self, columns: Mapping[str, pa.Array]) -> Batch:
        texts = {name: column if column.type == _TEXT else column.cast(_TEXT) for name, column in columns.items()}
        tokens = {name: texts[name] for name in columns if name in self._published and columns[name].type != _TEXT}
        table = pa.table(texts)
        return self._unify_names(Batch(table, np.arange(table.num_rows), table.num_rows, [], tokens))

    def _batch_from_cells(self, columns: Mapping[str, pa.Array]) -> Batch:
        rows = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
        batch = self._batch(self._core.table(rows.__arrow_c_array__()))
        return replace(batch, rejected=[bad._replace(payload=_row_to_json(rows, bad.row)) for bad in batch.rejected])

    def text(self, table: pa.Table, rows: Int64s, total: int, rejected: Sequence[RejectedRecord] = ()) -> Batch:
        """Read cells of text, as from HL7. `rows`, `total` and `rejected` describe the batch they come from."""
        batch = self._batch_from_cells({name: to_native(table.column(name)) for name in self._names})
        more = [refused._replace(row=int(rows[refused.row])) for refused in batch.rejected]
        numbers = self._look_like_numbers
        return Batch(batch.table, rows[batch.rows], total, sorted([*rejected, *more]), numbers=numbers)

    def empty_batch(self, total: int = 0, rejected: Sequence[RejectedRecord] = ()) -> Batch:
        """Return a batch without an accepted record."""
        table = pa.table({name: pa.array([], _TEXT) for name in self._names})
        return Batch(table, np.empty(0, dtype=np.int64), total, rejected)

    def _batch(self, read: _core.wire.ReadBatch) -> Batch:
        # One array for all columns: creating an array costs microseconds, slicing one almost nothing.
        whole, size = _array(read.cells, len(read.rows) * len(self._names)), len(read.rows)
        arrays = [whole.slice(at * size, size) for at in range(len(self._names))]
        tokens = {self._names[at]: arrays[at] if json is None else _array(json, size) for at, json in read.tokens}
        table = pa.Table.from_arrays(arrays, names=self._names)
        return self._unify_names(
            Batch(table, read.rows, read.total, [RejectedRecord(*bad) for bad in read.bad_lines], tokens)
        )

    def _unify_names(self, batch: Batch) -> Batch:
        """Normalize the identifiers of persons and households. Reject records with a blank identifier."""
        for column, reason in self._required.items():
            cells = batch.table.column(column)
            if (same := normalize_names(cells)) is not cells:
                table = batch.table.set_column(batch.table.column_names.index(column), column, same)
                batch = replace(batch, table=table)
                batch = _reject_rows(batch, same.is_null(), reason) if same.null_count else batch
        return batch


def _array(cells: _core.wire.Cells, size: int) -> pa.Array:
    """Wrap the cells of the core in an array, without a copy."""
    valid = None if cells.valid is None else pa.py_buffer(cells.valid)
    nulls = 0 if valid is None else -1
    return pa.Array.from_buffers(_TEXT, size, [valid, pa.py_buffer(cells.offsets), pa.py_buffer(cells.bytes)], nulls)


def _token(cell: str | None, *, numbers: bool) -> str | None:
    if cell is None:
        return None
    number = numbers and _JSON_NUMBER.fullmatch(cell)
    return orjson.dumps(orjson.loads(cell) if number else cell).decode()


def _to_readable(column: pa.ChunkedArray) -> pa.Array:
    """Convert a column to text, numbers or booleans. Integers beyond 63 bits stay unchanged and are rejected later."""
    if column.type == pa.uint64() and (pc.max(column).as_py() or 0) >= 1 << 63:
        return column.combine_chunks()
    array = to_native(column)
    return array.cast(_TEXT) if array.type in (pa.large_string(), pa.null()) else array


def _reject_rows(batch: Batch, mask: pa.ChunkedArray, reason: str) -> Batch:
    """Return the batch with the records under the mask rejected."""
    gone = np.flatnonzero(mask.to_numpy())
    stay = pa.array(np.setdiff1d(np.arange(batch.table.num_rows), gone))
    rows = batch.table.combine_chunks().to_batches()[0]
    bad = [RejectedRecord(int(batch.rows[row]), reason, _row_to_json(rows, int(row))) for row in gone]
    tokens = {name: cells.take(stay) for name, cells in batch.tokens.items()}
    return replace(
        batch,
        table=batch.table.take(stay),
        rows=batch.rows[stay.to_numpy()],
        rejected=sorted([*batch.rejected, *bad]),
        tokens=tokens,
    )


def _row_to_json(rows: pa.RecordBatch, row: int) -> bytes:
    (record,) = rows.slice(row, 1).to_pylist()
    return orjson.dumps(record, default=str)


def _has_all_values(column: pa.Array) -> bool:
    """Whether no cell is null or empty. A text is empty if its offsets are equal."""
    if column.null_count or column.type != _TEXT:
        return not column.null_count
    offsets = np.frombuffer(column.buffers()[1], dtype=np.int32)[column.offset : column.offset + len(column) + 1]
    return bool((offsets[1:] > offsets[:-1]).all()) if len(column) else True


def _number_columns(policy: Policy) -> list[str]:
    """Return the columns whose text may be a number: those with intervals, or without a hierarchy and not named like a code.

    A column with a hierarchy of words, codes or dates is never a number: postcodes have digits too.
    """
    specs = {name: policy.columns[name].hierarchy for name in policy.quasi + policy.plain}
    return [
        name
        for name, spec in specs.items()
        if (spec is None and not _CODE_NAMES.search(name)) or (spec is not None and spec.kind == "intervals")
    ]
