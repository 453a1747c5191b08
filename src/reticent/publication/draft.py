"""Drafts: a trial release with its information loss and possible improvements. A draft leaves no trace in a store or ledger."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from reticent.engine import publisher_class
from reticent.errors import GuaranteeError, PolicyError
from reticent.notebook import image_html, table_html
from reticent.policy import Policy
from reticent.publication import table as tables
from reticent.release import Release
from reticent.release.change_summary import ColumnChange, column_changes
from reticent.svg import Bar, bars, standalone

MAX_SECONDS = 10
"""Time limit of the search for each alternative."""


@dataclass(frozen=True)
class Alternative:
    """A change of the policy, and the mean loss before and after it over the columns that both releases have."""

    change: str
    before: float
    after: float
    suppressed: int

    @property
    def sentence(self) -> str:
        """The alternative as a sentence."""
        return f"{self.change}: mean loss {self.after:.3f} instead of {self.before:.3f}, {self.suppressed:,} records suppressed"


@dataclass(frozen=True, repr=False)
class Draft:
    """A verified release that has not been published."""

    release: Release
    columns: list[ColumnChange]
    alternatives: list[Alternative]

    def __repr__(self) -> str:
        columns = "".join(f"\n  {one.column}: {one.state}, loss {one.loss:.3f}" for one in self.columns)
        return f"Draft({self.release!r}){columns}" + "".join(f"\n  {one.sentence}" for one in self.alternatives)

    def _repr_html_(self) -> str:
        head = ("column", "", "exact", "coarser", "hidden", "loss")
        rows = [
            (one.column, one.state, f"{one.exact:.0%}", f"{one.coarser:.0%}", f"{one.hidden:.0%}", f"{one.loss:.3f}")
            for one in self.columns
        ]
        bar = [Bar(one.column, one.loss, f"{one.loss:.3f}") for one in self.columns]
        parts = [table_html(f"Draft by {self.release.method}, not published", head, rows)]
        parts += [image_html(standalone(bars("loss by column", bar)))] if bar else []
        parts += (
            [table_html("What would help", ("",), [(one.sentence,) for one in self.alternatives])]
            if self.alternatives
            else []
        )
        return "".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures of the draft. They contain no cell of the table."""
        release = self.release
        return {
            "method": release.method,
            "policy_hash": release.policy_hash,
            "guarantee": dict(release.guarantee.claims),
            "records": vars(release.records),
            "metrics": dict(release.metrics),
            "columns": [one.to_dict() for one in self.columns],
            "alternatives": [asdict(one) for one in self.alternatives],
        }


def make_draft(table: pa.Table, policy: Policy, *, method: str | None = None, seed: int | None = None) -> Draft:
    """Make and verify a release, and try changes of the policy that may reduce its loss.

    Raises:
        PolicyError: the method is keyed, and a draft would use the key.
        GuaranteeError: the policy cannot be met.
    """
    method = method or policy.table.method
    if publisher_class("table", method).pin_digest(policy):
        raise PolicyError(
            f"The method {method} does not support drafts: a draft would use the secret key of the store.",
            hint="Compare policies with reticent audit --compare.",
        )
    release = tables.publish(table, policy, method=method, seed=seed).release
    columns = column_changes(release, table, policy)
    return Draft(release, columns, _find_alternatives(table, policy, release, columns, method))


def _find_alternatives(
    table: pa.Table, policy: Policy, release: Release, columns: list[ColumnChange], method: str
) -> list[Alternative]:
    """Return the alternatives that lose less: a smaller k, and the release without its costliest column."""
    alternatives = [
        _try_change(table, words, other, policy.base, release, method)
        for words, other in _propose_changes(policy, columns)
    ]
    return [one for one in alternatives if one is not None and one.after < one.before]


def _propose_changes(policy: Policy, columns: list[ColumnChange]) -> list[tuple[str, dict[str, Any]]]:
    """Propose changes of a policy, each in words and as the changed settings."""
    if not columns:
        return []
    plain = policy.to_dict()
    plain["table"] = plain.get("table", {}) | {"time_limit": min(MAX_SECONDS, policy.table.time_limit)}
    changes = []
    if policy.privacy.k is not None and policy.privacy.k > 2:
        k = policy.privacy.k - 1
        changes.append((f"k = {k}", plain | {"privacy": plain["privacy"] | {"k": k}}))
    worst = max(columns, key=lambda one: one.loss).column
    if len(columns) > 1:
        changes.append((f"'{worst}' as identifier", plain | {"columns": plain["columns"] | {worst: "identifier"}}))
    return changes


def _try_change(
    table: pa.Table, change: str, settings: dict[str, Any], base: Path, release: Release, method: str
) -> Alternative | None:
    try:
        other = tables.publish(table, Policy.from_dict(settings, base=base), method=method).release
    except (GuaranteeError, PolicyError):  # another setting may name the dropped column
        return None
    before, after = release.explain.get("attributes", {}), other.explain.get("attributes", {})
    names = before.keys() & after.keys()
    mean = [sum(losses[name]["loss"] for name in names) / max(1, len(names)) for losses in (before, after)]
    return Alternative(change, mean[0], mean[1], other.records.suppressed)
