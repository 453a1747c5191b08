"""Whether a published value is a legal node of its column's hierarchy.

Trees list their nodes. For hierarchies that a value carries in itself (intervals, prefixes, dates, ICD-10) a value
that the label would stand for is put through the hierarchy of the policy, and the label must come out on some level.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa

from reticent.errors import DataError
from reticent.policy.hierarchy import ladder
from reticent.policy.icd10 import CHAPTERS
from reticent.policy.tree import read_tree, tree_from_dict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reticent.policy import Policy
    from reticent.policy.spec import HierarchySpec

ROOT = "*"
_NUMBER = r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
_HALF_OPEN = re.compile(rf"\[({_NUMBER}), ({_NUMBER})\)")
_CLOSED = re.compile(rf"\[({_NUMBER}), ({_NUMBER})\]")
_BELOW = re.compile(rf"<({_NUMBER})")
_ABOVE = re.compile(rf"({_NUMBER})\+")
_QUARTER = re.compile(r"(\d{4})-Q([1-4])")


def illegal(values: Iterable[str | None], policy: Policy, column: str) -> int:
    """How many of the distinct published values the column's hierarchy does not know."""
    spec = policy.columns[column].hierarchy
    shown = [value for value in values if value is not None and value != ROOT]
    if spec is None:
        return 0
    if spec.kind in ("file", "tree"):
        nodes = _nodes(spec, policy, column)
        return sum(value not in nodes for value in shown)
    if spec.kind == "intervals":  # cuts of Mondrian are closed intervals of their own
        shown = [value for value in shown if not _closed(value)]
    return sum(not _known(value, spec, policy, column) for value in shown)


def _nodes(spec: HierarchySpec, policy: Policy, column: str) -> set[str]:
    if spec.kind == "file":
        tree = read_tree(policy.base / str(spec.file), column=column)
    else:
        tree = tree_from_dict(spec.tree or {}, column=column)
    return set(tree.paths).union(*tree.paths.values())


def _known(value: str, spec: HierarchySpec, policy: Policy, column: str) -> bool:
    example = _example(value, spec.kind)
    try:
        steps = ladder(spec, pa.array([example], pa.string()), column=column, base=policy.base)
    except DataError:
        return False
    return example == value or any(value in labels.to_pylist() for labels in steps.labels)


def _example(value: str, kind: str) -> str:
    """A leaf that the label stands for, if it is a label; else the value itself."""
    if kind == "prefix":
        return value.replace("*", "0")
    if kind == "dates":
        return _first_day(value)
    if kind == "icd10":
        chapter = next((first for first, _, name in CHAPTERS if name == value), value)
        return chapter.split("-")[0]
    return _inside(value)


def _inside(value: str) -> str:
    for pattern in (_HALF_OPEN, _ABOVE):
        if match := pattern.fullmatch(value):
            return match[1]
    match = _BELOW.fullmatch(value)
    return str(float(match[1]) - max(1.0, abs(float(match[1])))) if match else value


def _first_day(value: str) -> str:
    if match := _QUARTER.fullmatch(value):
        return f"{match[1]}-{int(match[2]) * 3 - 2:02}-01"
    return value + {4: "-01-01", 7: "-01"}.get(len(value), "")


def _closed(value: str) -> bool:
    match = _CLOSED.fullmatch(value)
    return match is not None and float(match[1]) <= float(match[2])
