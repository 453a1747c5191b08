"""The codebook of a release: its columns, how to read them and what may be concluded; and the same as plain text.

The codebook is made from the published tables and the policy. A text column gets the type integer, number or date if all
cells convert without loss.

Guarantee: against an attacker who has the release, the codebook discloses nothing new: it contains only names, roles and
settings of the policy, counts that are in the manifest, and labels that are in the published tables.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from reticent.policy import Policy
from reticent.policy.hierarchy import Tree, tree_of
from reticent.policy.labels import icd9_labels, icd10_labels
from reticent.policy.spec import Column, HierarchySpec
from reticent.release.release import Guarantee, Release
from reticent.release.wording import HOW_TO_READ, MAY_CONCLUDE, MAY_NOT_CONCLUDE, claims_in_words

FORMAT = 1
NAME = "codebook"
_ADDED_COLUMNS = {
    "group": "number of the record's group",
    "count": "how often the value occurs in the group",
    "stratum": "stratum of the prior for the record; veil.json lists the strata",
    "event": "number of the person's earlier events",
    "person": "pseudonym of the person in this publication",
    "visit": "pseudonym of the visit in this publication",
}
_ROOT = "*"
OMISSION_RATE_NOTE = (
    "The omission rate (share of true values that are not among the candidates) is unknown until the stream has run."
)


def with_codebook(release: Release, policy: Policy, texts: Mapping[str, pa.Table] | None = None) -> Release:
    """Return the release with its codebook; `texts` are the same tables with dictionary-encoded text, if available."""
    return replace(release, metadata={**release.metadata, NAME: codebook(release, policy, texts)})


def codebook(release: Release, policy: Policy, texts: Mapping[str, pa.Table] | None = None) -> dict[str, Any]:
    """Return the codebook of a release as plain values."""
    sensitive = next(iter(policy.sensitive), None)
    return {
        "format": FORMAT,
        "kind": release.kind,
        "shape": release.shape,
        "method": release.method,
        "sensitive": sensitive,
        "columns": describe_columns(release.tables, release.shape, policy, texts),
        "records": dict(vars(release.records)),
        "guarantee": _describe_guarantee(release.guarantee),
        "reading": list(HOW_TO_READ[release.shape]),
        "may_be_concluded": list(MAY_CONCLUDE[release.shape]),
        "may_not_be_concluded": list(MAY_NOT_CONCLUDE),
        "cite": citation(release.kind, release.method, release.policy_hash),
    }


def stream_codebook(
    policy: Policy, *, method: str, guarantee: Guarantee, metadata: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the codebook of a stream; it is sent before the first line, so nothing in it depends on a record."""
    book: dict[str, Any] = {
        "type": NAME,
        "kind": "stream",
        "method": method,
        "columns": [describe_stream_column(policy, name) for name in policy.released],
        "guarantee": _describe_guarantee(guarantee),
        "policy": policy.hash,
        **metadata,
    }
    return book | ({"notes": [OMISSION_RATE_NOTE]} if "veil" in metadata else {})


def describe_stream_column(policy: Policy, name: str) -> dict[str, Any]:
    """Return the entry of a column in the codebook of a stream, from the policy alone."""
    column = policy.columns[name]
    entry: dict[str, Any] = {"name": name, "role": column.role}
    if column.role == "quasi":
        entry |= {"level": column.level, "hierarchy": column.hierarchy.kind if column.hierarchy else None}
    return entry


def _describe_guarantee(guarantee: Guarantee) -> dict[str, Any]:
    return {
        "claims": dict(guarantee.claims),
        "words": claims_in_words(guarantee.claims),
        "against": guarantee.against,
        "not_covered": list(guarantee.not_covered),
    }


def describe_columns(
    tables: Mapping[str, pa.Table], shape: str, policy: Policy, texts: Mapping[str, pa.Table] | None = None
) -> list[dict[str, Any]]:
    """Return the codebook entries of all columns of the published tables."""
    return [
        column
        for table, data in tables.items()
        for column in _describe_table_columns(table, data, shape, policy, (texts or {}).get(table))
    ]


