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
    """

    values: list[Any]
    ranks: npt.NDArray[np.int32]
    scale: npt.NDArray[np.float64]
    classes: npt.NDArray[np.int64]
    numeric: bool

    uniform = False

    @cached_property
    def _spans(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Per class: lowest and highest rank, and number of distinct values."""
        pairs = np.unique(self.classes * len(self.values) + self.ranks)
        owner, rank = pairs // len(self.values), pairs % len(self.values)
        starts = np.searchsorted(owner, np.arange(int(self.classes.max()) + 2))
        return rank[starts[:-1]], rank[starts[1:] - 1], np.diff(starts)

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
        pairs = np.unique(self.classes * len(self.values) + self.ranks)
        members: list[list[Any]] = [[] for _ in range(int(self.classes.max()) + 1)]
        for pair in pairs.tolist():
            members[pair // len(self.values)].append(self.values[pair % len(self.values)])
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
        size = len(self.values)
        missing = (low != high) & np.array([self.values[rank] is None for rank in low.tolist()], dtype=bool)
        covered = np.where(missing, size, high - low + 1 if self.numeric else held)
        loss = self.scale[high] - self.scale[low] if self.numeric else (covered - 1) / max(1, size - 1)
        at = self.classes[rows]
        _, node = np.unique(np.stack([low, high, held if not self.numeric else low]), axis=1, return_inverse=True)
        return Recoding(
            source=self.ranks[rows],
            node=node.reshape(-1).astype(np.int64)[at] if self.numeric else at,
            share=(covered / size)[at],
            ncp=np.where(missing, 1.0, loss)[at],
            size=size,
            level=None,
            height=1,
        )

    def summary(self, published: npt.NDArray[np.bool_]) -> dict[str, Any]:
        """How many published records keep their exact value."""
        low, high, _ = self._spans
        return {"exact_records": int((low == high)[self.classes[published]].sum())}
