"""Python cells as a table, for the readers whose libraries give cells: one type per column, text where they mix."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from reticent.connectors.files.read import ReadOptions, check_names, no_rows
from reticent.errors import DataError


def table_of(source: str, names: Sequence[str], columns: Sequence[Sequence[Any]], options: ReadOptions) -> pa.Table:
    """The columns that are wanted; empty texts and numbers that are not one are what these programs call missing."""
    check_names(source, names)
    if not columns or not len(columns[0]):
        raise no_rows(source)
    of = dict(zip(names, columns, strict=True))
    cells = {
        name: [None if cell == "" or cell != cell else cell for cell in of[name]]  # noqa: PLR0124 - only NaN differs from itself
        for name in options.of(source, names)
    }
    return pa.table({name: column_of(source, name, column) for name, column in cells.items()})


def column_of(name: str, column: str, cells: Sequence[Any]) -> pa.Array:
    """One column; whole numbers written as floats become integers, as the programs show them.

    >>> column_of("t.xlsx", "age", [40.0, None, 31]).type
    DataType(int64)
    """
    types = {type(cell) for cell in cells} - {type(None)}
    for kinds, data_type, change in _TYPES:
        if types and types <= kinds and (change is not _whole or _all_whole(cells)):
            return pa.array([None if cell is None else change(cell) for cell in cells], data_type)
    if types - _KNOWN:
        raise DataError(f"{name}: column {column!r} holds cells that are no single value.", hint="Leave it out.")
    return pa.array([None if cell is None else _text(cell) for cell in cells], pa.string())


def _whole(cell: float) -> int:
    return int(cell)


def _all_whole(cells: Sequence[Any]) -> bool:
    return all(cell is None or (float(cell).is_integer() and abs(cell) < 1 << 53) for cell in cells)


def _midnight(cell: dt.date) -> dt.datetime:
    return cell if isinstance(cell, dt.datetime) else dt.datetime(cell.year, cell.month, cell.day)  # noqa: DTZ001 - files have no zone


def _text(cell: Any) -> str:
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1 << 53:
        return str(int(cell))
    return cell.isoformat() if isinstance(cell, (dt.date, dt.time)) else str(cell)


_TYPES: tuple[tuple[set[type], pa.DataType, Callable[[Any], Any]], ...] = (
    ({bool}, pa.bool_(), bool),
    ({int, float}, pa.int64(), _whole),
    ({int, float}, pa.float64(), float),
    ({dt.date}, pa.date32(), lambda cell: cell),
    ({dt.date, dt.datetime}, pa.timestamp("us"), _midnight),
)
_KNOWN = {bool, int, float, str, dt.date, dt.datetime, dt.time, dt.timedelta}
