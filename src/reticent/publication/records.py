"""Records as they come, read in one way for every door: NDJSON, Arrow tables and cells of text into batches.

What a record is never depends on its neighbours. Each published cell goes out with the JSON type it came with; inside, a
cell is its text, so that 5, 5.0 and "5" are one person, one quasi-identifier, one value in every batch. A record that cannot
be released is set aside with a reason that names columns and never quotes a cell.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from reticent.encode.native import native
from reticent.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from reticent.policy import Policy

Record = dict[str, Any]
_QUOTE = ord('"')
_SCALARS = {str, int, float, bool, type(None)}
_LEAST, _MOST = -(1 << 63), 1 << 63
# Below this a whole number is the same as a float and as an integer.
_EXACT = 1 << 53
# Digits that name something: no number, whatever text makes them look like.
_CODES = re.compile(r"(zip|post_?code|postal|plz|code)", re.IGNORECASE)
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]+)?")


class Bad(NamedTuple):
    """A record that cannot be released: its number in the batch, why, and the record itself."""

    row: int
    reason: str
    payload: bytes


@dataclass(frozen=True, repr=False)
class Batch:
    """Records of one read.

    Attributes:
        table: the columns of the policy as text.
        rows: the number of each record among all of this batch, good and bad.
        total: how many records there were, good and bad.
        bad: those that were set aside.
        tokens: published columns whose cells are not all text, as JSON.
        numbers: columns of text whose cells go out as numbers where they are written as such.
    """

    table: pa.Table
    rows: npt.NDArray[np.int64]
    total: int
    bad: Sequence[Bad] = ()
    tokens: Mapping[str, pa.Array] = field(default_factory=dict)
    numbers: frozenset[str] = frozenset()

    def token_column(self, name: str) -> pa.Array:
        """A column as JSON, cell by cell."""
        if name in self.tokens:
            return self.tokens[name]
        numbers = name in self.numbers
        cells = self.table.column(name).to_pylist()
        return pa.array([_token(cell, numbers=numbers) for cell in cells], pa.string())


class RecordReader:
    """Reads records under a policy; `numbers` are the columns whose cells have to be numbers."""

    def __init__(self, policy: Policy, numbers: Iterable[str] = ()) -> None:
        self.policy = policy
        self._names = tuple(policy.columns)
        self._known, self._released = frozenset(policy.columns), frozenset(policy.released)
        self._published = frozenset((*policy.quasi, *policy.plain))
        self._person, self._numbers = policy.person, tuple(numbers)
        unit = policy.prior.unit if policy.prior is not None and policy.stream.method == "veil" else None
        self._required = {name: word for name, word in ((self._person, "no person"), (unit, "no unit")) if name}
        self._look_like_numbers = frozenset(_number_columns(policy))
        self._all = itemgetter(*self._names) if len(self._names) > 1 else None

    # One record

    def record(self, value: bytes | str | None) -> Record | str:
        """One JSON object as a record, or the reason why it is none."""
        try:
            record = orjson.loads(value if value is not None else b"null")
        except orjson.JSONDecodeError:
            return "not JSON"
        if type(record) is not dict:
            return "not a JSON object"
        reason = self.refusal(record)
        if reason is None and value is not None and _doubled(value, record):
            reason = "a field twice"
        return record if reason is None else reason

    def refusal(self, record: Record) -> str | None:
        """Why a record cannot be released, without a word of its cells; None when it can."""
        if not record.keys() <= self._known:
            return "a field without a role in the policy"
        if record.keys().isdisjoint(self._released):
            return "none of the policy's columns"
        for cell in record.values():
            reason = _unfit(cell)
            if reason is not None:
                return reason
        for name, word in self._required.items():
            if record.get(name) in (None, ""):
                return word
        for name in self._numbers:
            if not _is_number(_text(record.get(name))):
                return f"no number in '{name}'"
        return None

    def person(self, record: Record) -> str:
        """What stands for the person when records are spread over shards; without a person column the whole record."""
        if self._person is not None:
            return _text(record[self._person]) or ""
        return orjson.dumps({name: record.get(name) for name in self._names}).decode()

    # Batches

    def ndjson(self, data: bytes) -> Batch:
        """One JSON object per line; a field that is absent is null."""
        lines = [line for line in data.split(b"\n") if line and not line.isspace()]
        return self._all_good(lines, data) or self._screened(lines)

    def objects(self, values: Sequence[bytes | str | None]) -> Batch:
        """Records of one JSON object each."""
        return self._all_good(values, b"".join(map(_bytes, values))) or self._screened(values)

    def _screened(self, values: Sequence[bytes | str | None]) -> Batch:
        return self._one_by_one((self.record(value), _bytes(value)) for value in values)

    def _all_good(self, values: Sequence[Any], data: bytes) -> Batch | None:
        """The usual case at a fraction of the time: every record has every field and none is refused; else None."""
        try:
            records = list(map(orjson.loads, values))
            if self._all is None or set(map(type, records)) != {dict}:
                return None
            if set(map(len, records)) != {len(self._names)}:
                return None
            columns = dict(zip(self._names, zip(*map(self._all, records), strict=True), strict=True))
        except (orjson.JSONDecodeError, KeyError):
            return None
        kinds = {name: set(map(type, cells)) for name, cells in columns.items()}
        if not all(self._fits(name, cells, kinds[name]) for name, cells in columns.items()):
            return None
        texts = sum(_texts(cells, kinds[name]) for name, cells in columns.items())
        if _may_double(data, len(columns) * len(values) + texts):
            return None
        return self._batch(columns, np.arange(len(values)), len(values))

    def _one_by_one(self, candidates: Iterable[tuple[Record | str, bytes]]) -> Batch:
        """Records, or reasons why they are none, with what they came as."""
        rows: list[int] = []
        bad, records = [], []
        for row, (record, payload) in enumerate(candidates):
            if isinstance(record, str):
                bad.append(Bad(row, record, payload))
            else:
                rows.append(row)
                records.append(record)
        columns = {name: [record.get(name) for record in records] for name in self._names}
        return self._batch(columns, np.array(rows, dtype=np.int64), len(rows) + len(bad), bad)

    def _batch(
        self, columns: Mapping[str, Sequence[Any]], rows: npt.NDArray[np.int64], total: int, bad: Sequence[Bad] = ()
    ) -> Batch:
        # One array for all columns: to make an array costs ten microseconds, to slice one almost nothing.
        kinds = {name: set(map(type, cells)) - {type(None)} for name, cells in columns.items()}
        texts: Iterable[str | None] = chain.from_iterable(_all_text(columns[name], kinds[name]) for name in columns)
        whole, size = pa.array(list(texts), pa.string()), len(rows)
        arrays = {name: whole.slice(at * size, size) for at, name in enumerate(columns)}
        tokens = {
            name: arrays[name] if kinds[name] == {int} else _json(columns[name])
            for name in columns
            if name in self._published and not kinds[name] <= {str}
        }
        table = pa.Table.from_arrays(list(arrays.values()), names=list(arrays))
        return Batch(table, rows, total, bad, tokens)

    def _fits(self, name: str, cells: Sequence[Any], kinds: set[type]) -> bool:
        """Whether nothing in a column is refused; as `refusal`, for all cells at once."""
        if kinds in ({int}, {float}):
            if not (min(cells) > _LEAST and max(cells) < _MOST):
                return False
        elif not kinds <= _SCALARS or (kinds & {int, float} and any(map(_unfit, cells))):
            return False
        if name in self._required and (type(None) in kinds or "" in cells):
            return False
        return name not in self._numbers or all(_is_number(_text(cell)) for cell in cells)

    def arrow(self, data: bytes) -> Batch:
        """An Arrow IPC stream; its buffers are checked before anything reads them."""
        try:
            table = pa.ipc.open_stream(data).read_all()
            table.validate(full=True)
        except (pa.ArrowException, OSError, ValueError, TypeError, KeyError):
            raise DataError(
                "The body is not a sound Arrow stream.", hint="Write it with pyarrow.ipc.new_stream."
            ) from None
        return self.table(table)

    def table(self, table: pa.Table) -> Batch:
        """A table with the columns of the policy, of any type that holds single values."""
        names = table.column_names
        if len(set(names)) < len(names):
            raise DataError("Two columns have the same name.", hint="Rename one of them.")
        self.policy.check_columns(names)
        if any(pa.types.is_nested(kind) for kind in table.schema.types):
            raise DataError("Records are rows of single values.", hint="Flatten nested columns.")
        try:
            columns = {name: _readable(table.column(name)) for name in self._names}
        except pa.ArrowException:
            raise DataError("A column has a type that cannot be released.", hint="Use text and numbers.") from None
        if not self._typed(columns):
            return self._one_by_one((self.refusal(row) or row, _dumped(row)) for row in _rows(columns))
        texts, tokens = {}, {}
        for name, column in columns.items():
            texts[name] = column if pa.types.is_string(column.type) else column.cast(pa.string())
            if name in self._published and not pa.types.is_string(column.type):
                tokens[name] = texts[name]
        return Batch(pa.table(texts), np.arange(table.num_rows), table.num_rows, [], tokens)

    def _typed(self, columns: Mapping[str, pa.Array]) -> bool:
        """Whether all columns are of text, 64-bit integers or truth values, and no record is refused."""
        kinds = (pa.string(), pa.int64(), pa.bool_())
        if self._numbers or any(column.type not in kinds for column in columns.values()):
            return False
        return all(_none_missing(columns[name]) for name in self._required)

    def text(self, table: pa.Table, rows: npt.NDArray[np.int64], total: int, bad: Sequence[Bad] = ()) -> Batch:
        """Cells of text, as CSV and HL7 have them; sets aside what `refusal` refuses."""
        good = np.ones(table.num_rows, dtype=bool)
        reasons: dict[int, str] = {}
        for name, word in self._required.items():
            if not _none_missing(table.column(name)):
                _drop(good, reasons, _missing(table.column(name)), word)
        for name in self._numbers:
            fits = np.array([_is_number(cell) for cell in table.column(name).to_pylist()], dtype=bool)
            _drop(good, reasons, ~fits, f"no number in '{name}'")
        if not good.all():
            dropped = table.filter(pa.array(~good)).to_pylist()
            places = np.flatnonzero(~good).tolist()
            more = [
                Bad(int(rows[i]), reasons[i], orjson.dumps(cells)) for i, cells in zip(places, dropped, strict=True)
            ]
            table, rows, bad = table.filter(pa.array(good)).combine_chunks(), rows[good], sorted([*bad, *more])
        return Batch(table, rows, total, bad, numbers=self._look_like_numbers)

    def nothing(self, total: int = 0, bad: Sequence[Bad] = ()) -> Batch:
        """A batch without a readable record."""
        table = pa.table({name: pa.array([], pa.string()) for name in self._names})
        return Batch(table, np.empty(0, dtype=np.int64), total, bad)


class JsonLines:
    """NDJSON out of blocks of bytes."""

    needs_header = False
    by_line = True

    def __init__(self, reader: RecordReader) -> None:
        self._reader = reader

    def begin(self, line: bytes) -> None:
        """There is no header."""

    def end(self, data: bytes, *, last: bool) -> int:
        """Where the last complete line ends."""
        return len(data) if last else data.rfind(b"\n") + 1

    def parse(self, data: bytes) -> Batch:
        """The records of some complete lines."""
        return self._reader.ndjson(data)


# Cells


def _unfit(cell: Any) -> str | None:
    kind = type(cell)
    if kind is str or kind is bool or cell is None:
        return None
    if kind is int:
        return None if _LEAST <= cell < _MOST else "a number too large to keep"
    if kind is float:
        if not math.isfinite(cell):
            return "not a finite number"
        # A parser makes floats of integers that are too long, so neither is kept.
        return None if _LEAST < cell < _MOST else "a number too large to keep"
    return "a field that is not a single value"


def _text(cell: Any) -> str | None:
    """A cell as the engine knows it."""
    if cell is None or type(cell) is str:
        return cell
    if type(cell) is int:
        return str(cell)
    if type(cell) is float and cell.is_integer() and abs(cell) < _EXACT:
        return str(int(cell))
    return orjson.dumps(cell).decode()


def _token(cell: str | None, *, numbers: bool) -> str | None:
    if cell is None or (numbers and _JSON_NUMBER.fullmatch(cell)):
        return cell
    return orjson.dumps(cell).decode()


def _is_number(cell: str | None) -> bool:
    return cell is not None and _NUMBER.fullmatch(cell) is not None and math.isfinite(float(cell))


def _all_text(cells: Sequence[Any], kinds: set[type]) -> Iterable[str | None]:
    """Cells as text; each by itself, whatever its neighbours are."""
    return cells if kinds <= {str} else map(_text, cells)


def _json(cells: Sequence[Any]) -> pa.Array:
    """Cells as JSON; each by itself, whatever its neighbours are."""
    return pa.array([None if cell is None else orjson.dumps(cell).decode() for cell in cells], pa.string())


def _readable(column: pa.ChunkedArray) -> pa.Array:
    """A column of text, numbers or truth values; whole numbers beyond 63 bits stay what they are, to be refused."""
    if column.type == pa.uint64() and pc.any(pc.greater_equal(column, pa.scalar(_MOST, pa.uint64()))).as_py():
        return column.combine_chunks()
    array = native(column)
    return array.cast(pa.string()) if array.type in (pa.large_string(), pa.null()) else array


def _rows(columns: Mapping[str, pa.Array]) -> Iterator[Record]:
    for cells in zip(*(column.to_pylist() for column in columns.values()), strict=True):
        yield dict(zip(columns, cells, strict=True))


def _dumped(record: Record) -> bytes:
    return orjson.dumps(record, default=str)


def _missing(column: pa.ChunkedArray | pa.Array) -> npt.NDArray[np.bool_]:
    """Cells that name nobody."""
    array = native(column)
    empty = pc.equal(array, "") if pa.types.is_string(array.type) else pc.is_null(array)
    missing: npt.NDArray[np.bool_] = pc.fill_null(empty, fill_value=True).to_numpy(zero_copy_only=False)
    return missing


def _none_missing(column: pa.ChunkedArray | pa.Array) -> bool:
    """Whether every cell names somebody, at a glance: no text is empty whose end lies behind its beginning."""
    array = native(column)
    if array.null_count or not pa.types.is_string(array.type):
        return not array.null_count
    offsets = np.frombuffer(array.buffers()[1], dtype=np.int32)[array.offset : array.offset + len(array) + 1]
    return bool((offsets[1:] > offsets[:-1]).all()) if len(array) else True


def _drop(good: npt.NDArray[np.bool_], reasons: dict[int, str], which: npt.NDArray[np.bool_], why: str) -> None:
    for row in np.flatnonzero(which & good).tolist():
        reasons[row] = why
    good &= ~which


def _number_columns(policy: Policy) -> list[str]:
    """Columns whose text may be a number: those with intervals, or without a hierarchy and not called a code.

    A column with a hierarchy of words, codes or dates is none, whatever its cells look like: postcodes have digits too.
    """
    specs = {name: policy.columns[name].hierarchy for name in policy.quasi + policy.plain}
    return [
        name
        for name, spec in specs.items()
        if (spec is None and not _CODES.search(name)) or (spec is not None and spec.kind == "intervals")
    ]


# Fields that come twice


def _may_double(data: bytes, quoted: int) -> bool:
    """Whether some flat object might have a field twice, by its quotes: two for every field, two for every text."""
    quotes = int(np.count_nonzero(np.frombuffer(data, dtype=np.uint8) == _QUOTE))
    if b"\\" in data:
        quotes -= data.count(b'\\"')
        if b"\\\\" in data:
            return True  # what follows may be escaped or not
    return quotes != 2 * quoted


def _texts(cells: Collection[Any], kinds: set[type]) -> int:
    """How many cells are text."""
    if kinds == {str}:
        return len(cells)
    return sum(type(cell) is str for cell in cells) if str in kinds else 0


def _doubled(value: bytes | str, record: Record) -> bool:
    if not _may_double(_bytes(value), len(record) + _texts(record.values(), {str, object})):
        return False
    return len(json.loads(value, object_pairs_hook=list)) != len(record)


def _bytes(value: bytes | str | None) -> bytes:
    return value.encode(errors="replace") if isinstance(value, str) else value or b""
