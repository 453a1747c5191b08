"""Lines of CSV or NDJSON as batches of text columns, the bad ones set aside with a reason.

Every cell is text on its way through: a stream cannot wait to see whether a column of numbers stays one. What JSON gave a type
is published with that type.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.csv as pacsv

from reticent import _core
from reticent.errors import DataError

if TYPE_CHECKING:
    import numpy.typing as npt

    from reticent.policy import Policy

QUOTE = ord('"')
# A record longer than this is taken for a quote that was never closed.
LONGEST = 16 << 20
# Digits that name something: no number, whatever a CSV file makes them look like.
_CODES = re.compile(r"(zip|post_?code|postal|plz|code)", re.IGNORECASE)
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")


@dataclass
class Batch:
    """Records of one read: their table, their positions in the input, and what could not be read."""

    table: pa.Table
    rows: npt.NDArray[np.int64]
    """Number of each record among all of this batch, good and bad."""
    total: int
    bad: list[tuple[int, str, bytes]] = field(default_factory=list)
    typed: dict[str, pa.Array] = field(default_factory=dict)
    """Published columns that came as numbers or booleans, as they came."""


def nothing(policy: Policy, total: int = 0, bad: list[tuple[int, str, bytes]] | None = None) -> Batch:
    """A batch without a readable record."""
    table = pa.table({name: pa.array([], pa.string()) for name in policy.columns})
    return Batch(table, np.empty(0, dtype=np.int64), total, bad or [])


class CsvLines:
    """CSV: complete records out of blocks of bytes."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.header: list[str] | None = None
        self.delimiter = ","

    def begin(self, line: bytes) -> None:
        """Takes the header line."""
        try:
            text = line.decode("utf-8-sig").rstrip("\r\n")
        except UnicodeDecodeError:
            raise DataError("The header line is not UTF-8.", hint="Convert the input to UTF-8.") from None
        self.delimiter = max(",;\t|", key=text.count)
        self.header = [name.strip().strip('"') for name in text.split(self.delimiter)]
        self._policy.check_columns(self.header)

    def end(self, data: bytes, *, last: bool) -> int:
        """Where the last complete record ends."""
        if b'"' not in data:
            return len(data) if last else data.rfind(b"\n") + 1
        end = _core.stream.csv_end(data, QUOTE)
        return len(data) if last and end < len(data) and data.count(b'"', end) % 2 == 0 else end

    def parse(self, data: bytes) -> Batch:
        """The records of some complete lines."""
        if not data.strip():
            return nothing(self._policy)
        if not data.isascii() and not _is_text(data):
            return self._without_bad_bytes(data)  # the parser would print bytes of lines it cannot read
        try:
            return self._parse(data)
        except pa.ArrowInvalid:
            return self._without_bad_bytes(data)

    def _parse(self, data: bytes) -> Batch:
        assert self.header is not None  # noqa: S101 - begin comes first
        bad: list[tuple[int, str, bytes]] = []
        width = len(self.header)

        def skip(row: pacsv.InvalidRow) -> str:
            bad.append((row.number - 1, f"{row.actual_columns} cells where the header has {width}", row.text.encode()))
            return "skip"

        table = pacsv.read_csv(
            pa.BufferReader(data),
            read_options=pacsv.ReadOptions(column_names=self.header, use_threads=False, block_size=len(data) + 1),
            parse_options=pacsv.ParseOptions(
                delimiter=self.delimiter, newlines_in_values=True, invalid_row_handler=skip
            ),
            convert_options=pacsv.ConvertOptions(
                column_types=dict.fromkeys(self.header, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        total = table.num_rows + len(bad)
        rows = np.delete(np.arange(total), [number for number, _, _ in bad])
        return Batch(table, rows, total, bad)

    def _without_bad_bytes(self, data: bytes) -> Batch:
        """The slow way, for a block with bytes that are not UTF-8: those lines are set aside."""
        lines = [line for line in data.splitlines(keepends=True) if line.strip()]
        good = [_is_text(line) for line in lines]
        if not any(good):
            return nothing(self._policy, len(lines), [(i, "not UTF-8", line) for i, line in enumerate(lines)])
        try:
            batch = self._parse(b"".join(line for line, fine in zip(lines, good, strict=True) if fine))
        except pa.ArrowInvalid:
            raise DataError("A block of the input cannot be read as CSV.", hint="Check its quotes.") from None
        places = np.flatnonzero(good)
        if batch.total != len(places):
            raise DataError("A block has bad bytes and line breaks in cells.", hint="Convert it to UTF-8.")
        broken = [(i, "not UTF-8", line) for i, (line, fine) in enumerate(zip(lines, good, strict=True)) if not fine]
        bad = [(int(places[i]), why, line) for i, why, line in batch.bad]
        return Batch(batch.table, places[batch.rows], len(lines), sorted(bad + broken))


class JsonLines:
    """NDJSON: one object per line."""

    def __init__(self, policy: Policy) -> None:
        self._names = list(policy.columns)
        self._known = frozenset(self._names)
        self._published = (*policy.quasi, *policy.plain)

    def end(self, data: bytes, *, last: bool) -> int:
        """Where the last complete line ends."""
        return len(data) if last else data.rfind(b"\n") + 1

    def parse(self, data: bytes) -> Batch:
        """The records of some complete lines."""
        lines = [line for line in data.split(b"\n") if line.strip()]
        columns: dict[str, list[Any]] = {name: [] for name in self._names}
        rows, bad = [], []
        for number, line in enumerate(lines):
            record = self._record(line)
            if isinstance(record, str):
                bad.append((number, record, line))
                continue
            rows.append(number)
            for name in self._names:
                columns[name].append(record.get(name))
        table = pa.table({name: pa.array(map(_text, cells), pa.string()) for name, cells in columns.items()})
        typed = {name: array for name in self._published if (array := _typed(columns[name])) is not None}
        return Batch(table, np.array(rows, dtype=np.int64), len(lines), bad, typed)

    def _record(self, line: bytes) -> dict[str, Any] | str:
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError:
            return "not JSON"
        if not isinstance(record, dict):
            return "not an object"
        if not record.keys() <= self._known:
            return "a field without a role in the policy"
        if any(isinstance(cell, dict | list) for cell in record.values()):
            return "a field that is not a single value"
        return record


def screened(batch: Batch, policy: Policy, numbers: tuple[str, ...]) -> Batch:
    """Sets records aside that no method can take: without a person, or without a number where one is needed."""
    keep = np.ones(batch.table.num_rows, dtype=bool)
    reasons: dict[int, str] = {}
    if policy.person is not None and batch.table.column(policy.person).null_count:
        _drop(keep, reasons, batch.table.column(policy.person).is_null().to_numpy(), "no person")
    for name in numbers:
        _drop(keep, reasons, ~_finite(batch.table.column(name)), f"no number in '{name}'")
    if keep.all():
        return batch
    dropped = batch.table.filter(pa.array(~keep)).to_pylist()
    bad = [
        (int(batch.rows[i]), reasons[int(i)], orjson.dumps(record))
        for i, record in zip(np.flatnonzero(~keep), dropped, strict=True)
    ]
    table = batch.table.filter(pa.array(keep)).combine_chunks()
    typed = {name: array.filter(pa.array(keep)) for name, array in batch.typed.items()}
    return Batch(table, batch.rows[keep], batch.total, sorted(batch.bad + bad), typed)


def numeric_columns(table: pa.Table, policy: Policy) -> list[str]:
    """Columns of text to publish as JSON numbers: those with intervals, or without a hierarchy and of plain numbers so far.

    A column with a hierarchy of words, codes or dates is none, whatever its cells look like, nor is one whose name says that
    it is a code: postcodes have digits too.
    """
    found = []
    for name in policy.quasi + policy.plain:
        spec = policy.columns[name].hierarchy
        if (spec is not None and spec.kind != "intervals") or (spec is None and _CODES.search(name)):
            continue
        cells = [cell for cell in table.column(name).slice(0, 1000).to_pylist() if cell is not None]
        if cells and all(_NUMBER.fullmatch(cell) for cell in cells):
            found.append(name)
    return found


def _drop(keep: npt.NDArray[np.bool_], reasons: dict[int, str], which: npt.NDArray[np.bool_], why: str) -> None:
    for i in np.flatnonzero(which & keep):
        reasons[int(i)] = why
    keep &= ~which


def _finite(column: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    def fine(cell: str | None) -> bool:
        return cell is not None and _NUMBER.fullmatch(cell.strip()) is not None

    try:
        numbers: npt.NDArray[np.float64] = column.cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        return np.array([fine(cell) for cell in column.to_pylist()], dtype=bool)
    return np.isfinite(numbers)


def _is_text(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _text(cell: Any) -> str | None:
    return cell if cell is None or isinstance(cell, str) else orjson.dumps(cell).decode()


def _typed(cells: list[Any]) -> pa.Array | None:
    """The cells as numbers or booleans, if that is what they are; None for text, and for what mixes with text."""
    kinds = set(map(type, cells)) - {type(None)}
    if not kinds or not (kinds <= {int, float} or kinds == {bool}):
        return None
    try:
        return pa.array(cells, pa.float64() if float in kinds else None)
    except (pa.ArrowException, OverflowError):
        return None
