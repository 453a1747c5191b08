"""Decimal commas: where cells are parted by semicolons, 75,3 is the number 75.3."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_COMMA = r"^([+-]?[0-9]+),([0-9]+)$"


def with_points(table: pa.Table) -> pa.Table:
    """The table with a point in every cell of text that is a number with a decimal comma, cell by cell; the same table where none is.

    >>> with_points(pa.table({"weight": ["75,3", "80", "75,3 kg", None]})).column("weight").to_pylist()
    ['75.3', '80', '75,3 kg', None]
    """
    for place, name in enumerate(table.column_names):
        column = table.column(place)
        if pa.types.is_string(column.type) and pc.any(pc.match_substring(column, ",")).as_py():
            table = table.set_column(place, name, pc.replace_substring_regex(column, _COMMA, r"\1.\2"))
    return table
