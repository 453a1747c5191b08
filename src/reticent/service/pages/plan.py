"""The plan of a table: the policy that the custodian edits, stored until the table is deleted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import yaml

from reticent.errors import PolicyError
from reticent.policy.bundle import Bundle
from reticent.policy.guess import SAMPLE, guess, settings_of
from reticent.policy.hierarchy import build_levels
from reticent.policy.level_proposal import propose_levels
from reticent.policy.spec import HierarchySpec
from reticent.service.documents import now
from reticent.service.hub import Hub
from reticent.service.pages.layout import PageContext, run_or_notify, status_text
from reticent.service.policy_registry import parse_policy
from reticent.service.problems import ServiceError
from reticent.service.routes.common import in_thread
from reticent.service.uploads import head_of

KINDS = {
    "table": "one table, released once",
    "stream": "a stream: each record is released on arrival",
    "evolving": "an evolving table: rows are added, changed and deleted between publications",
    "series": "a series: several releases of the same persons",
}
_MAX_PREVIEW, _HEAD, _MAX_CELLS = 6, 2_000, 4
_STORED_FIELDS = ("settings", "files", "why", "kind", "from_file", "cells")


@dataclass
class Plan:
    """The current policy of one table, its files and the reasons for the guessed roles."""

    table: dict[str, Any]
    settings: dict[str, Any]
    files: dict[str, str] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)
    kind: str = "table"
    from_file: bool = False
    """Whether the policy was uploaded as a file: then the studio proposes no levels."""
    cells: dict[str, str] = field(default_factory=dict)
    """Some distinct values of each column, for the custodian who sets the roles; stored, since reading the table is slow."""

    @classmethod
    def of(cls, hub: Hub, ident: str) -> Plan:
        """Return the stored plan, or guess one from the first rows of the table."""
        table = hub.tables.get(ident)
        try:
            document = hub.plans.get(ident)
        except ServiceError:
            head = head_of(hub.tables.blob(ident), SAMPLE)
            guesses = guess(head)
            why = {item.column: item.why for item in guesses}
            plan = cls(table, settings_of(head, guesses), why=why, cells=_cells(head.slice(0, _HEAD)))
            plan.settings["columns"] = _expand_roles(plan.settings["columns"])
            plan.save(hub)  # a guess takes seconds for a large table
            return plan
        return cls(table, **{name: document[name] for name in _STORED_FIELDS})

    def save(self, hub: Hub) -> None:
        """Store the plan."""
        document = {name: getattr(self, name) for name in _STORED_FIELDS}
        hub.write(lambda tx: hub.plans.put(tx, self.table["id"], document | {"created": now()}))

    @property
    def roles(self) -> dict[str, str]:
        """The role of each column."""
        return {name: column["role"] for name, column in self.settings["columns"].items()}

    def set_role(self, names: list[str], role: str) -> None:
        """Set the role of columns; the person column must stay an identifier."""
        for name in names:
            self.settings["columns"][name]["role"] = role
        if self.roles.get(self.person or "") != "identifier":
            self.person = None

    @property
    def person(self) -> str | None:
        """The column that identifies a person across records."""
        person = self.settings.get("person")
        return person.get("column") if isinstance(person, dict) else person

    @person.setter
    def person(self, name: str | None) -> None:
        if name == self.person:
            return
        self.settings.pop("person", None)
        if name:
            self.settings["person"] = name

    def hierarchy(self, name: str) -> dict[str, Any] | None:
        """Return the hierarchy of a column."""
        spec: dict[str, Any] | None = self.settings["columns"][name].get("hierarchy")
        return spec

    def set_hierarchy(self, names: list[str], spec: dict[str, Any] | None, *, level: int = 0) -> None:
        """Set the hierarchy of columns (None: the value, then *) and the level that the veil publishes."""
        for name in names:
            rest = {
                key: value for key, value in self.settings["columns"][name].items() if key not in ("hierarchy", "level")
            }
            more = ({"hierarchy": spec} if spec else {}) | ({"level": level} if level else {})
            self.settings["columns"][name] = rest | more

    def propose_levels(self, hub: Hub) -> dict[str, int]:
        """Set the veil's level of each column as `reticent init` proposes, unless levels are set already."""
        columns = self.settings["columns"]
        if self.from_file or any("level" in column for column in columns.values()):
            return {}
        rest = {name: value for name, value in self.settings.items() if name != "prior"}
        policy = hub.policy_registry.policy(parse_policy(rest, self.files))
        levels = propose_levels(head_of(hub.tables.blob(self.table["id"]), SAMPLE), policy)
        levels = {name: level for name, level in levels.items() if level}
        for name, level in levels.items():
            columns[name]["level"] = level
        return levels

    def bundle(self, **sections: Any) -> Bundle:
        """Return the policy with some sections replaced."""
        return parse_policy(self.settings | sections, self.files)

    def yaml(self) -> str:
        """Return the policy as a YAML file for the command line."""
        columns = {n: c["role"] if len(c) == 1 else c for n, c in self.settings["columns"].items()}
        return str(yaml.safe_dump(self.settings | {"columns": columns}, sort_keys=False, allow_unicode=True))

    def adopt(self, hub: Hub, text: str, files: dict[str, str]) -> None:
        """Replace the policy by an uploaded one if it fits the table; existing files stay."""
        bundle = parse_policy(text, self.files | files)
        policy = hub.policy_registry.policy(bundle)
        policy.check_columns(self.table["columns"])
        self.settings = dict(bundle.settings) | {"columns": _expand_roles(dict(bundle.settings).get("columns", {}))}
        self.files, self.why = self.files | files, dict.fromkeys(self.why, "from the uploaded policy")
        self.kind = next((kind for kind in KINDS if kind in self.settings), self.kind)
        self.from_file = True


