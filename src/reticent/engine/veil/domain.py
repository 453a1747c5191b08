"""The domain of a veil: one antichain of the value hierarchy; rare codes stand under their parent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from reticent.encode import Dictionary
from reticent.errors import DataError
from reticent.policy.hierarchy import ladder

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from reticent.policy import Policy

MISSING = "(missing)"
"""The label of a missing value: a value like any other."""
OTHER = "other"
"""`E11, other`: what of a node has no value of its own; alone: everything else."""
UNSEEN = -1


class Domain:
    """Labels in canonical order; every raw value has the code of its own label, or of the nearest node above it."""

    def __init__(self, labels: Iterable[str], policy: Policy, column: str) -> None:
        self.labels = tuple(sorted(labels))
        self._codes = {label: code for code, label in enumerate(self.labels)}
        self._spec, self._base, self._column = policy.columns[column].hierarchy, policy.base, column
        self._known: dict[str | None, int] = {}

    @classmethod
    def of_labels(cls, labels: Iterable[str | None], policy: Policy, column: str) -> Domain:
        """The domain of a prior's labels; an empty one stands for a missing value."""
        return cls({MISSING if label is None else label for label in labels}, policy, column)

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"Domain({len(self)} values)"

    def code(self, label: str) -> int:
        """The code of a label of the domain."""
        return self._codes[label]

    def encode(self, column: pa.ChunkedArray | pa.Array) -> npt.NDArray[np.int32]:
        """The codes of raw values; -1 for those that the domain does not know."""
        words = Dictionary()
        codes = words.encode(column.cast(pa.string()))
        values = words.values.to_pylist()
        self._learn([value for value in values if value not in self._known])
        table = np.array([self._known[value] for value in values], dtype=np.int32)
        return np.asarray(table[codes]) if len(table) else np.zeros(0, dtype=np.int32)

    def _learn(self, values: list[str | None]) -> None:
        for value, above in zip(values, self._paths(values), strict=True):
            names = [MISSING if value is None else value]
            names += [name for node in above for name in (f"{node}, {OTHER}", node)]
            known = (self._codes[name] for name in [*names, OTHER] if name in self._codes)
            self._known[value] = next(known, UNSEEN)

    def _paths(self, values: list[str | None]) -> list[list[str]]:
        """Per value the nodes above it, the nearest first; a value that the hierarchy does not know has none."""
        paths: list[list[str]] = [[] for _ in values]
        if self._spec is None:
            return paths
        for path, value in zip(paths, values, strict=True):
            try:
                rungs = ladder(self._spec, pa.array([value], pa.string()), column=self._column, base=self._base)
            except DataError:
                continue  # a value outside the hierarchy is unseen, and no reason to publish nothing
            path += [str(labels[0].as_py()) for labels in rungs.labels[1:-1] if labels[0].as_py() is not None]
        return paths

    def parents(self) -> npt.NDArray[np.uint32]:
        """Per level of the hierarchy, the nearest first, the node of every value as a number; a root alone without one."""
        paths = self._paths([label.removesuffix(f", {OTHER}") for label in self.labels])
        depth = max(map(len, paths), default=0)
        levels = []
        for level in range(depth):
            names = [
                path[level] if level < len(path) else label for path, label in zip(paths, self.labels, strict=True)
            ]
            numbers: dict[str, int] = {}
            levels.append([numbers.setdefault(name, len(numbers)) for name in names])
        return np.array(levels or [[0] * len(self)], dtype=np.uint32)
