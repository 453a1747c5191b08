"""Check that a published value is a node of its column's hierarchy.

Trees list their nodes. For computed hierarchies (intervals, prefixes, dates, ICD-9, ICD-10), the verifier generalizes an
example value that the label covers; the label must occur on some level. Methods that cut columns freely may also publish
closed intervals such as `[20, 37]` (also of days and codes), sets of leaves such as `{a, b}`, and a suffix `or missing`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from reticent.arrays import Bools
from reticent.errors import DataError
from reticent.policy import Policy
from reticent.policy.hierarchy import ROOT, build_levels, read_tree, tree_from_dict
from reticent.policy.icd10 import CHAPTERS
from reticent.policy.spec import HierarchySpec
from reticent.verify.result import Finding, none_of

FULL_DOMAIN = ("optimal", "supervised", "local")
_NUMBER = r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
_HALF_OPEN = re.compile(rf"\[({_NUMBER}), ({_NUMBER})\)")
_CLOSED = re.compile(rf"\[({_NUMBER}), ({_NUMBER})\]")
_ENDS = re.compile(r"\[(.+), (.+)\]")
_OR_MISSING = " or missing"
_BELOW = re.compile(rf"<({_NUMBER})")
_ABOVE = re.compile(rf"({_NUMBER})\+")
_DECADE = re.compile(r"(\d{3}0)s")
_QUARTER = re.compile(r"(\d{4})-Q([1-4])")


def count_invalid_labels(
    values: Iterable[str | None], policy: Policy, column: str, method: str = "", *, level: int = 0
) -> int:
    """Count the published values that are no node of the column's hierarchy at or above a level."""
    spec = policy.columns[column].hierarchy
    shown = [value for value in values if value is not None and value != ROOT]
    if spec is None:
        return len(shown) if level else 0
    if method not in FULL_DOMAIN:
        shown = [value.removesuffix(_OR_MISSING) for value in shown]
        if spec.kind in ("intervals", "file", "tree"):
            shown = [value for value in shown if not _is_closed_interval(value)]
        elif spec.kind in ("dates", "prefix"):
            shown = [end for value in shown for end in _both_ends(value)]
    if spec.kind in ("file", "tree"):
        leaves, nodes = _tree_nodes(spec, policy, column, level)
        free = method not in FULL_DOMAIN
        return sum(value not in nodes and not (free and _is_leaf_set(value, leaves)) for value in shown)
    return int((~_valid_labels(shown, spec, policy, column, level)).sum())


def check_labels(
    labels: Iterable[str | None],
    policy: Policy,
    column: str,
    method: str = "",
    claim: str = "published values are nodes of the hierarchy",
    *,
    level: int = 0,
) -> Finding:
    """Check that all published values of a column are nodes of its hierarchy."""
    return none_of(claim, count_invalid_labels(labels, policy, column, method, level=level), f"column '{column}'")


def is_exact(value: str | None, policy: Policy, column: str) -> bool:
    """Return whether a published value is exact: a leaf that covers only itself."""
    spec = policy.columns[column].hierarchy
    if value is None or value == ROOT:
        return value is None
    spans = spec is not None and spec.kind in ("dates", "prefix") and _ENDS.fullmatch(value) is not None
    if spans or value.endswith(_OR_MISSING):
        return False
    if any(shape.fullmatch(value) for shape in (_HALF_OPEN, _CLOSED, _BELOW, _ABOVE, _DECADE, _QUARTER)):
        return False
    if spec is not None and spec.kind in ("file", "tree"):
        leaves, nodes = _tree_nodes(spec, policy, column)
        return value not in nodes - leaves
    return not (spec is not None and spec.kind == "prefix" and "*" in value)


def _tree_nodes(spec: HierarchySpec, policy: Policy, column: str, level: int = 0) -> tuple[set[str], set[str]]:
    """Return the leaves of a tree, and all its nodes at or above a level."""
    if spec.kind == "file":
        tree = read_tree(policy.base / str(spec.file), column=column)
    else:
        tree = tree_from_dict(spec.tree or {}, column=column)
    above = (path[max(level - 1, 0) :] for path in tree.paths.values())
    return set(tree.paths), (set() if level else set(tree.paths)).union(*above)


def _is_leaf_set(value: str, leaves: set[str]) -> bool:
    """Return whether a value is a set of distinct leaves."""
    members = value[1:-1].split(", ")
    bracketed = value.startswith("{") and value.endswith("}")
    return bracketed and 1 < len(members) == len(set(members)) and set(members) <= leaves


def _valid_labels(values: list[str], spec: HierarchySpec, policy: Policy, column: str, level: int = 0) -> Bools:
    examples = [_example(value, spec.kind) for value in values]
    try:
        steps = build_levels(spec, pa.array(examples, pa.string()), column=column, base=policy.base)
    except DataError:  # at least one value is unknown: split to find it
        if len(values) <= 1:
            return np.zeros(len(values), dtype=np.bool_)
        half = len(values) // 2
        return np.concatenate(
            [_valid_labels(part, spec, policy, column, level) for part in (values[:half], values[half:])]
        )
    own = (not level and example == value for example, value in zip(examples, values, strict=True))
    known = np.fromiter(own, dtype=np.bool_, count=len(values))
    for table, labels in list(zip(steps.node_ids, steps.labels, strict=True))[level:]:
        names = labels.to_pylist()
        known |= np.array([names[node] == value for node, value in zip(table, values, strict=True)], dtype=np.bool_)
    return known


def _example(value: str, kind: str) -> str:
    """Return a leaf that the label covers, if it is a label; else the value itself."""
    if kind == "prefix":
        return value.replace("*", "0")
    if kind == "dates":
        return _first_day(value)
    if kind == "icd10":
        chapter = next((first for first, _, name in CHAPTERS if name == value), value)
        return chapter.split("-")[0]
    if kind == "icd9":
        return value.split("-", maxsplit=1)[0]
    return _value_inside(value)


def _value_inside(value: str) -> str:
    for pattern in (_HALF_OPEN, _ABOVE):
        if match := pattern.fullmatch(value):
            return match[1]
    match = _BELOW.fullmatch(value)
    return str(float(match[1]) - max(1.0, abs(float(match[1])))) if match else value


def _first_day(value: str) -> str:
    if match := _QUARTER.fullmatch(value):
        return f"{match[1]}-{int(match[2]) * 3 - 2:02}-01"
    if match := _DECADE.fullmatch(value):
        return f"{match[1]}-01-01"
    return value + {4: "-01-01", 7: "-01"}.get(len(value), "")


def _both_ends(value: str) -> tuple[str, ...]:
    """Return both ends of an interval whose ends are in text order; else the value itself."""
    match = _ENDS.fullmatch(value)
    return (match[1], match[2]) if match is not None and match[1] <= match[2] else (value,)


def _is_closed_interval(value: str) -> bool:
    match = _CLOSED.fullmatch(value)
    return match is not None and float(match[1]) <= float(match[2])
