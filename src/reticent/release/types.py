"""Types that survive: a column whose cells are all whole numbers, numbers or dates is one, if nothing is lost by it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_TYPES = {"integer": pa.int64(), "number": pa.float64(), "date": pa.date32()}
_SOME = 64
"""Cells that are looked at before all are: most texts are nothing else."""


def type_name(column: pa.Array | pa.ChunkedArray, *, coded: bool = False) -> str:
    """`integer`, `number`, `date`, or `text`; what is `coded` stays text: 01067 is no number."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if coded or pa.types.is_boolean(kind) or pa.types.is_nested(kind):
        return "text"
    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_floating(kind):
        return "number"
    if pa.types.is_temporal(kind):
        return "date" if pa.types.is_date(kind) else "text"
    if column.null_count == len(column) or _of_text(column.slice(0, _SOME)) == "text":
        return "text"
    return _of_text(pc.unique(column))


def _of_text(cells: pa.Array | pa.ChunkedArray) -> str:
    for name, kind in _TYPES.items():
        try:
            if cells.cast(pa.string()).cast(kind).cast(pa.string()).equals(cells.cast(pa.string())):
                return name
        except pa.ArrowInvalid:
            continue
    return "text"


def typed(table: pa.Table, columns: Iterable[Mapping[str, Any]]) -> pa.Table:
    """A table whose text columns have the types that the codebook names; what does not fit stays text."""
    for entry in columns:
        name, kind = entry.get("name"), _TYPES.get(str(entry.get("type")))
        if name not in table.column_names or kind is None or table.column(name).type == kind:
            continue
        at = table.column_names.index(name)
        try:
            table = table.set_column(at, name, table.column(name).cast(kind))
        except pa.ArrowInvalid:
            continue
    return table
