"""Interval levels: even widths, or cut points for uneven, open-ended intervals."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent.errors import PolicyError

if TYPE_CHECKING:
    import numpy.typing as npt

    from reticent.policy.spec import HierarchySpec


def to_numbers(domain: Sequence[Any]) -> npt.NDArray[np.float64]:
    """The values as numbers; what is not a number becomes NaN, for the caller to count."""
    return np.array([_number(value) for value in domain], dtype=np.float64)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")


def interval_labels(numbers: npt.NDArray[np.float64], spec: HierarchySpec) -> list[list[str | None]]:
    """Labels per level; refuses levels that are not nested in one another."""
    levels = [_cut(numbers, step, spec) for step in spec.intervals or ()]
    for i, (fine, coarse) in enumerate(pairwise(levels)):
        pairs = {(low, up) for low, up in zip(fine, coarse, strict=True) if low is not None}
        if len(pairs) > len({low for low, _ in pairs}):
            raise PolicyError(
                f"intervals: level {i + 2} cuts through the intervals of level {i + 1}.",
                hint="Each width must be a multiple of the one before, and cut points must lie on its borders.",
            )
    return levels


def _cut(numbers: npt.NDArray[np.float64], step: float | tuple[float, ...], spec: HierarchySpec) -> list[str | None]:
    if isinstance(step, tuple):
        return [_between(x, step) for x in numbers.tolist()]
    return [_even(x, step, spec.bottom, spec.top) for x in numbers.tolist()]


def _between(x: float, cuts: tuple[float, ...]) -> str | None:
    if not math.isfinite(x):
        return None
    at = bisect.bisect_right(cuts, x)
    if at == 0:
        return f"<{_show(cuts[0])}"
    if at == len(cuts):
        return f"{_show(cuts[-1])}+"
    return f"[{_show(cuts[at - 1])}, {_show(cuts[at])})"


def _even(x: float, width: float, bottom: float | None, top: float | None) -> str | None:
    if not math.isfinite(x):
        return None
    if bottom is not None and x < bottom:
        return f"<{_show(bottom)}"
    if top is not None and x >= top:
        return f"{_show(top)}+"
    low = math.floor(x / width) * width
    high = low + width
    low = low if bottom is None else max(low, bottom)
    high = high if top is None else min(high, top)
    return f"[{_show(low)}, {_show(high)})"


def _show(x: float) -> str:
    return str(int(x)) if float(x).is_integer() else f"{x:g}"
