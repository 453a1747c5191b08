"""Hierarchies as data: one lookup table per level, on integer codes.

A hierarchy spec becomes a `Ladder` when it meets a domain (the distinct values of a column, index = code). A value
that the hierarchy does not know is an error that names the column and the count, never the value. Missing values
are a value of their own: `null` keeps to itself on every level below `*`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from reticent.errors import DataError
from reticent.policy import intervals
from reticent.policy.codes import date_labels, icd10_labels, prefix_labels
from reticent.policy.tree import Tree, read_tree, tree_from_dict

if TYPE_CHECKING:
    import numpy.typing as npt

    from reticent.policy.policy import Policy
    from reticent.policy.spec import HierarchySpec

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

    tables: tuple[npt.NDArray[np.int32], ...]
    labels: tuple[pa.Array, ...]
    leaves: tuple[npt.NDArray[np.int64], ...]
    size: int
    numeric: npt.NDArray[np.float64] | None = None

    @property
    def height(self) -> int:
        """The highest level; level 0 is the value itself."""
        return len(self.tables) - 1

    def __repr__(self) -> str:
        return f"Ladder(height={self.height}, values={len(self.tables[0])}, size={self.size})"


def ladder(spec: HierarchySpec | None, values: pa.Array, *, column: str, base: Path = Path()) -> Ladder:
    """Applies a hierarchy to the distinct values of a column (index = code; at most one of them null)."""
    domain = values.to_pylist()
    if spec is None:
        return _assemble(values, [])
    if spec.kind == "file":
        return _from_tree(read_tree(base / str(spec.file), column=column), values, domain, column)
    if spec.kind == "tree":
        return _from_tree(tree_from_dict(spec.tree or {}, column=column), values, domain, column)
    if spec.kind == "intervals":
        return _from_intervals(spec, values, domain, column)
    makers: dict[str, Callable[[Sequence[Any], HierarchySpec], Labels]] = {
        "prefix": prefix_labels,
        "dates": date_labels,
        "icd10": icd10_labels,
    }
    labels = makers[spec.kind](domain, spec)
    _refuse_strangers(labels, domain, column, spec.kind)
    return _assemble(values, labels)


def ladders(policy: Policy, domains: dict[str, pa.Array]) -> dict[str, Ladder]:
    """The ladders of several columns of a policy, by name."""
    return {
        name: ladder(policy.columns[name].hierarchy, values, column=name, base=policy.base)
        for name, values in domains.items()
    }


def _from_intervals(spec: HierarchySpec, values: pa.Array, domain: list[Any], column: str) -> Ladder:
    numbers = intervals.to_numbers(domain)
    missing = np.array([value is None for value in domain], dtype=bool)
    _count_strangers(int((~np.isfinite(numbers) & ~missing).sum()), column, "intervals", "numbers")
    labels = intervals.interval_labels(numbers, spec)
    return _assemble(
        values,
        [[None if gone else label for label, gone in zip(level, missing, strict=True)] for level in labels],
        numeric=numbers,
    )


def _from_tree(tree: Tree, values: pa.Array, domain: list[Any], column: str) -> Ladder:
    paths = [tree.path(value) for value in domain]
    strangers = sum(path is None and value is not None for path, value in zip(paths, domain, strict=True))
    _count_strangers(strangers, column, "tree", "leaves of its hierarchy")
    labels: Labels = [[None if path is None else path[level] for path in paths] for level in range(tree.depth - 1)]
    return _assemble(values, labels, counts=tree.counts, size=tree.size)


def _refuse_strangers(labels: Labels, domain: list[Any], column: str, kind: str) -> None:
    first = labels[0] if labels else []
    strangers = sum(label is None and value is not None for label, value in zip(first, domain, strict=False))
    _count_strangers(
        strangers, column, kind, {"dates": "dates", "icd10": "ICD-10 codes"}.get(kind, "codes of that length")
    )


def _count_strangers(count: int, column: str, kind: str, expectation: str) -> None:
    if count:
        raise DataError(
            f"Column '{column}': {count} distinct value{'s are' if count > 1 else ' is'} not {expectation} (hierarchy: {kind}).",
            hint="Correct the data, or extend the hierarchy in the policy.",
        )


def _assemble(
    values: pa.Array,
    labels: Labels,
    *,
    counts: list[dict[str, int]] | None = None,
    size: int | None = None,
    numeric: npt.NDArray[np.float64] | None = None,
) -> Ladder:
    n = len(values)
    tables, names, leaves = [np.arange(n, dtype=np.int32)], [values], [np.ones(n, dtype=np.int64)]
    for level, column in enumerate(labels):
        ids: dict[str | None, int] = {}
        table = np.fromiter((ids.setdefault(label, len(ids)) for label in column), dtype=np.int32, count=n)
        below = np.bincount(table, minlength=len(ids)).astype(np.int64)
        if counts is not None:
            below = np.array([1 if label is None else counts[level][label] for label in ids], dtype=np.int64)
        tables.append(table)
        names.append(pa.array(list(ids), type=pa.string()))
        leaves.append(below)
    whole = size if size is not None else n
    tables.append(np.zeros(n, dtype=np.int32))
    names.append(pa.array([ROOT]))
    leaves.append(np.array([whole], dtype=np.int64))
    return Ladder(tuple(tables), tuple(names), tuple(leaves), whole, numeric)
