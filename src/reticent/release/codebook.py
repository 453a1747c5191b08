"""The codebook of a release: what its columns are, how to read them, what may be concluded. Made from what is published, and the policy.

Guarantee: nothing stands in it but names, roles and settings of the policy, counts that the manifest has as well, and labels that are
published in the tables beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from reticent.policy.labels import icd9_labels, icd10_labels, prefix_labels
from reticent.policy.tree import Tree, read_tree, tree_from_dict
from reticent.release.readme import citation
from reticent.release.types import type_name
from reticent.release.wording import HOW_TO_READ, MAY, MAY_NOT, claims_in_words

if TYPE_CHECKING:
    from reticent.policy import Policy
    from reticent.policy.spec import Column, HierarchySpec
    from reticent.release.release import Release

FORMAT = 1
NAME = "codebook"
_OWN = {
    "group": "number of the group that a record stands in",
    "count": "how often the value stands in the group",
    "row": "row of the prior that the record falls into; veil.json lists them",
    "event": "the person's events before this one",
    "person": "pseudonym of the person in this publication",
    "visit": "pseudonym of the visit in this publication",
}
_ANY = "*"


def with_codebook(release: Release, policy: Policy, texts: Mapping[str, pa.Table] | None = None) -> Release:
    """The release with its codebook among the documents; `texts` are the same tables with their texts numbered, where somebody has them."""
    return replace(release, documents={**release.documents, NAME: codebook(release, policy, texts)})


def codebook(release: Release, policy: Policy, texts: Mapping[str, pa.Table] | None = None) -> dict[str, Any]:
    """All that a recipient needs to know of a release, as plain values."""
    sensitive = next(iter(policy.sensitive), None)
    return {
        "format": FORMAT,
        "kind": release.kind,
        "shape": release.shape,
        "method": release.method,
        "sensitive": sensitive,
        "columns": described(release.tables, release.shape, policy, texts),
        "records": dict(vars(release.counts)),
        "guarantee": {
            "claims": dict(release.guarantee.claims),
            "words": claims_in_words(release.guarantee.claims),
            "against": release.guarantee.against,
            "not_covered": list(release.guarantee.not_covered),
        },
        "reading": list(HOW_TO_READ[release.shape]),
        "may_be_concluded": list(MAY[release.shape]),
        "may_not_be_concluded": list(MAY_NOT),
        "cite": citation(release.kind, release.method, release.policy_hash),
    }


def described(
    tables: Mapping[str, pa.Table], shape: str, policy: Policy, texts: Mapping[str, pa.Table] | None = None
) -> list[dict[str, Any]]:
    """What the codebook says of every column of the tables, as they are published."""
    return [
        column
        for table, data in tables.items()
        for column in _columns(table, data, shape, policy, (texts or {}).get(table))
    ]


def _columns(table: str, data: pa.Table, shape: str, policy: Policy, texts: pa.Table | None) -> list[dict[str, Any]]:
    """Name, role and type of every column of a table; its hierarchy where the policy names one."""
    out, sensitive = [], next(iter(policy.sensitive), None)
    for name in data.column_names:
        origin = _origin(table, name, policy, sensitive, shape)
        entry: dict[str, Any] = {"table": table, "name": name, "role": _role(origin, name, policy)}
        if origin is not None and origin != name:
            entry["stands_for"] = origin
        if origin is None:
            entry["meaning"] = _OWN.get(name, "")
        spec = policy.columns.get(origin) if origin else None
        entry |= _cells(data.column(name), spec, policy, None if texts is None else texts.column(name))
        out.append(entry)
    return out


def _origin(table: str, name: str, policy: Policy, sensitive: str | None, shape: str) -> str | None:
    """The policy's column that a published one stands for; None for those that Reticent adds."""
    if table == "st":
        return sensitive if name == "value" else None
    if name in policy.columns:
        return name
    head, _, slot = name.rpartition("_")
    return head if shape == "veil" and slot.isdecimal() and head == sensitive else None


def _role(origin: str | None, name: str, policy: Policy) -> str:
    if origin is None:
        return "added"
    return "candidate" if name not in (origin, "value") else policy.columns[origin].role


def _cells(
    column: pa.ChunkedArray, spec: Column | None, policy: Policy, texts: pa.ChunkedArray | None
) -> dict[str, Any]:
    hierarchy = spec.hierarchy if spec is not None else None
    cells = _different(column, texts)
    entry: dict[str, Any] = {"type": type_name(cells, coded=_coded(hierarchy)), "missing": column.null_count}
    if hierarchy is not None:
        entry["hierarchy"] = hierarchy.kind
        entry["nodes"] = _nodes(cells, hierarchy, policy)
    if spec is not None and spec.level:
        entry["level"] = spec.level
    return entry


def _different(column: pa.ChunkedArray, texts: pa.ChunkedArray | None) -> pa.Array | pa.ChunkedArray:
    """Each cell once; of other types than text, whose names tell enough, all."""
    if not pa.types.is_string(column.type):
        return column
    return pc.unique(column) if texts is None or texts.num_chunks != 1 else texts.chunk(0).dictionary


def _coded(hierarchy: HierarchySpec | None) -> bool:
    """Codes are text, also where they are made of digits."""
    return hierarchy is not None and hierarchy.kind not in ("intervals", "dates")


def _labels(cells: pa.Array | pa.ChunkedArray) -> list[str]:
    if pa.types.is_nested(cells.type):
        return []
    return [str(label) for label in pc.unique(cells).to_pylist() if label is not None]


def _nodes(cells: pa.Array | pa.ChunkedArray, hierarchy: HierarchySpec, policy: Policy) -> dict[str, dict[str, Any]]:
    """Node of the hierarchy -> the published labels below it, and how many values it stands for in all where that is known."""
    if hierarchy.kind not in ("file", "tree", "icd9", "icd10"):
        return {}
    tree, labels = _tree(hierarchy, policy), _labels(cells)
    below: dict[str, list[str]] = {}
    for label in labels:
        for node in _above(label, hierarchy, tree):
            below.setdefault(node, []).append(label)
    sizes = {node: size for level in tree.counts for node, size in level.items()} if tree else {}
    names = {*below, *(label for label in labels if label in sizes)} - {_ANY}
    return {
        node: {"below": sorted(below.get(node, [])), "size": sizes.get(node, len(below.get(node, [])))}
        for node in sorted(names)
    }


def _tree(hierarchy: HierarchySpec, policy: Policy) -> Tree | None:
    if hierarchy.kind == "file":
        return read_tree(policy.path(str(hierarchy.file)), column="")
    return tree_from_dict(hierarchy.tree or {}, column="") if hierarchy.kind == "tree" else None


def _above(label: str, hierarchy: HierarchySpec, tree: Tree | None) -> list[str]:
    """The nodes above a label, as far as it is a leaf."""
    if tree is not None:
        return list(tree.path(label) or ())
    labels = {"icd9": icd9_labels, "icd10": icd10_labels}.get(hierarchy.kind, prefix_labels)
    levels = labels([label], hierarchy)
    return [node for (node,) in levels if node is not None and node != label]