def _describe_table_columns(
    table: str, data: pa.Table, shape: str, policy: Policy, texts: pa.Table | None
) -> list[dict[str, Any]]:
    """Return name, role and type of every column of a table, and its hierarchy if the policy has one."""
    out, sensitive = [], next(iter(policy.sensitive), None)
    for name in data.column_names:
        origin = _origin(table, name, policy, sensitive, shape)
        entry: dict[str, Any] = {"table": table, "name": name, "role": _role(origin, name, policy)}
        if origin is not None and origin != name:
            entry["source_column"] = origin
        if origin is None:
            entry["meaning"] = _ADDED_COLUMNS.get(name, "")
        spec = policy.columns.get(origin) if origin else None
        entry |= _describe_cells(data.column(name), spec, policy, None if texts is None else texts.column(name))
        out.append(entry)
    return out


def _origin(table: str, name: str, policy: Policy, sensitive: str | None, shape: str) -> str | None:
    """Return the policy column that a published column represents; None for a column that Reticent adds."""
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


def _describe_cells(
    column: pa.ChunkedArray, spec: Column | None, policy: Policy, texts: pa.ChunkedArray | None
) -> dict[str, Any]:
    hierarchy = spec.hierarchy if spec is not None else None
    cells = _distinct_cells(column, texts)
    entry: dict[str, Any] = {"type": type_name(cells, coded=_is_coded(hierarchy)), "missing": column.null_count}
    if hierarchy is not None:
        entry["hierarchy"] = hierarchy.kind
        entry["nodes"] = _nodes(cells, hierarchy, policy)
    if spec is not None and spec.level:
        entry["level"] = spec.level
    return entry


def _distinct_cells(column: pa.ChunkedArray, texts: pa.ChunkedArray | None) -> pa.Array | pa.ChunkedArray:
    """Return the distinct cells of a text column; other columns unchanged, because their type is known."""
    if not pa.types.is_string(column.type):
        return column
    return pc.unique(column) if texts is None or texts.num_chunks != 1 else texts.chunk(0).dictionary


def _is_coded(hierarchy: HierarchySpec | None) -> bool:
    """Whether the cells are codes, which stay text even if they consist of digits."""
    return hierarchy is not None and hierarchy.kind not in ("intervals", "dates")


def _labels(cells: pa.Array | pa.ChunkedArray) -> list[str]:
    if pa.types.is_nested(cells.type):
        return []
    return [str(label) for label in pc.unique(cells).to_pylist() if label is not None]


def _nodes(cells: pa.Array | pa.ChunkedArray, hierarchy: HierarchySpec, policy: Policy) -> dict[str, dict[str, Any]]:
    """Return, for each hierarchy node, the published labels below it and its number of values, as far as known."""
    if hierarchy.kind not in ("file", "tree", "icd9", "icd10"):
        return {}
    tree, labels = tree_of(hierarchy, policy.base, column=""), _labels(cells)
    below: dict[str, list[str]] = {}
    for label, ancestors in zip(labels, _ancestors(labels, hierarchy, tree), strict=True):
        for node in ancestors:
            below.setdefault(node, []).append(label)
    sizes = {node: size for level in tree.counts for node, size in level.items()} if tree else {}
    names = {*below, *(label for label in labels if label in sizes)} - {_ROOT}
    return {
        node: {"below": sorted(below.get(node, [])), "size": sizes.get(node, len(below.get(node, [])))}
        for node in sorted(names)
    }


def _ancestors(labels: Sequence[str], hierarchy: HierarchySpec, tree: Tree | None) -> list[list[str]]:
    """Return the nodes above each label; an empty list for a label that is not a leaf."""
    if tree is not None:
        return [list(tree.path(label) or ()) for label in labels]
    labels_by_level = icd9_labels if hierarchy.kind == "icd9" else icd10_labels
    paths = zip(*labels_by_level(labels, hierarchy), strict=True)
    return [
        [node for node in path if node is not None and node != label] for label, path in zip(labels, paths, strict=True)
    ]


