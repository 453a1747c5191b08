"""The codebook of a release: what its columns are, how to read them, what may be concluded; and the same as a page of plain text.

Made from what is published, and the policy. A column whose cells are all whole numbers, numbers or dates is one, if nothing is lost by it.

Guarantee: nothing stands in it but names, roles and settings of the policy, counts that the manifest has as well, and labels that are
published in the tables beside it.
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
    "group": "number of the group that a record stands in",
    "count": "how often the value stands in the group",
    "stratum": "row of the prior that the record falls into; veil.json lists them",
    "event": "the person's events before this one",
    "person": "pseudonym of the person in this publication",
    "visit": "pseudonym of the visit in this publication",
}
_ROOT = "*"
OMISSION_RATE_NOTE = (
    "eta: which share of the true values will not be among the candidates is not known before the stream has run"
)


def with_codebook(release: Release, policy: Policy, texts: Mapping[str, pa.Table] | None = None) -> Release:
    """The release with its codebook among the documents; `texts` are the same tables with their texts numbered, where somebody has them."""
    return replace(release, metadata={**release.metadata, NAME: codebook(release, policy, texts)})


def codebook(release: Release, policy: Policy, texts: Mapping[str, pa.Table] | None = None) -> dict[str, Any]:
    """All that a recipient needs to know of a release, as plain values."""
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
    """All that a recipient needs to read the lines of a stream, told before the first of them: nothing in it depends on a record."""
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
    """What the codebook of a stream says of a column: what the policy does."""
    column = policy.columns[name]
    told: dict[str, Any] = {"name": name, "role": column.role}
    if column.role == "quasi":
        told |= {"level": column.level, "hierarchy": column.hierarchy.kind if column.hierarchy else None}
    return told


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
    """What the codebook says of every column of the tables, as they are published."""
    return [
        column
        for table, data in tables.items()
        for column in _describe_table_columns(table, data, shape, policy, (texts or {}).get(table))
    ]


def _describe_table_columns(
    table: str, data: pa.Table, shape: str, policy: Policy, texts: pa.Table | None
) -> list[dict[str, Any]]:
    """Name, role and type of every column of a table; its hierarchy where the policy names one."""
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
    """Each cell once; of other types than text, whose names tell enough, all."""
    if not pa.types.is_string(column.type):
        return column
    return pc.unique(column) if texts is None or texts.num_chunks != 1 else texts.chunk(0).dictionary


def _is_coded(hierarchy: HierarchySpec | None) -> bool:
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
    """Return the nodes above each label; none for a label that is not a leaf."""
    if tree is not None:
        return [list(tree.path(label) or ()) for label in labels]
    labels_by_level = icd9_labels if hierarchy.kind == "icd9" else icd10_labels
    paths = zip(*labels_by_level(labels, hierarchy), strict=True)
    return [
        [node for node in path if node is not None and node != label] for label, path in zip(labels, paths, strict=True)
    ]


_TYPES = {"integer": pa.int64(), "number": pa.float64(), "date": pa.date32()}
_SAMPLE = 64
"""Cells that are looked at before all are: most texts are nothing else."""


def type_name(column: pa.Array | pa.ChunkedArray, *, coded: bool = False) -> str:
    """`integer`, `number`, `date`, or `text`; what is `coded` stays text: 01067 is no number."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if coded or pa.types.is_boolean(kind) or pa.types.is_nested(kind):
        return "text"
    if pa.types.is_integer(kind) and not pa.types.is_uint64(kind):  # whose largest are no numbers of ours
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
    """A table whose text columns have the types that the codebook names; what does not fit stays text."""
    for entry in columns:
        name, kind = entry.get("name"), _TYPES.get(str(entry.get("type")))
        if name not in table.column_names or kind is None or table.column(name).type == kind:
            continue
        at, column = table.column_names.index(name), table.column(name)
        if pa.types.is_floating(column.type):  # 0.1 of 32 bits is 0.1 as it reads, and 0.10000000149 as it is
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
    """How a release is cited."""
    return f"A release of {KINDS.get(kind, kind)} by the method {method} of Reticent, policy {policy_hash[:12]}."


def readme(codebook: Mapping[str, Any]) -> str:
    """The page."""
    guarantee, records = codebook["guarantee"], codebook["records"]
    parts = [
        f"A release of {KINDS.get(codebook['kind'], codebook['kind'])}, made by the method {codebook['method']}",
        f"{records['published']:,} records. {records['suppressed']:,} suppressed, {records['withheld']:,} held back.",
        _section("How to read it", codebook["reading"]),
        _section("Columns", [_describe_entry(entry) for entry in codebook["columns"]]),
        _section("What is promised", [*guarantee["words"], f"against {guarantee['against']}"]),
        _section("What is not covered", guarantee["not_covered"]),
        _section("What may be concluded", codebook["may_be_concluded"]),
        _section("What may not be concluded", codebook["may_not_be_concluded"]),
        _section("How to cite it", [codebook["cite"]]),
        "The same for programs: codebook.json. To ask it: reticent ask FOLDER --value VALUE --where 'age>=60'",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _section(title: str, lines: Sequence[str]) -> str:
    return "\n".join([title, "-" * len(title), *map(_item, lines)]) if lines else ""


@lru_cache(maxsize=256)  # most of them stand on the page of every release
def _item(line: str) -> str:
    return textwrap.fill(line, _WIDTH, initial_indent="- ", subsequent_indent="  ")


def _describe_entry(entry: Mapping[str, Any]) -> str:
    words = [f"{entry['table']}: {entry['name']} ({entry['role']}, {entry['type']}"]
    words += [f", hierarchy {entry['hierarchy']}"] if "hierarchy" in entry else []
    words += [f", level {entry['level']}"] if "level" in entry else []
    tail = f" for {entry['source_column']}" if "source_column" in entry else ""
    return "".join(words) + ")" + tail + (f": {entry['meaning']}" if entry.get("meaning") else "")