async def load_plan(context: PageContext, table: str) -> Plan | None:
    """Return the plan of a table, or draw an error."""
    plan = await run_or_notify(in_thread(lambda: Plan.of(context.hub, table)))
    if plan is None:
        status_text("There is no such table. Upload one on the page Data.", bad=True)
    return plan


def _expand_roles(columns: dict[str, Any]) -> dict[str, Any]:
    return {name: {"role": column} if isinstance(column, str) else dict(column) for name, column in columns.items()}


def _cells(head: pa.Table) -> dict[str, str]:
    return {
        name: ", ".join(str(value)[:24] for value in head.column(name).unique().drop_null()[:_MAX_CELLS].to_pylist())
        for name in head.column_names
    }


def preview_levels(hub: Hub, ident: str, name: str, spec: dict[str, Any] | None) -> list[list[str]]:
    """Return some values of a column with their labels at each level."""
    domain: pa.Array = head_of(hub.tables.blob(ident), _HEAD).column(name).unique().drop_null().sort()
    levels = build_levels(HierarchySpec.model_validate(spec) if spec else None, domain, column=name)
    step = max(1, len(domain) // _MAX_PREVIEW)
    return [
        [str(levels.labels[level][int(levels.node_ids[level][code])].as_py()) for level in range(levels.height + 1)]
        for code in range(0, len(domain), step)[:_MAX_PREVIEW]
    ]


def parse_spec(kind: str, text: str) -> dict[str, Any] | None:
    """Return the hierarchy of the editor's text: widths, a length, or a tree of `node: leaf, leaf` lines."""
    try:
        match kind:
            case "none":
                return None
            case "intervals":
                return {"intervals": [float(part) for part in text.replace(";", ",").split(",") if part.strip()]}
            case "prefix":
                return {"prefix": int(text)}
            case "dates" | "icd9" | "icd10":
                return {kind: True}
            case _:
                return {"tree": _tree(text)}
    except ValueError:
        raise PolicyError(
            "The details of this hierarchy must be numbers.", hint="Write numbers such as 5, 10, 20."
        ) from None


def _tree(text: str) -> dict[str, Any]:
    """Parse lines of `node: leaf, leaf`; a node that is a leaf of another line becomes its child."""
    lines = [line.partition(":") for line in text.splitlines() if line.strip()]
    below = {node.strip(): [leaf.strip() for leaf in leaves.split(",") if leaf.strip()] for node, _, leaves in lines}
    inner = {leaf for leaves in below.values() for leaf in leaves if leaf in below}

    def build_node(node: str, above: tuple[str, ...]) -> Any:
        if node in above:
            raise PolicyError("The tree has a cycle.", hint="Put each node below one parent only.")
        if not any(leaf in below for leaf in below[node]):
            return below[node]
        return {leaf: build_node(leaf, (*above, node)) if leaf in below else [leaf] for leaf in below[node]}

    return {node: build_node(node, ()) for node in below if node not in inner}


def spec_text(spec: dict[str, Any] | None) -> tuple[str, str]:
    """Return the kind and the text of a hierarchy for the editor."""
    if not spec:
        return "none", ""
    kind, value = next(iter(spec.items()))
    if kind == "intervals":
        return kind, ", ".join(f"{step:g}" if isinstance(step, int | float) else str(step) for step in value)
    if kind == "tree":
        return kind, "\n".join(_lines(value))
    return kind, str(value) if kind == "prefix" else ""


def _lines(tree: dict[str, Any]) -> list[str]:
    """Return the lines of a tree in the format of `_tree`."""
    lines = [f"{node}: {', '.join(below)}" for node, below in tree.items()]
    inner = [part for below in tree.values() if isinstance(below, dict) for part in _lines(below)]
    return lines + [line for line in inner if line.partition(": ")[0] != line.partition(": ")[2]]
