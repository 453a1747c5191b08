"""The value domain of a veil: an antichain of the value hierarchy, in which a parent replaces rare codes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa

from reticent.arrays import Int32s, UInt32s
from reticent.encode import Dictionary
from reticent.errors import DataError
from reticent.policy import Policy, icd9
from reticent.policy.cells import canonical_form
from reticent.policy.hierarchy import HierarchyLabeler
from reticent.policy.icd10 import BLOCKS

MISSING = "(missing)"
"""The label of a missing value, which is a value like any other."""
OTHER = "other"
"""`E11, other` covers the values below a node that have no label; `other` alone covers all remaining values."""
OUTSIDE = -1
# Raw values in the cache; a column of ever new values then costs time, not memory.
_MAX_CACHE = 1 << 16

Path = tuple[str, ...]
"""The nodes above a value, the nearest first, without the root."""


class Domain:
    """Labels in canonical order; a raw value has the code of its own label or of the nearest node above it."""

    def __init__(self, labels: Iterable[str | None], policy: Policy, column: str) -> None:
        self.labels = tuple(sorted({MISSING if label is None else label for label in labels}))
        self._codes = {label: code for code, label in enumerate(self.labels)}
        self._spec, self._base, self._column = policy.columns[column].hierarchy, policy.base, column
        merged = policy.columns[column].normalize
        self._folded = {canonical_form(label): label for label in self.labels} if merged else {}
        self._known: dict[str | None, int] = {}

    def __len__(self) -> int:
        return len(self.labels)

    def code(self, label: str | None) -> int:
        """Return the code of a label (None: the missing value), -1 where the domain lacks it."""
        return self._codes.get(MISSING if label is None else label, OUTSIDE)

    def encode(self, column: pa.ChunkedArray | pa.Array) -> Int32s:
        """Return the codes of raw values, -1 for values outside the domain."""
        dictionary = Dictionary()
        codes = dictionary.encode(column.cast(pa.string()))
        table = np.array(self.codes(dictionary.values.to_pylist()), dtype=np.int32)
        return np.asarray(table[codes]) if len(table) else np.zeros(0, dtype=np.int32)

    def codes(self, values: Sequence[str | None]) -> list[int]:
        """Return the codes of single values, as `encode` does."""
        if len(self._known) > _MAX_CACHE:
            self._known.clear()
        self._learn([value for value in values if value not in self._known])
        return [self._known[value] for value in values]

    def _learn(self, values: list[str | None]) -> None:
        for value, above in zip(values, self._paths(values), strict=True):
            names = [MISSING if value is None else self._merge_variant(value)]
            names += [name for node in above for name in (f"{node}, {OTHER}", node)]
            known = (self._codes[name] for name in [*names, OTHER] if name in self._codes)
            self._known[value] = next(known, OUTSIDE)

    def _merge_variant(self, value: str) -> str:
        """Return the label of which a value is a variant, where the policy merges variants."""
        return value if value in self._codes or not self._folded else self._folded.get(canonical_form(value), value)

    def levels(self) -> UInt32s:
        """Number the node of every value per level of the hierarchy, nearest level first; without a hierarchy only the root."""
        paths = self._label_paths
        levels = []
        for level in range(len(paths[0]) if paths else 0):
            numbers: dict[str, int] = {}
            levels.append([numbers.setdefault(path[level], len(numbers)) for path in paths])
        return np.array(levels or [[0] * len(self)], dtype=np.uint32)

    def parents(self) -> UInt32s:
        """Number the lowest node above each value that has another value below it: values with the same number are siblings.

        A chain of nodes with one value below counts as one node. A value that shares only the root has no siblings.
        """
        counts = Counter(step for path in self._label_paths for step in enumerate(path))
        nodes: list[object] = [
            next((step for step in enumerate(path) if counts[step] > 1), label)
            for label, path in zip(self.labels, self._label_paths, strict=True)
        ]
        numbers = {node: number for number, node in enumerate(dict.fromkeys(nodes))}
        return np.array([numbers[node] for node in nodes], dtype=np.uint32)

    @cached_property
    def _label_paths(self) -> list[Path]:
        """The path of every label, padded to the height of the hierarchy with the label itself."""
        names = [label.removesuffix(f", {OTHER}") for label in self.labels]
        paths = self._paths(list(names))
        depth = max(map(len, [*paths, *self._nodes.values()]), default=0)
        whole = []
        for label, name, path in zip(self.labels, names, paths, strict=True):
            above = path or self._nodes.get(name, ())
            whole.append((label,) * (depth - len(above)) + above)
        return whole

    @cached_property
    def _nodes(self) -> dict[str, Path]:
        """Inner nodes of the hierarchy, each with its path: itself and the nodes above it."""
        nodes: dict[str, Path] = {}
        for path in self._paths(self._leaves()):
            for level, node in enumerate(path):
                nodes.setdefault(node, path[level:])
        return nodes

    def _leaves(self) -> list[str | None]:
        """Return values that cover every node of the hierarchy, as far as the hierarchy can be listed."""
        spec = self._spec
        if self._climber.tree is not None:
            return list(self._climber.tree.paths)
        if spec is not None and spec.icd9:
            return [pair.partition("-")[0] for pair in icd9.BLOCKS]
        return [first for first, _ in BLOCKS] if spec is not None and spec.icd10 else []

    def _paths(self, values: list[str | None]) -> list[Path]:
        """Return the path of each value; a value that the hierarchy lacks has an empty path, which is no error."""
        if self._spec is None:
            return [()] * len(values)
        try:
            labels = self._climber.labels(values)
        except DataError:
            return [()] if len(values) == 1 else [path for value in values for path in self._paths([value])]
        paths = zip(*labels, strict=True) if labels else [()] * len(values)
        return [tuple(label for label in path if label is not None) for path in paths]

    @cached_property
    def _climber(self) -> HierarchyLabeler:
        return HierarchyLabeler(self._spec, column=self._column, base=self._base)
