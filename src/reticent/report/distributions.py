"""The distribution of each quasi-identifier before and after, in few bins whose names tell no cell that was not published."""

from __future__ import annotations

from typing import Any

import numpy as np

from reticent.arrays import Bools, Floats
from reticent.report.spread import Column

_BINS = 8
OTHERS = "all others"


def distribution(column: Column) -> list[dict[str, Any]]:
    """Shares before, and as a reader would reconstruct them: numbers in even bins, other values by name if they were published."""
    before, after = column.shares()
    numbers = _numbers(column.values)
    bins = _by_name(column) if numbers is None else _by_size(numbers)
    return [
        {"name": name, "before": float(before[inside].sum()), "after": float(after[inside].sum())}
        for name, inside in bins
        if inside.any()
    ]


def _numbers(values: tuple[str | None, ...]) -> Floats | None:
    try:
        numbers = np.array([np.nan if value is None else float(value) for value in values])
    except ValueError:
        return None
    return numbers if len(set(values)) > _BINS and np.isfinite(numbers).any() else None


def _by_size(numbers: Floats) -> list[tuple[str, Bools]]:
    """Even bins from low to high, by their rank: a border may be somebody's number."""
    edges = np.linspace(np.nanmin(numbers), np.nanmax(numbers), _BINS + 1)
    names = ["lowest", *(f"bin {at}" for at in range(2, _BINS)), "highest"]
    place = np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, len(names) - 1)
    bins = [(name, (place == at) & np.isfinite(numbers)) for at, name in enumerate(names)]
    return [*bins, ("missing", ~np.isfinite(numbers))]


def _by_name(column: Column) -> list[tuple[str, Bools]]:
    """The values that stand in the release as they are, the most frequent of them first; all others together."""
    often = np.bincount(column.label, minlength=len(column.labels))
    published = {label: int(often[code]) for code, label in enumerate(column.labels) if often[code] > 0}
    known = [value for value in column.values if value in published]
    chosen = sorted(known, key=lambda value: (-published[value], str(value)))[:_BINS]
    values = np.array(column.values, dtype=object)
    bins = [("missing" if value is None else value, np.array([v == value for v in values])) for value in chosen]
    rest = np.array([value not in chosen for value in column.values], dtype=bool)
    return [*bins, (OTHERS, rest)]
