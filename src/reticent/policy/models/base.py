"""What every privacy model shares: the question it answers, and the shape of the answer's input.

A model is a frozen value. It is asked about groups of records, each given as the histogram of its sensitive
values (position = code of the value, entry = number of records). The arithmetic is exact: thresholds are
rationals, comparisons are between integers, and floating point never decides.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from reticent.errors import InternalError, PolicyError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

Number = int | float | Fraction
_WIDE = 2**62  # products that may exceed this are computed with Python's unbounded integers


def exact(number: Number, name: str) -> Fraction:
    """Return the decimal number a person wrote as an exact fraction: 0.2 is 1/5, not the nearest double.

    >>> exact(0.2, "t")
    Fraction(1, 5)
    """
    if isinstance(number, bool) or not isinstance(number, int | float | Fraction) or not math.isfinite(number):
        raise PolicyError(f"{name} must be a finite number.", hint=f"Write for example {name}: 3.")
    return Fraction(repr(number)) if isinstance(number, float) else Fraction(number)


def whole(number: Number, name: str) -> int:
    """Return the number as an integer when it is a whole one of at least 1; refuse it otherwise."""
    value = exact(number, name)
    if value < 1 or value.denominator != 1:
        raise PolicyError(f"{name} must be a whole number of at least 1.", hint=f"Write for example {name}: 3.")
    return int(value)


def wide(array: NDArray[np.int64], factor: int = 1) -> NDArray[Any]:
    """Return the array in a type that can hold its entries times ``factor`` without overflow."""
    top = int(np.abs(array).max()) if array.size else 0
    return array if top * abs(factor) < _WIDE and abs(factor) < _WIDE else array.astype(object)


@dataclass(frozen=True, eq=False)
class Histograms:
    """The sensitive histograms of many groups, sparse by row (CSR): group g owns entries starts[g]:starts[g+1].

    Entries with count zero are not allowed; every code occurs at most once per group.
    """

    starts: NDArray[np.int64]
    codes: NDArray[np.int64]
    counts: NDArray[np.int64]
    width: int

    @classmethod
    def from_dense(cls, dense: NDArray[np.int64]) -> Self:
        """Build from a matrix with one row per group and one column per sensitive value."""
        rows, codes = np.nonzero(dense)
        starts = np.zeros(len(dense) + 1, dtype=np.int64)
        np.cumsum(np.bincount(rows, minlength=len(dense)), out=starts[1:])
        return cls(starts, codes.astype(np.int64), dense[rows, codes].astype(np.int64), dense.shape[1])

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def rows(self) -> NDArray[np.int64]:
        """The group of every entry."""
        return np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.starts))

    @property
    def distinct(self) -> NDArray[np.int64]:
        """How many distinct values each group holds."""
        return np.diff(self.starts)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many records each group holds."""
        return self.total(self.counts)

    def total(self, entries: NDArray[Any]) -> NDArray[Any]:
        """Sum one number per entry over each group, each group on its own (a running total rounds and overflows)."""
        return self._reduce(np.add, entries)

    def largest(self) -> NDArray[np.int64]:
        """The count of each group's most frequent value; 0 for an empty group."""
        return self._reduce(np.maximum, self.counts)

    def _reduce(self, operation: np.ufunc, entries: NDArray[Any]) -> NDArray[Any]:
        out = np.zeros(len(self), dtype=entries.dtype)
        filled = np.flatnonzero(self.distinct)
        if filled.size:
            out[filled] = operation.reduceat(entries, self.starts[filled])
        return out

    def dense(self, first: int, last: int) -> NDArray[np.int64]:
        """The histograms of groups first to last (exclusive) as a matrix."""
        out = np.zeros((last - first, self.width), dtype=np.int64)
        span = slice(self.starts[first], self.starts[last])
        rows = np.repeat(np.arange(last - first), np.diff(self.starts[first : last + 1]))
        out[rows, self.codes[span]] = self.counts[span]
        return out


class Model(ABC):
    """A privacy model: a predicate on the sensitive histogram of a group."""

    def holds(self, histogram: NDArray[np.int64]) -> bool:
        """Whether one group satisfies the model."""
        return bool(self.holds_all(np.asarray(histogram, dtype=np.int64)[None, :])[0])

    def holds_all(self, histograms: NDArray[np.int64] | Histograms) -> NDArray[np.bool_]:
        """Whether each group satisfies the model; an empty group never does."""
        groups = histograms if isinstance(histograms, Histograms) else Histograms.from_dense(histograms)
        if groups.counts.size and int(groups.counts.min()) < 1:
            raise InternalError("A histogram holds a count below one.")
        return np.asarray(self._holds(groups), dtype=np.bool_) & (groups.distinct > 0)

    def against(
        self,
        reference: NDArray[np.int64],  # noqa: ARG002
        *,
        tables: Sequence[NDArray[np.int32]] = (),  # noqa: ARG002
        order: NDArray[np.int64] | None = None,  # noqa: ARG002
    ) -> Self:
        """Bind the model to the whole table's histogram, the sensitive hierarchy and the order of values.

        Models that look at one group alone return themselves.
        """
        return self

    @abstractmethod
    def _holds(self, groups: Histograms) -> NDArray[Any]:
        """Answer for every group; empty groups are taken care of by the caller."""
