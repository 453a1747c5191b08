"""An attribute published by Mondrian's cuts: per class an interval of numbers or a set of values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from reticent.utility.recoding import Recoding

if TYPE_CHECKING:
    import numpy.typing as npt

ROOT = "*"


@dataclass(frozen=True, repr=False)
class Cuts:
    """Ranks of an attribute's values and the class of each row.

    Attributes:
        values: the distinct values in order; at most the first is missing.
        ranks: position of each row's value.
        scale: position of each value on a scale from 0 to 1.
        numeric: whether classes are published as intervals; as sets of values if not.
        size: leaves of the attribute's hierarchy, or its distinct values where it has none.
        order: the code of each value.
    """

    values: list[Any]
    ranks: npt.NDArray[np.int32]
    scale: npt.NDArray[np.float64]
    classes: npt.NDArray[np.int64]
    numeric: bool
    size: int
    order: npt.NDArray[np.int64]

    uniform = False

    @cached_property
    def _spans(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Per class: lowest and highest rank, and number of distinct values."""
        owner, rank = self._members
        starts = np.searchsorted(owner, np.arange(int(self.classes.max()) + 2))
        return rank[starts[:-1]], rank[starts[1:] - 1], np.diff(starts)

    @cached_property
    def _mixed(self) -> npt.NDArray[np.bool_]:
        """The classes with missing and other values: they are published as a whole."""
        low, high, _ = self._spans
        return np.asarray((low != high) & np.array([self.values[rank] is None for rank in low.tolist()], dtype=bool))

    def exact(self) -> npt.NDArray[np.bool_]:
        """Which rows keep their value."""
        low, high, _ = self._spans
        return np.asarray((low == high)[self.classes])

    def chance(self, asked: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Per row, the share of asked values (by code) among those that its published cell may stand for."""
        asked = asked[self.order]
        low, high, held = self._spans
        if self.numeric:
            below = np.concatenate([[0.0], np.cumsum(asked)])
            share = (below[high + 1] - below[low]) / (high - low + 1)
        else:
            owner, rank = self._members
            share = np.bincount(owner, weights=asked[rank], minlength=len(held)) / held
        return np.asarray(np.where(self._mixed, asked.mean(), share)[self.classes])

    def mass(self, weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Per value (by code), the weights of the rows that may have it, each spread over its published cell."""
        low, high, held = self._spans
        per_class = np.bincount(self.classes, weights=weights, minlength=len(held))
        mixed, values = self._mixed, np.zeros(len(self.values) + 1)
        if self.numeric:
            share = np.where(mixed, 0.0, per_class / (high - low + 1))
            np.add.at(values, low, share)
            np.add.at(values, high + 1, -share)
            values = np.cumsum(values)
        else:
            owner, rank = self._members
            np.add.at(values, rank, np.where(mixed, 0.0, per_class / held)[owner])
        mass = np.empty(len(self.values))
        mass[self.order] = values[:-1] + per_class[mixed].sum() / len(self.values)
        return mass

    @cached_property
    def _members(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The distinct values of every class: class and rank, side by side."""
        pairs = np.unique(self.classes * len(self.values) + self.ranks)
        return pairs // len(self.values), pairs % len(self.values)

    def labels(self, rows: npt.NDArray[np.int64]) -> pa.Array:
        """The values to publish, as text."""
        low, high, _ = self._spans
        if self.numeric:
            texts = [self._interval(int(a), int(b)) for a, b in zip(low, high, strict=True)]
        else:
            texts = self._sets()
        return pa.array(texts, type=pa.string()).take(pa.array(self.classes[rows]))

    def _interval(self, low: int, high: int) -> str | None:
        if low == high:
            return None if self.values[low] is None else str(self.values[low])
        # A missing value has no place in an interval.
        return ROOT if self.values[low] is None else f"[{self.values[low]}, {self.values[high]}]"

    def _sets(self) -> list[str | None]:
        members: list[list[Any]] = [[] for _ in range(int(self.classes.max()) + 1)]
        for owner, rank in zip(*(column.tolist() for column in self._members), strict=True):
            members[owner].append(self.values[rank])
        return [self._set(values) for values in members]

    def _set(self, values: list[Any]) -> str | None:
        if len(values) == 1:
            return None if values[0] is None else str(values[0])
        if len(values) == len(self.values) or None in values:
            return ROOT
        return "{" + ", ".join(str(value) for value in values) + "}"

    def recoding(self, rows: npt.NDArray[np.int64]) -> Recoding:
        """What the measures need to know: a class covers the values it holds, or the span of its interval."""
        low, high, held = self._spans
        missing = self._mixed
        whole = missing if self.numeric else missing | ((held == len(self.values)) & (held > 1))
        covered = np.where(whole, self.size, high - low + 1 if self.numeric else held)
        loss = self.scale[high] - self.scale[low] if self.numeric else (covered - 1) / max(1, self.size - 1)
        at = self.classes[rows]
        _, node = np.unique(np.stack([low, high, held if not self.numeric else low]), axis=1, return_inverse=True)
        return Recoding(
            source=self.ranks[rows],
            node=node.reshape(-1).astype(np.int64)[at] if self.numeric else at,
            share=(covered / self.size)[at],
            ncp=np.where(missing, 1.0, loss)[at],
            size=self.size,
            level=None,
            height=1,
        )

    def summary(self, published: npt.NDArray[np.bool_]) -> dict[str, Any]:
        """How many published records keep their exact value."""
        return {"exact_records": int(self.exact()[published].sum())}
