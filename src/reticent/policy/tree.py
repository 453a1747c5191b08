"""Trees of values: CSV files with one leaf-to-root path per line, or a nested mapping in the policy."""

from __future__ import annotations

import csv
import io
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path
from typing import Any

from reticent.errors import PolicyError
from reticent.policy.spec import HierarchySpec


@dataclass(frozen=True, repr=False)
class Tree:
    """Paths from each leaf up to the one root; all of the same length.

    Attributes:
        paths: leaf -> its ancestors, bottom up, the root last.
        counts: per level above the leaves, node -> number of leaves below it.
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
        """The ancestors of a value, or None for a value that is not a leaf."""
        if value is None:
            return None
        path = self.paths.get(str(value))
        if path is None and isinstance(value, float) and value.is_integer():
            path = self.paths.get(str(int(value)))
        return path


def tree_of(spec: HierarchySpec | None, base: Path, *, column: str) -> Tree | None:
    """The tree of a column whose hierarchy is one, in a file or in the policy itself."""
    if spec is not None and spec.file is not None:
        return read_tree(base / spec.file, column=column)
    return tree_from_dict(spec.tree, column=column) if spec is not None and spec.tree is not None else None


def read_tree(path: Path, *, column: str) -> Tree:
    """Reads `leaf;...;root` per line, separated by ';' or ','."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return _from_text(file.read(), column, path.name)
    except OSError as error:
        raise _bad(
            column,
            f"cannot read {path.name} ({error.strerror})",
            "Correct the path; it starts from the policy's folder",
        ) from None
    except (UnicodeDecodeError, csv.Error):
        raise _bad(
            column, f"{path.name} is not a readable UTF-8 CSV file", "Write one line per leaf: leaf;...;root"
        ) from None


@lru_cache(maxsize=64)
def _from_text(text: str, column: str, name: str) -> Tree:
    """Engine, judge and codebook ask for the same trees; a file that has changed is another text."""
    lines = io.StringIO(text, newline="")
    delimiter = ";" if ";" in lines.readline() else ","
    lines.seek(0)
    rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=delimiter, strict=True) if row]
    return _from_rows(rows, column, name)


def tree_from_dict(nested: dict[str, Any], *, column: str) -> Tree:
    """Builds a tree from nested mappings whose innermost values are lists of leaves; `*` is put on top."""
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
        raise _bad(column, f"{name} is empty", "Write one line per leaf: leaf;...;root")
    widths = {len(row) for row in rows}
    if len(widths) > 1 or 1 in widths:
        odd = next(i for i, row in enumerate(rows, 1) if len(row) != len(rows[0]) or len(row) < 2)
        raise _bad(
            column,
            f"{name}, line {odd}: every line needs the same number of levels, at least two",
            "Repeat a label to fill a level",
        )
    roots = {row[-1] for row in rows}
    if len(roots) > 1:
        raise _bad(
            column, f"{name} has {len(roots)} roots", "Add a last column that is the same on every line, such as *"
        )
    _refuse_two_parents(rows, column, name)
    _refuse_cycles(rows, column, name)
    paths: dict[str, tuple[str, ...]] = {}
    for line, row in enumerate(rows, 1):
        if paths.setdefault(row[0], tuple(row[1:])) != tuple(row[1:]):
            raise _bad(
                column,
                f"{name}, line {line}: a leaf stands there a second time with other ancestors",
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
                raise _bad(
                    column, f"{name}, line {line}, level {level}: a node has two parents", "Give each node one parent"
                )


def _refuse_cycles(rows: list[list[str]], column: str, name: str) -> None:
    """No node may be its own ancestor; a label repeated on neighbouring levels only fills a level."""
    above: TopologicalSorter[str] = TopologicalSorter()
    inner = {node for row in rows for node in row[1:]}  # what is below nothing is on no circle
    for child, parent in {pair for row in rows for pair in pairwise(row) if pair[0] in inner}:
        if child != parent:
            above.add(child, parent)
    try:
        above.prepare()
    except CycleError:  # whose text names the nodes
        hint = "Give each node a path that ends at the root"
        raise _bad(column, f"{name} has a cycle: a node is its own ancestor", hint) from None


def _bad(column: str, what: str, hint: str) -> PolicyError:
    return PolicyError(f"columns.{column}.hierarchy: {what}.", hint=f"{hint}.")
