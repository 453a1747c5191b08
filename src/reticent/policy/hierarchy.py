"""Hierarchies as data: one lookup table per level, on integer codes, and the trees of file and inline hierarchies.

A hierarchy spec becomes `HierarchyLevels` when it is applied to a domain (the distinct values of a column, index = code).
An unknown value raises an error that names the column and the count, never the value. A missing value is a value of its
own: it has its own node on every level below `*`. A tree is a CSV file with one path from leaf to root per line, or a
nested mapping in the policy.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.arrays import Floats, Int32s, Int64s
from reticent.errors import DataError, PolicyError
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


@dataclass(frozen=True, repr=False)
class Tree:
    """A tree of values; all paths from a leaf to the root have the same length.

    Attributes:
        paths: leaf -> its ancestors, bottom up, the root last.
        counts: per level above the leaves, node -> number of leaves below the node.
    """

    paths: dict[str, tuple[str, ...]]
    counts: list[dict[str, int]]

    @property
    def depth(self) -> int:
        """Number of levels above the leaves, the root included."""
        return len(self.counts)

    @property
    def size(self) -> int:
        """Number of leaves."""
        return len(self.paths)

    def path(self, value: Any) -> tuple[str, ...] | None:
        """Return the ancestors of a value, or None for a value that is not a leaf."""
        if value is None:
            return None
        path = self.paths.get(str(value))
        if path is None and isinstance(value, float) and value.is_integer():
            path = self.paths.get(str(int(value)))
        return path


def tree_of(spec: HierarchySpec | None, base: Path, *, column: str) -> Tree | None:
    """Return the tree of a column from its file or from the policy; None for other hierarchies."""
    if spec is not None and spec.file is not None:
        return read_tree(base / spec.file, column=column)
    return tree_from_dict(spec.tree, column=column) if spec is not None and spec.tree is not None else None


def read_tree(path: Path, *, column: str) -> Tree:
    """Read a tree file with one `leaf;...;root` per line, separated by ';' or ','."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return _from_text(file.read(), column, path.name)
    except OSError as error:
        raise _error(
            column,
            f"cannot read {path.name} ({error.strerror})",
            "Correct the path. It is relative to the policy's folder",
        ) from None
    except (UnicodeDecodeError, csv.Error):
        raise _error(
            column, f"{path.name} is not a readable UTF-8 CSV file", "Write one line per leaf: leaf;...;root"
        ) from None


@lru_cache(maxsize=64)
def _from_text(text: str, column: str, name: str) -> Tree:
    # Cached by text, not by path: engine, verifier and codebook read the same trees, and a file may change.
    lines = io.StringIO(text, newline="")
    delimiter = ";" if ";" in lines.readline() else ","
    lines.seek(0)
    rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=delimiter, strict=True) if row]
    return _from_rows(rows, column, name)


def tree_from_dict(nested: dict[str, Any], *, column: str) -> Tree:
    """Build a tree from nested mappings whose innermost values are lists of leaves; `*` becomes the root."""
    rows: list[list[str]] = []

    def walk(node: Any, above: list[str]) -> None:
        if isinstance(node, dict):
            for name, below in node.items():
                walk(below, [str(name), *above])
        elif isinstance(node, list):
            rows.extend([str(leaf), *above] for leaf in node)
        else:
            rows.append([str(node), *above])

    walk(nested, ["*"])
    return _from_rows(rows, column, "the tree")


