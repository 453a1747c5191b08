"""Event times: the order of a person's records, by a column of numbers, dates or times.

Guarantee: numbers are ordered by size and times chronologically, in any written form; other columns are refused. (As
    text, visit 10 would come before visit 9, and 01.02. before 03.01.)
Not covered: dates that start with the day or the month, if the policy does not state the format of the column.
Cost: one cast of the column.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reticent.arrays import Floats, Int64s
from reticent.errors import DataError
from reticent.policy import Policy
from reticent.policy.labels import days_of

_UNREADABLE = (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError)
_TIME_TYPES = (pa.int64(), pa.float64(), pa.timestamp("us"), pa.timestamp("us", "UTC"))
"""Types to try for a text column; the first that fits all cells is used. Zoned times need a zone in every cell."""


def event_times(column: pa.ChunkedArray, name: str, policy: Policy) -> Int64s | Floats:
    """Return the time of every record as a number, from the column in `person.events`; integers if all are whole."""
    if column.null_count:
        raise DataError(
            f"Column '{name}' is empty in {column.null_count:,} records, so their order is unknown.",
            hint="Fill the column, or write person: {records: first} without events.",
        )
    try:
        return _to_numbers(_normalize_dates(column, name, policy))
    except _UNREADABLE:
        raise DataError(
            f"Column '{name}' (person.events) does not give the order of records.",
            hint="Fill it with visit numbers, or with dates or times that start with the year.",
        ) from None


def _normalize_dates(column: pa.ChunkedArray, name: str, policy: Policy) -> pa.ChunkedArray:
    """Return the column with the year first in its dates, if the policy states their format."""
    spec = policy.columns[name].hierarchy if name in policy.columns else None
    if spec is None or not spec.format:
        return column
    return pa.chunked_array([pa.array(days_of(column.to_pylist(), spec), pa.string())])


def _to_numbers(column: pa.ChunkedArray) -> Int64s | Floats:
    if column.null_count:
        raise ValueError
    if not pa.types.is_temporal(column.type) and not pa.types.is_primitive(column.type):
        column = _cast_first(pc.utf8_trim_whitespace(column.cast(pa.string())).cast)
    if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", getattr(column.type, "tz", None)))
    if pa.types.is_floating(column.type):
        numbers: Floats = column.cast(pa.float64()).to_numpy()
        if not np.isfinite(numbers).all():
            raise ValueError
        return numbers.astype(np.int64) if (np.rint(numbers) == numbers).all() else numbers
    return np.asarray(column.cast(pa.int64()).to_numpy(), dtype=np.int64)


def _cast_first(cast: Callable[[pa.DataType], pa.ChunkedArray]) -> pa.ChunkedArray:
    for kind in _TIME_TYPES:
        try:
            return cast(kind)
        except pa.ArrowInvalid:
            continue
    raise ValueError
