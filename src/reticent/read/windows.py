"""Windows of a stream, and the windows in which the level of a series changes.

Guarantee (to the recipient): the change points are those of the best partition into segments of constant level, by
weighted squares with a penalty per change (optimal partitioning). A false change is rare (about one in fifty series).

Not covered: slow trends, which appear as steps.

Cost: quadratic in the number of windows.

Reference: B. Jackson et al., An algorithm for optimal partitioning of data on an interval, IEEE Signal Processing Letters, 2005.

Differences from the paper: the squares are weighted by the variance of each window.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.arrays import Floats, Int64s
from reticent.errors import PolicyError
from reticent.read.shape.labels import to_text

_UNITS = {"minute": "m", "hour": "h", "day": "D", "week": "W", "month": "M", "year": "Y"}


def by_records(position: Int64s, every: int) -> tuple[Int64s, list[str]]:
    """Divide records into windows of `every` records each, by position."""
    if every < 1:
        raise PolicyError("A window needs at least one record.", hint="Write every=1000, or every='day'.")
    place = np.empty(len(position), dtype=np.int64)
    place[np.argsort(position, kind="stable")] = np.arange(len(position))
    windows = place // every
    number = int(windows.max(initial=-1)) + 1
    return windows, [str(window * every) for window in range(number)]


def by_time(column: pa.ChunkedArray, unit: str, name: str) -> tuple[Int64s, list[str]]:
    """Divide records into windows of a unit of time; windows without records are included."""
    if unit not in _UNITS:
        raise PolicyError(
            f"'{unit}' is not a window.", hint=f"Write one of {', '.join(_UNITS)}, or a number of records."
        )
    try:
        moments = np.array(to_text(column).to_pylist(), dtype="datetime64[s]")
    except ValueError:
        raise PolicyError(f"Column '{name}' does not contain times.", hint="Name another column with time=.") from None
    if np.isnat(moments).any():
        raise PolicyError(
            f"Column '{name}' is empty in {int(np.isnat(moments).sum())} records.", hint="Exclude them with where=."
        )
    steps = moments.astype(f"datetime64[{_UNITS[unit]}]")
    first = steps.min()
    windows = (steps - first).astype(np.int64)
    return windows, [str(first + i) for i in range(int(windows.max()) + 1)]


def find_changes(values: Floats, variances: Floats) -> list[bool]:
    """Return which windows start a new level.

    Example:
        >>> find_changes(np.array([5.0, 5, 5, 9, 9, 9]), np.full(6, 0.1))
        [False, False, False, True, False, False]
    """
    size = len(values)
    weight = 1 / np.maximum(variances, 1e-9)
    sums = [np.concatenate([[0], np.cumsum(part)]) for part in (weight, weight * values, weight * values**2)]
    penalty = 3 * math.log(max(size, 2)) + 8
    best, last = np.full(size + 1, np.inf), np.zeros(size + 1, dtype=np.int64)
    best[0] = -penalty
    for end in range(1, size + 1):
        w, x, xx = (part[end] - part[:end] for part in sums)
        cost = best[:end] + xx - x**2 / w + penalty
        last[end] = int(np.argmin(cost))
        best[end] = cost[last[end]]
    changes, end = [False] * size, size
    while end:
        end = int(last[end])
        if end:
            changes[end] = True
    return changes


def find_time_column(table: pa.Table, columns: list[str]) -> str | None:
    """Return the first of the columns that contains times, or None."""
    for name in columns:
        head: Any = table.column(name).slice(0, 20)
        cells = [cell for cell in to_text(head).to_pylist() if cell]
        try:
            np.array(cells, dtype="datetime64[s]")
        except ValueError:
            continue
        if cells and all(len(cell) > 9 and cell[4] == "-" for cell in cells):  # numpy also accepts 44, as a year
            return name
    return None