_TYPES = {"integer": pa.int64(), "number": pa.float64(), "date": pa.date32()}
_SAMPLE = 64
"""Cells that are tested first: most text columns are recognized by them."""


def type_name(column: pa.Array | pa.ChunkedArray, *, coded: bool = False) -> str:
    """Return `integer`, `number`, `date` or `text`; a `coded` column stays text: 01067 is not a number."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if coded or pa.types.is_boolean(kind) or pa.types.is_nested(kind):
        return "text"
    if pa.types.is_integer(kind) and not pa.types.is_uint64(kind):  # uint64 may exceed int64
        return "integer"
    if pa.types.is_floating(kind):
        return "number"
    if pa.types.is_temporal(kind):
        return "date" if pa.types.is_date(kind) else "text"
    if column.null_count == len(column) or _type_of_text(column.slice(0, _SAMPLE)) == "text":
        return "text"
    return _type_of_text(pc.unique(column))


def _type_of_text(cells: pa.Array | pa.ChunkedArray) -> str:
    for name, kind in _TYPES.items():
        try:
            if cells.cast(pa.string()).cast(kind).cast(pa.string()).equals(cells.cast(pa.string())):
                return name
        except pa.ArrowInvalid:
            continue
    return "text"


def apply_types(table: pa.Table, columns: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Convert text columns to the types in the codebook; a column that does not fit stays text."""
    for entry in columns:
        name, kind = entry.get("name"), _TYPES.get(str(entry.get("type")))
        if name not in table.column_names or kind is None or table.column(name).type == kind:
            continue
        at, column = table.column_names.index(name), table.column(name)
        if pa.types.is_floating(column.type):  # via text: float32 0.1 must become 0.1, not 0.10000000149
            column = column.cast(pa.string())
        try:
            table = table.set_column(at, name, column.cast(kind))
        except pa.ArrowInvalid:
            continue
    return table


README = "README.txt"
_WIDTH = 100
KINDS = {"table": "a table", "evolving": "an evolving table", "series": "a series", "stream": "a stream"}


def citation(kind: str, method: str, policy_hash: str) -> str:
    """Return the citation of a release."""
    return f"A release of {KINDS.get(kind, kind)} by the method {method} of Reticent, policy {policy_hash[:12]}."


def readme(codebook: Mapping[str, Any]) -> str:
    """Return the README of a release, made from its codebook."""
    guarantee, records = codebook["guarantee"], codebook["records"]
    parts = [
        f"A release of {KINDS.get(codebook['kind'], codebook['kind'])} by the method {codebook['method']}",
        f"{records['published']:,} records. {records['suppressed']:,} suppressed, {records['withheld']:,} withheld.",
        _section("How to read it", codebook["reading"]),
        _section("Columns", [_describe_entry(entry) for entry in codebook["columns"]]),
        _section("What is guaranteed", [*guarantee["words"], f"against {guarantee['against']}"]),
        _section("What is not covered", guarantee["not_covered"]),
        _section("What may be concluded", codebook["may_be_concluded"]),
        _section("What may not be concluded", codebook["may_not_be_concluded"]),
        _section("How to cite it", [codebook["cite"]]),
        "For programs: codebook.json. To estimate counts: reticent ask FOLDER --value VALUE --where 'age>=60'",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(title: str, lines: Sequence[str]) -> str:
    return "\n".join([title, "-" * len(title), *map(_item, lines)]) if lines else ""


@lru_cache(maxsize=256)  # most lines are the same in every release
def _item(line: str) -> str:
    return textwrap.fill(line, _WIDTH, initial_indent="- ", subsequent_indent="  ")


def _describe_entry(entry: Mapping[str, Any]) -> str:
    words = [f"{entry['table']}: {entry['name']} ({entry['role']}, {entry['type']}"]
    words += [f", hierarchy {entry['hierarchy']}"] if "hierarchy" in entry else []
    words += [f", level {entry['level']}"] if "level" in entry else []
    tail = f" for {entry['source_column']}" if "source_column" in entry else ""
    return "".join(words) + ")" + tail + (f": {entry['meaning']}" if entry.get("meaning") else "")
