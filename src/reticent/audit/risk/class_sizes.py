"""The distribution of records over class sizes."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from reticent.arrays import Int64s

EDGES = (1, 2, 3, 5, 10, 12, 20, 50, 100, 1000, 10_000, 1 << 62)


@dataclass(frozen=True)
class ClassSizes:
    """The equivalence classes of a release.

    Attributes:
        classes, rows: number of classes, and number of records in them.
        smallest, median, mean, largest: records per class.
        ranges: (from, to, records) per range of class sizes; `to` is None for the open end.
    """

    classes: int
    rows: int
    smallest: int
    median: float
    mean: float
    largest: int
    ranges: tuple[tuple[int, int | None, int], ...]


def class_sizes(sizes: Int64s) -> ClassSizes:
    """Summarize the class sizes; `sizes` has the number of records per class."""
    if not len(sizes):
        return ClassSizes(0, 0, 0, 0.0, 0.0, 0, ())
    ranges = []
    for low, high in itertools.pairwise(EDGES):
        inside = sizes[(sizes >= low) & (sizes < high)]
        ranges.append((low, high - 1 if high < 1 << 62 else None, int(inside.sum())))
    return ClassSizes(
        len(sizes),
        int(sizes.sum()),
        int(sizes.min()),
        float(np.median(sizes)),
        float(sizes.mean()),
        int(sizes.max()),
        tuple(ranges),
    )
