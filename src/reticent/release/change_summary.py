"""Change summary of a generalized release: which columns are unchanged, coarser or suppressed, and why records are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from reticent.policy import Policy
from reticent.release.release import Release

_ROOT = "*"
_LINES = 12
"""Columns with a line of their own; of the others only the names are listed."""
_NEARLY_ALL = 0.995
_MIN_COSTLY_LOSS = 0.3
"""Loss of a column from which the summary gives advice."""


@dataclass(frozen=True)
class ColumnChange:
    """One quasi-identifier: shares of published records with an exact, a coarser or a suppressed cell, and the loss."""

    column: str
    exact: float
    coarser: float
    hidden: float
    loss: float

    @property
    def state(self) -> str:
        """The state of the column: unchanged, coarser or suppressed in all records."""
        if self.hidden >= 1:
            return "suppressed"
        return "kept" if self.exact >= _NEARLY_ALL else "coarser"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return asdict(self) | {"state": self.state}


def column_changes(release: Release, original: pa.Table, policy: Policy) -> list[ColumnChange]:
    """Return the changes of the quasi-identifiers of a generalized release, most changed first; empty for other shapes."""
    if release.shape != "generalized":
        return []
    costs = release.explain.get("attributes", {})
    shifted = {name for name, column in policy.columns.items() if column.transform and column.transform.shift}
    names = [name for name in policy.quasi if name in original.column_names and name not in shifted]
    entries = [
        _column_change(
            name, release.tables["data"].column(name), original.column(name), costs.get(name, {}).get("loss", 0.0)
        )
        for name in names
    ]
    return sorted(entries, key=lambda change: (-change.hidden - change.coarser / 2, change.column))


def _column_change(name: str, published: pa.ChunkedArray, original: pa.ChunkedArray, loss: float) -> ColumnChange:
    labels = published.cast(pa.string())
    rows = max(1, len(labels))
    hidden = pc.sum(pc.equal(labels, _ROOT)).as_py() or 0
    known = pc.is_in(labels, value_set=pc.unique(original.cast(pa.string())))
    exact = pc.sum(pc.and_(known, pc.fill_null(pc.not_equal(labels, _ROOT), fill_value=True))).as_py() or 0
    return ColumnChange(name, exact / rows, (rows - exact - hidden) / rows, hidden / rows, loss)


def describe_changes(release: Release, columns: Sequence[ColumnChange], policy: Policy) -> list[str]:
    """Describe the changes in lines of text."""
    if release.shape == "linked":
        return _describe_tables(release, policy)
    return [
        *_describe_columns(columns, policy),
        *_describe_suppression(release),
        *_describe_search(release.explain),
        *_advice(columns, policy),
    ]


def _describe_columns(columns: Sequence[ColumnChange], policy: Policy) -> list[str]:
    if not columns:
        return []
    lines = ["Columns that were generalized, by share of the released records:"]
    coarser = [change for change in columns if change.state == "coarser"]
    width = max(len(change.column) for change in columns)
    lines += [f"  {change.column:<{width}}  {_describe_shares(change)}" for change in coarser[:_LINES]]
    if coarser[_LINES:]:
        lines.append(
            f"  and {len(coarser) - _LINES} more: {_join_names([change.column for change in coarser[_LINES:]])}"
        )
    lines = lines if coarser else []
    suppressed = [change.column for change in columns if change.state == "suppressed"]
    if suppressed:
        lines.append(f"Suppressed in all records (*): {_join_names(suppressed)}.")
    kept = [change.column for change in columns if change.state == "kept"]
    plain = f"{len(policy.plain)} plain" if policy.plain else ""
    words = " and ".join(filter(None, (_join_names(kept), plain)))
    return [*lines, f"Unchanged: {words}."] if words else lines


def _describe_tables(release: Release, policy: Policy) -> list[str]:
    """Describe linked tables: the rows of each, and the share of suppressed cells of each quasi-identifier."""
    inputs = release.explain.get("input_rows", {})
    rows = ", ".join(f"{table.num_rows:,} of {inputs.get(name, 0):,} {name}" for name, table in release.tables.items())
    lines = [f"Rows: {rows}; the others did not fit a class, or not all persons of the class have as many."]
    hidden = {
        name: table[name].to_pylist().count("*") / table.num_rows
        for table in release.tables.values()
        for name in table.column_names
        if name in policy.quasi and table.num_rows
    }
    shown = [f"{name} {_percent(share)}" for name, share in hidden.items() if share > 0]
    return [*lines, f"Suppressed cells (*): {', '.join(shown)}."] if shown else lines


def _describe_shares(change: ColumnChange) -> str:
    parts = ((change.exact, "exact"), (change.coarser, "coarser"), (change.hidden, "*"))
    return ", ".join(f"{_percent(share)} {word}" for share, word in parts if share > 0)


def _percent(share: float) -> str:
    return "<1%" if share < 0.005 else f"{min(share, 0.99) if share < 1 else 1:.0%}"


def _describe_suppression(release: Release) -> list[str]:
    lost = release.records.suppressed
    if not lost:
        return ["No record was suppressed."]
    chosen, linked = (
        int(release.explain.get("suppressed_further_records", 0)),
        int(release.explain.get("linked_suppressed", 0)),
    )
    reasons = (
        (chosen, "are further records of a person, which the policy excludes"),
        (linked, "would have disclosed other records of the same person"),
        (lost - chosen - linked, "fit in no class that satisfies the policy"),
    )
    why = "; ".join(f"{count:,} {words}" for count, words in reasons if count > 0)
    return [
        f"{lost:,} of {release.records.input:,} records were suppressed ({lost / release.records.input:.1%}): {why}."
    ]


def _describe_search(explain: Mapping[str, Any]) -> list[str]:
    """Describe the loss of each method tried, and a search that stopped early."""
    lines = []
    tried = explain.get("tried", [])
    if len(tried) > 1:
        words = [
            f"{_method_name(entry)} {entry['loss']:.3f}" + (" (stopped)" if entry["stopped"] else "") for entry in tried
        ]
        lines.append(f"Loss of each method tried: {', '.join(words)}.")
    early = explain.get("stopped") or explain.get("optimal") is False
    if early:
        bound = explain.get("bound")
        least = f"; the loss cannot be less than {bound:.3f}" if isinstance(bound, int | float) else ""
        lines.append(
            f"The search stopped at its limit with the best result so far{least}. For more time, set table: {{time_limit: ...}}."
        )
    return lines


def _method_name(entry: Mapping[str, Any]) -> str:
    return (
        str(entry["method"])
        + (" with sets" if entry.get("sets") else "")
        + (" by whole persons" if entry.get("whole_persons") else "")
        + (" with weights" if entry.get("weighed") else "")
    )


def _advice(columns: Sequence[ColumnChange], policy: Policy) -> list[str]:
    """Name the column with the highest loss, and what the user can do."""
    worst = max(columns, key=lambda change: change.loss, default=None)
    if worst is None or worst.loss < _MIN_COSTLY_LOSS or len(columns) < 2:
        return []
    steps = "" if policy.columns[worst.column].hierarchy is not None else "add a hierarchy, or "
    return [f"'{worst.column}' has the highest loss ({worst.loss:.2f}): {steps}give it the role identifier."]


def _join_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LINES} more" if len(names) > _LINES else ""
    return ", ".join(names[:_LINES]) + more
