"""A policy in the making: what the visitor has chosen for each column, and the models."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from reticent.errors import PolicyError
from reticent.policy.bundle import Bundle
from reticent.policy.guess import SAMPLE, guess, guess_person
from reticent.policy.hierarchy import ladder
from reticent.policy.spec import HierarchySpec
from reticent.service.shelf import parse
from reticent.service.uploads import head_of

if TYPE_CHECKING:
    from reticent.service.hub import Hub

METHODS = {
    "optimal": "optimal: one level per column, least loss",
    "local": "local: levels differ from group to group",
    "mondrian": "mondrian: cuts the table in halves",
    "anatomy": "anatomy: values as they are, linked by group",
}
_PREVIEWED = 6


@dataclass
class ColumnDraft:
    """One column: role, hierarchy, and why it was guessed so."""

    name: str
    role: str
    why: str
    hierarchy: dict[str, Any] | None
    domain: pa.Array = field(repr=False)

    def preview(self, spec: dict[str, Any] | None) -> list[list[str]]:
        """Some of the column's values, each with what it becomes level by level."""
        values = self.domain.slice(0, 5_000)
        rungs = ladder(HierarchySpec.model_validate(spec) if spec else None, values, column=self.name)
        step = max(1, len(values) // _PREVIEWED)
        picked = range(0, len(values), step)[:_PREVIEWED]
        return [
            [str(rungs.labels[level][int(rungs.tables[level][code])].as_py()) for level in range(rungs.height + 1)]
            for code in picked
        ]


@dataclass
class Draft:
    """The whole policy for one table."""

    table: dict[str, Any]
    columns: list[ColumnDraft]
    person: str | None
    k: int = 5
    l: int = 0
    t: float = 0.0
    suppression: float = 0.02
    method: str = "optimal"
    weights: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, hub: Hub, ident: str) -> Draft:
        """Guessed from a table's first rows."""
        head = head_of(hub.tables.blob(ident), SAMPLE)
        guesses = guess(head)
        columns = [
            ColumnDraft(g.column, g.role, g.why, g.hierarchy, head.column(g.column).unique().drop_null().sort())
            for g in guesses
        ]
        wide = any(g.role == "sensitive" and g.distinct >= 3 for g in guesses)
        return cls(hub.tables.get(ident), columns, guess_person(guesses), l=3 if wide else 0)

    def bundle(self) -> Bundle:
        """As a policy."""
        privacy: dict[str, Any] = {"suppression": round(self.suppression, 4)}
        if self.k > 1 and self.method != "anatomy":
            privacy["k"] = self.k
        if self.l > 1:
            privacy["l"] = self.l
        if self.t > 0 and self.method != "anatomy":
            privacy["t"] = round(self.t, 3)
        columns = {c.name: {"role": c.role} | ({"hierarchy": c.hierarchy} if c.hierarchy else {}) for c in self.columns}
        policy: dict[str, Any] = {"version": 1, "columns": columns, "privacy": privacy}
        if self.person and columns.get(self.person, {}).get("role") == "identifier":
            policy["person"] = self.person
        policy["table"] = {"method": self.method} | ({"weights": self.weights} if self.weights else {})
        return parse(policy)


def parse_spec(kind: str, text: str) -> dict[str, Any] | None:
    """A hierarchy from what was typed: widths, a length, or a tree of `node: leaf, leaf` lines."""
    try:
        match kind:
            case "none":
                return None
            case "intervals":
                return {"intervals": [float(part) for part in text.replace(";", ",").split(",") if part.strip()]}
            case "prefix":
                return {"prefix": int(text)}
            case "dates":
                return {"dates": True}
            case "icd10":
                return {"icd10": True}
            case _:
                return {"tree": _tree(text)}
    except ValueError:
        raise PolicyError("The hierarchy needs numbers here.", hint="Such as 5, 10, 20.") from None


def _tree(text: str) -> dict[str, Any]:
    """`node: leaf, leaf` per line; a node may itself be a leaf of another line, and then hangs below it."""
    lines = [line.partition(":") for line in text.splitlines() if line.strip()]
    below = {node.strip(): [leaf.strip() for leaf in leaves.split(",") if leaf.strip()] for node, _, leaves in lines}
    inner = {leaf for leaves in below.values() for leaf in leaves if leaf in below}

    def grown(node: str, above: tuple[str, ...]) -> Any:
        if node in above:
            raise PolicyError("The tree has a circle.", hint="Give each node one place.")
        if not any(leaf in below for leaf in below[node]):
            return below[node]
        return {leaf: grown(leaf, (*above, node)) if leaf in below else [leaf] for leaf in below[node]}

    return {node: grown(node, ()) for node in below if node not in inner}


def spec_text(spec: dict[str, Any] | None) -> tuple[str, str]:
    """A hierarchy as kind and text, for the editor."""
    if not spec:
        return "none", ""
    kind, value = next(iter(spec.items()))
    if kind == "intervals":
        return kind, ", ".join(f"{step:g}" if isinstance(step, int | float) else str(step) for step in value)
    if kind == "tree":
        return kind, "\n".join(f"{node}: {', '.join(leaves)}" for node, leaves in value.items())
    return kind, str(value) if kind == "prefix" else ""
