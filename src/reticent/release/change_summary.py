"""What a generalised release did to its columns, in a person's words: kept, made coarser, wiped; who was left out, and why."""

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
"""Columns that are listed one by one; the others are named."""
_NEARLY_ALL = 0.995
_MIN_COSTLY_LOSS = 0.3
"""Loss of a column from which it is worth a word."""


@dataclass(frozen=True)
class ColumnChange:
    """One quasi-identifier: shares of the published records that show it exactly, coarser, or not at all; and its loss."""

    column: str
    exact: float
    coarser: float
    hidden: float
    loss: float

    @property
    def state(self) -> str:
        """kept, coarser or wiped."""
        if self.hidden >= 1:
            return "suppressed"
        return "kept" if self.exact >= _NEARLY_ALL else "coarser"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self) | {"state": self.state}


def column_changes(release: Release, original: pa.Table, policy: Policy) -> list[ColumnChange]:
    """The quasi-identifiers of a generalised release, the most damaged first; none for releases that keep them as they are."""
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
    return sorted(entries, key=lambda one: (-one.hidden - one.coarser / 2, one.column))


def _column_change(name: str, published: pa.ChunkedArray, original: pa.ChunkedArray, loss: float) -> ColumnChange:
    labels = published.cast(pa.string())
    rows = max(1, len(labels))
    hidden = pc.sum(pc.equal(labels, _ROOT)).as_py() or 0
    known = pc.is_in(labels, value_set=pc.unique(original.cast(pa.string())))
    exact = pc.sum(pc.and_(known, pc.fill_null(pc.not_equal(labels, _ROOT), fill_value=True))).as_py() or 0
    return ColumnChange(name, exact / rows, (rows - exact - hidden) / rows, hidden / rows, loss)


def describe_changes(release: Release, columns: Sequence[ColumnChange], policy: Policy) -> list[str]:
    """What happened, line by line."""
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
    lines = ["Of the released records, the columns that were made coarser show:"]
    coarser = [one for one in columns if one.state == "coarser"]
    width = max(len(one.column) for one in columns)
    lines += [f"  {one.column:<{width}}  {_describe_shares(one)}" for one in coarser[:_LINES]]
    if coarser[_LINES:]:
        lines.append(f"  and {len(coarser) - _LINES} more: {_join_names([one.column for one in coarser[_LINES:]])}")
    lines = lines if coarser else []
    wiped = [one.column for one in columns if one.state == "suppressed"]
    if wiped:
        lines.append(f"Wiped, every record shows *: {_join_names(wiped)}.")
    kept = [one.column for one in columns if one.state == "kept"]
    plain = f"{len(policy.plain)} plain" if policy.plain else ""
    words = " and ".join(filter(None, (_join_names(kept), plain)))
    return [*lines, f"As they were: {words}."] if words else lines


def _describe_tables(release: Release, policy: Policy) -> list[str]:
    """Of linked tables: rows of each, and how many cells of each quasi-identifier tell nothing."""
    asked = release.explain.get("input_rows", {})
    rows = ", ".join(f"{table.num_rows:,} of {asked.get(name, 0):,} {name}" for name, table in release.tables.items())
    lines = [f"Rows: {rows}; the others are more than all persons of their class have, or had no place."]
    hidden = {
        name: table[name].to_pylist().count("*") / table.num_rows
        for table in release.tables.values()
        for name in table.column_names
        if name in policy.quasi and table.num_rows
    }
    shown = [f"{name} {_percent(share)}" for name, share in hidden.items() if share > 0]
    return [*lines, f"Cells that show *: {', '.join(shown)}."] if shown else lines


def _describe_shares(one: ColumnChange) -> str:
    parts = ((one.exact, "exact"), (one.coarser, "coarser"), (one.hidden, "*"))
    return ", ".join(f"{_percent(share)} {word}" for share, word in parts if share > 0)


def _percent(share: float) -> str:
    return "<1%" if share < 0.005 else f"{min(share, 0.99) if share < 1 else 1:.0%}"


def _describe_suppression(release: Release) -> list[str]:
    lost = release.records.suppressed
    if not lost:
        return ["No record was left out."]
    chosen, linked = (
        int(release.explain.get("suppressed_further_records", 0)),
        int(release.explain.get("linked_suppressed", 0)),
    )
    reasons = (
        (chosen, "are further records of a person, as the policy asks"),
        (linked, "would have told on other records of the same person"),
        (lost - chosen - linked, "fitted in no class that meets the policy"),
    )
    why = "; ".join(f"{count:,} {words}" for count, words in reasons if count > 0)
    return [f"{lost:,} of {release.records.input:,} records were left out ({lost / release.records.input:.1%}): {why}."]


def _describe_search(explain: Mapping[str, Any]) -> list[str]:
    """Where the search ended, and what was tried beside."""
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
        least = f"; no release of this kind loses less than {bound:.3f}" if isinstance(bound, int | float) else ""
        lines.append(
            f"The search stopped at its limit with the best it had{least}. More time: table: {{time_limit: ...}}."
        )
    return lines


def _method_name(entry: Mapping[str, Any]) -> str:
    return (
        str(entry["method"])
        + (" with sets" if entry.get("sets") else "")
        + (" by whole persons" if entry.get("whole_persons") else "")
        + (" weighed" if entry.get("weighed") else "")
    )


def _advice(columns: Sequence[ColumnChange], policy: Policy) -> list[str]:
    """The column that costs most, and what could be done about it."""
    worst = max(columns, key=lambda one: one.loss, default=None)
    if worst is None or worst.loss < _MIN_COSTLY_LOSS or len(columns) < 2:
        return []
    steps = "" if policy.columns[worst.column].hierarchy is not None else "a hierarchy for it, or "
    return [f"'{worst.column}' costs most (loss {worst.loss:.2f}): {steps}the role identifier would spare the others."]


def _join_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LINES} more" if len(names) > _LINES else ""
    return ", ".join(names[:_LINES]) + more