def _from_rows(rows: list[list[str]], column: str, name: str) -> Tree:
    if not rows:
        raise _error(column, f"{name} is empty", "Write one line per leaf: leaf;...;root")
    widths = {len(row) for row in rows}
    if len(widths) > 1 or 1 in widths:
        odd = next(i for i, row in enumerate(rows, 1) if len(row) != len(rows[0]) or len(row) < 2)
        raise _error(
            column,
            f"{name}, line {odd}: all lines need the same number of levels, at least two",
            "Repeat a label to fill a level",
        )
    roots = {row[-1] for row in rows}
    if len(roots) > 1:
        raise _error(
            column, f"{name} has {len(roots)} roots", "Add a last column that is the same on every line, such as *"
        )
    _refuse_two_parents(rows, column, name)
    _refuse_cycles(rows, column, name)
    paths: dict[str, tuple[str, ...]] = {}
    for line, row in enumerate(rows, 1):
        if paths.setdefault(row[0], tuple(row[1:])) != tuple(row[1:]):
            raise _error(
                column,
                f"{name}, line {line}: the leaf occurs a second time with other ancestors",
                "Keep one line per leaf",
            )
    depth = len(rows[0]) - 1
    counts = [dict(Counter(path[level] for path in paths.values())) for level in range(depth)]
    return Tree(paths, counts)


def _refuse_two_parents(rows: list[list[str]], column: str, name: str) -> None:
    parents: dict[tuple[int, str], str] = {}
    for line, row in enumerate(rows, 1):
        for level in range(1, len(row) - 1):
            if parents.setdefault((level, row[level]), row[level + 1]) != row[level + 1]:
                raise _error(
                    column, f"{name}, line {line}, level {level}: a node has two parents", "Give each node one parent"
                )


def _refuse_cycles(rows: list[list[str]], column: str, name: str) -> None:
    """Refuse a node that is its own ancestor; a label repeated on adjacent levels only fills a level."""
    above: TopologicalSorter[str] = TopologicalSorter()
    inner = {node for row in rows for node in row[1:]}  # a leaf without children cannot be on a cycle
    for child, parent in {pair for row in rows for pair in pairwise(row) if pair[0] in inner}:
        if child != parent:
            above.add(child, parent)
    try:
        above.prepare()
    except CycleError:  # its text names the nodes, so it is not shown
        hint = "Give each node a path that ends at the root"
        raise _error(column, f"{name} has a cycle: a node is its own ancestor", hint) from None


def _error(column: str, what: str, hint: str) -> PolicyError:
    return PolicyError(f"columns.{column}.hierarchy: {what}.", hint=f"{hint}.")


Nodes = tuple[Int32s, list[str | None]]

ROOT = "*"
Labels = list[list[str | None]]
"""Per level above the leaves, bottom up: one label per value; `None` where the value does not fit."""


@dataclass(frozen=True, repr=False)
class HierarchyLevels:
    """A hierarchy applied to a domain.

    Attributes:
        node_ids: per level, leaf code -> node id; level 0 is the identity, the last level has the single node `*`.
        labels: per level, node id -> the value to publish (level 0: the original values).
        leaves: per level, node id -> number of leaves of the hierarchy below the node.
        size: number of leaves of the hierarchy, including leaves that do not occur in the data.
        numeric: the number of each leaf, for a numeric attribute.
    """

    node_ids: tuple[Int32s, ...]
    labels: tuple[pa.Array, ...]
    leaves: tuple[Int64s, ...]
    size: int
    numeric: Floats | None = None

    @property
    def height(self) -> int:
        """The highest level; level 0 is the value itself."""
        return len(self.node_ids) - 1


_LABELERS: dict[str, Callable[[Sequence[Any], HierarchySpec], Labels]] = {
    "intervals": interval_labels,
    "prefix": prefix_labels,
    "dates": date_labels,
    "icd9": icd9_labels,
    "icd10": icd10_labels,
}


class HierarchyLabeler:
    """Finds the labels above values; reads the hierarchy once."""

    def __init__(self, spec: HierarchySpec | None, *, column: str, base: Path = Path()) -> None:
        self._spec, self._column, self._kind = spec, column, None if spec is None else spec.kind
        self.tree = tree_of(spec, base, column=column)

    def labels(self, domain: Sequence[Any]) -> Labels:
        """Return one label per value for each level between the values and the root; refuse values that do not fit."""
        spec, kind = self._spec, self._kind
        if spec is None or kind is None:
            return []
        if self.tree is not None:
            return _tree_labels(self.tree, domain, self._column)
        labels = _LABELERS[kind](domain, spec)
        _refuse_unknown_values(labels, domain, self._column, kind)
        return labels


