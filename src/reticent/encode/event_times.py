"""Moments: which record of a person came first, by a column of numbers, dates or times.

Guarantee: numbers stand by their size and times by when they were, however they are written; what is neither says no order and is
    refused. By their letters, visit 10 came before visit 9, and the first of February before the third of January.
Not covered: dates with the day or the month in front whose column does not say so (`hierarchy: {dates: ..., written: DD.MM.YYYY}`).
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
"""As which a text is read, the first that fits all: times with a zone are compared where all have one."""


def event_times(column: pa.ChunkedArray, name: str, policy: Policy) -> Int64s | Floats:
    """The moment of every record, by the column that `person.events` names; whole numbers unless some are not."""
    if column.null_count:
        raise DataError(
            f"{column.null_count:,} records have no '{name}', so their order is not known.",
            hint="Fill the column, or write person: {records: first} without events.",
        )
    try:
        return _to_numbers(_normalize_dates(column, name, policy))
    except _UNREADABLE:
        raise DataError(
            f"Column '{name}' does not say the order of records.",
            hint="Fill it with visit numbers, or with dates or times that have the year in front: person.events names it.",
        ) from None


def _normalize_dates(column: pa.ChunkedArray, name: str, policy: Policy) -> pa.ChunkedArray:
    """The column, its dates with the year in front where the policy says how they are written."""
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
