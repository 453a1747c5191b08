"""Hierarchies as data: one lookup table per level, on integer codes.

A hierarchy spec becomes a `Ladder` when it meets a domain (the distinct values of a column, index = code). A value
that the hierarchy does not know is an error that names the column and the count, never the value. Missing values
are a value of their own: `null` keeps to itself on every level below `*`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.arrays import Floats, Int32s, Int64s
from reticent.errors import DataError
from reticent.policy.labels import (
    date_labels,
    date_nodes,
    icd9_labels,
    icd10_labels,
    interval_labels,
    prefix_labels,
    to_numbers,
)
from reticent.policy.policy import Policy
from reticent.policy.spec import HierarchySpec
from reticent.policy.tree import Tree, tree_of

Nodes = tuple[Int32s, list[str | None]]

ROOT = "*"
Labels = list[list[str | None]]
"""Per level above the leaves, bottom up: one label per value; `None` where the value does not fit."""


@dataclass(frozen=True, repr=False)
class Ladder:
    """A hierarchy applied to a domain.

    Attributes:
        tables: per level, leaf code -> node id; level 0 is the identity, the last level has the one node `*`.
        labels: per level, node id -> the value to publish (level 0: the original values).
        leaves: per level, node id -> number of leaves of the hierarchy below it.
        size: number of leaves of the hierarchy, whether or not they occur.
        numeric: the number each leaf stands for, where the attribute is numeric.
    """

    tables: tuple[Int32s, ...]
    labels: tuple[pa.Array, ...]
    leaves: tuple[Int64s, ...]
    size: int
    numeric: Floats | None = None

    @property
    def height(self) -> int:
        """The highest level; level 0 is the value itself."""
        return len(self.tables) - 1


_MAKERS: dict[str, Callable[[Sequence[Any], HierarchySpec], Labels]] = {
    "intervals": interval_labels,
    "prefix": prefix_labels,
    "dates": date_labels,
    "icd9": icd9_labels,
    "icd10": icd10_labels,
}


class Climber:
    """A hierarchy made ready once: the labels above values, without arrays."""

    def __init__(self, spec: HierarchySpec | None, *, column: str, base: Path = Path()) -> None:
        self._spec, self._column, self._kind = spec, column, None if spec is None else spec.kind
        self.tree = tree_of(spec, base, column=column)

    def labels(self, domain: Sequence[Any]) -> Labels:
        """Per level between the values and the root, one label per value; refuses values that do not fit."""
        spec, kind = self._spec, self._kind
        if spec is None or kind is None:
            return []
        if self.tree is not None:
            return _tree_labels(self.tree, domain, self._column)
        labels = _MAKERS[kind](domain, spec)
        _refuse_strangers(labels, domain, self._column, kind)
        return labels


def check_domain(spec: HierarchySpec, values: pa.Array, *, column: str, base: Path) -> None:
    """Refuses values that do not fit a hierarchy, as `ladder` does, for whoever has no use for the levels."""
    if spec.kind != "dates" or date_nodes(values, spec) is None:
        Climber(spec, column=column, base=base).labels(values.to_pylist())


def ladder(spec: HierarchySpec | None, values: pa.Array, *, column: str, base: Path = Path()) -> Ladder:
    """Applies a hierarchy to the distinct values of a column (index = code; at most one of them null)."""
    if spec is not None and spec.kind == "dates" and (nodes := date_nodes(values, spec)) is not None:
        return _assemble(values, nodes)
    climber, domain = Climber(spec, column=column, base=base), values.to_pylist()
    levels, tree = [_nodes(labels) for labels in climber.labels(domain)], climber.tree
    if tree is not None:
        return _assemble(values, levels, counts=tree.counts, size=tree.size)
    numeric = spec is not None and spec.kind == "intervals"
    return _assemble(values, levels, numeric=to_numbers(domain) if numeric else None)


def ladders(policy: Policy, domains: dict[str, pa.Array]) -> dict[str, Ladder]:
    """The ladders of several columns of a policy, by name."""
    return {
        name: ladder(policy.columns[name].hierarchy, values, column=name, base=policy.base)
        for name, values in domains.items()
    }


def _tree_labels(tree: Tree, domain: Sequence[Any], column: str) -> Labels:
    paths = [tree.path(value) for value in domain]
    strangers = sum(path is None and value is not None for path, value in zip(paths, domain, strict=True))
    _count_strangers(strangers, column, "tree", "leaves of its hierarchy")
    return [[None if path is None else path[level] for path in paths] for level in range(tree.depth - 1)]


def _refuse_strangers(labels: Labels, domain: Sequence[Any], column: str, kind: str) -> None:
    first = labels[0] if labels else []
    if None not in first:
        return
    strangers = sum(label is None and value is not None for label, value in zip(first, domain, strict=False))
    expectations = {"intervals": "numbers", "dates": "dates", "icd9": "ICD-9 codes", "icd10": "ICD-10 codes"}
    _count_strangers(strangers, column, kind, expectations.get(kind, "codes of that length"))


def _count_strangers(count: int, column: str, kind: str, expectation: str) -> None:
    if count:
        raise DataError(
            f"Column '{column}': {count} distinct value{'s are' if count > 1 else ' is'} not {expectation} (hierarchy: {kind}).",
            hint="Correct the data, or extend the hierarchy in the policy.",
        )


def _nodes(labels: list[str | None]) -> Nodes:
    ids: dict[str | None, int] = {}
    table = np.fromiter((ids.setdefault(label, len(ids)) for label in labels), dtype=np.int32, count=len(labels))
    return table, list(ids)


def _assemble(
    values: pa.Array,
    levels: list[Nodes],
    *,
    counts: list[dict[str, int]] | None = None,
    size: int | None = None,
    numeric: Floats | None = None,
) -> Ladder:
    n = len(values)
    tables, names, leaves = [np.arange(n, dtype=np.int32)], [values], [np.ones(n, dtype=np.int64)]
    for level, (table, labels) in enumerate(levels):
        below = np.bincount(table, minlength=len(labels)).astype(np.int64)
        if counts is not None:
            below = np.array([1 if label is None else counts[level][label] for label in labels], dtype=np.int64)
        tables.append(table)
        names.append(pa.array(labels, type=pa.string()))
        leaves.append(below)
    whole = size if size is not None else n
    tables.append(np.zeros(n, dtype=np.int32))
    names.append(pa.array([ROOT]))
    leaves.append(np.array([whole], dtype=np.int64))
    return Ladder(tuple(tables), tuple(names), tuple(leaves), whole, numeric)