def check_domain(spec: HierarchySpec, values: pa.Array, *, column: str, base: Path) -> None:
    """Refuse values that do not fit a hierarchy, as `build_levels` does, without building the levels."""
    if spec.kind != "dates" or date_nodes(values, spec) is None:
        HierarchyLabeler(spec, column=column, base=base).labels(values.to_pylist())


def build_levels(spec: HierarchySpec | None, values: pa.Array, *, column: str, base: Path = Path()) -> HierarchyLevels:
    """Apply a hierarchy to the distinct values of a column (index = code; at most one value is null)."""
    if spec is not None and spec.kind == "dates" and (nodes := date_nodes(values, spec)) is not None:
        return _assemble(values, nodes)
    labeler, domain = HierarchyLabeler(spec, column=column, base=base), values.to_pylist()
    levels, tree = [_number_nodes(labels) for labels in labeler.labels(domain)], labeler.tree
    if tree is not None:
        return _assemble(values, levels, counts=tree.counts, size=tree.size)
    numeric = spec is not None and spec.kind == "intervals"
    return _assemble(values, levels, numeric=to_numbers(domain) if numeric else None)


def build_levels_by_column(policy: Policy, domains: dict[str, pa.Array]) -> dict[str, HierarchyLevels]:
    """Return the hierarchy levels of several columns of a policy, by column name."""
    return {
        name: build_levels(policy.columns[name].hierarchy, values, column=name, base=policy.base)
        for name, values in domains.items()
    }


def _tree_labels(tree: Tree, domain: Sequence[Any], column: str) -> Labels:
    paths = [tree.path(value) for value in domain]
    unknown = sum(path is None and value is not None for path, value in zip(paths, domain, strict=True))
    _refuse_if_any(unknown, column, "tree", "leaves of its hierarchy")
    return [[None if path is None else path[level] for path in paths] for level in range(tree.depth - 1)]


def _refuse_unknown_values(labels: Labels, domain: Sequence[Any], column: str, kind: str) -> None:
    first = labels[0] if labels else []
    if None not in first:
        return
    unknown = sum(label is None and value is not None for label, value in zip(first, domain, strict=False))
    expectations = {"intervals": "numbers", "dates": "dates", "icd9": "ICD-9 codes", "icd10": "ICD-10 codes"}
    _refuse_if_any(unknown, column, kind, expectations.get(kind, "codes of that length"))


def _refuse_if_any(count: int, column: str, kind: str, expectation: str) -> None:
    if count:
        raise DataError(
            f"Column '{column}': {count} distinct value{'s are' if count > 1 else ' is'} not {expectation} (hierarchy: {kind}).",
            hint="Correct the data, or extend the hierarchy in the policy.",
        )


def _number_nodes(labels: list[str | None]) -> Nodes:
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
) -> HierarchyLevels:
    n = len(values)
    tables, names, leaves = [np.arange(n, dtype=np.int32)], [values], [np.ones(n, dtype=np.int64)]
    for level, (table, labels) in enumerate(levels):
        below = np.bincount(table, minlength=len(labels)).astype(np.int64)
        if counts is not None:
            below = np.array([1 if label is None else counts[level][label] for label in labels], dtype=np.int64)
        tables.append(table)
        names.append(pa.array(labels, type=pa.string()))
        leaves.append(below)
    total_leaves = size if size is not None else n
    tables.append(np.zeros(n, dtype=np.int32))
    names.append(pa.array([ROOT]))
    leaves.append(np.array([total_leaves], dtype=np.int64))
    return HierarchyLevels(tuple(tables), tuple(names), tuple(leaves), total_leaves, numeric)
