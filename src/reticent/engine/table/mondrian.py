"""Mondrian: multidimensional partitioning; each part is cut where the cut reduces the loss most.

Guarantee: every class satisfies the k, l and t of the policy, against an attacker who knows who is in the table and all
    their quasi-identifiers. Strict cuts keep records with equal quasi-identifiers in one class.

Not covered: as `optimal`. The positions of the cuts depend on the data (minimality attack).

Cost: O(n m) per level of cuts for n records and m attributes, in the native core; large parts are cut in parallel, the
largest first. At a limit of the policy the search ends early with the classes it has.

Reference: K. LeFevre, D. DeWitt, R. Ramakrishnan, "Mondrian multidimensional k-anonymity", ICDE 2006.

Differences from the paper: l and t stop a cut, as k does. The best cuts of every attribute are compared by the loss
they save over all attributes. Numbers (with `sets` also dates and codes of one length) are cut between two values.
Values published as sets are cut into frequent and rare values. An attribute with a tree is cut into one child of the
common node and the rest, which stays at the node. A class is published by its smallest interval, set or node.
`cuts: relaxed` halves the records along the attribute with the highest loss. Nothing is suppressed: if the whole table
fails the policy, the release is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from reticent import _core
from reticent.arrays import Floats, Int32s, Int64s
from reticent.engine.table.base import TablePublisher
from reticent.engine.table.cuts import Cuts
from reticent.engine.table.encoded_table import EncodedTable, order_values
from reticent.engine.table.generalized import Outcome, publish
from reticent.engine.table.levels import Levels, common_levels
from reticent.engine.table.method_selection import SearchMethod, loss_scorer, select_method
from reticent.engine.table.people import search_classes
from reticent.engine.table.pilot_run import rank_methods
from reticent.errors import GuaranteeError
from reticent.policy.hierarchy import HierarchyLevels
from reticent.policy.labels import days_of
from reticent.release import Release
from reticent.utility.measures import node_loss

SET_SYMBOLS = frozenset(",{}")
"""Values with these characters are not published as sets: the end of a value would be ambiguous."""


class Mondrian(TablePublisher):
    """Mondrian partitioning of one table."""

    method = "mondrian"

    def release(self, table: pa.Table) -> Release:
        """Cut while every part satisfies the policy, or refuse if the whole table does not satisfy it."""
        encoded = self.encode(table)
        release, self._source_rows = publish(encoded, table, find_classes(encoded), self.rng)
        return release


def find_classes(encoded: EncodedTable) -> Outcome:
    """Find the classes of a table; if persons have several records, try with and without splitting a person's records."""
    if encoded.people is None:
        return search_classes(encoded, cut)
    methods = rank_methods(encoded, [SearchMethod("mondrian", cut), whole_persons(cut)])
    return select_method(encoded, methods, loss_scorer(encoded))[0].outcome


def whole_persons(find: Callable[[EncodedTable], Outcome], *, sets: bool = False) -> SearchMethod:
    """Return a Mondrian search that never splits a person's records: no classes to link, but more loss per record."""
    return SearchMethod(
        "mondrian",
        lambda encoded: find(encoded.with_linked_k(encoded.person_count)),
        sets=sets,
        keeps_persons_whole=True,
    )


@dataclass(frozen=True, repr=False)
class AttributeView:
    """An attribute as Mondrian sees it.

    Attributes:
        axis: the attribute in the core's form.
        values: its distinct values, in the order of the axis.
        value_order: the code of each value.
        ranks: the rank of each row's value.
        scale: the position of each value from 0 to 1, for intervals.
        tree: whether classes are published by nodes of the hierarchy.
        numeric: whether classes are published by intervals; if neither, they are published by sets.
    """

    axis: _core.table.Axis
    values: list[object]
    value_order: Int64s
    ranks: Int32s
    scale: Floats
    tree: bool
    numeric: bool


def cut(encoded: EncodedTable, *, sets: bool | None = None) -> Outcome:
    """Partition a table into classes; `sets` overrides the policy's setting."""
    views, classes = partition(encoded, sets=sets)
    attributes: dict[str, Levels | Cuts] = {}
    for name, view in views.items():
        hierarchy, codes = encoded.hierarchies[name], encoded.codes(name)
        if view.tree:
            attributes[name] = Levels(hierarchy, codes, common_levels(hierarchy, codes, classes))
        else:
            attributes[name] = Cuts(
                _texts(encoded, name, view.value_order),
                view.ranks,
                view.scale,
                classes,
                view.numeric,
                hierarchy.size,
                view.value_order,
                _interval_ends(encoded, name, view.value_order),
            )
    explain = {
        "classes": int(classes.max()) + 1,
        "cuts": encoded.policy.table.cuts,
        "stopped": encoded.cancellation.stopped,
    }
    return Outcome("mondrian", attributes, np.zeros(len(classes), dtype=bool), explain)


def partition(encoded: EncodedTable, *, sets: bool | None = None) -> tuple[dict[str, AttributeView], Int64s]:
    """Return the view of every attribute and the class of each row."""
    settings = encoded.policy.table
    sets = settings.sets if sets is None else sets
    weights = dict(zip(encoded.quasi, encoded.weights, strict=True))
    views = {name: _attribute_view(encoded, name, weights[name], sets=sets) for name in encoded.quasi}
    parts = _core.table.mondrian(
        [view.axis for view in views.values()],
        encoded.sensitive,
        encoded.closed_model or encoded.model,
        relaxed=settings.cuts == "relaxed",
        times=encoded.times,
        linked_k=encoded.linked_k,
        cancellation=encoded.cancellation,
    )
    if not parts.is_valid:
        raise GuaranteeError(
            "Even the whole table as one class does not meet the policy; nothing was published.",
            hint="Lower k or l, or raise t.",
        )
    return views, parts.classes


def _attribute_view(encoded: EncodedTable, name: str, weight: float, *, sets: bool | None) -> AttributeView:
    """Return the view of an attribute: by intervals, by sets, or by its tree."""
    hierarchy, codes = encoded.hierarchies[name], encoded.codes(name)
    words = encoded.columns.dictionaries[name].values.to_pylist()
    spans = bool(sets) and _allows_intervals(encoded, name)
    days = _interval_ends(encoded, name, np.arange(len(words))) if spans else None
    places = (
        order_values(words)
        if days is None
        else np.array(sorted(range(len(words)), key=_date_key(days, words)), dtype=np.int64)
    )
    values = [words[place] for place in places]
    numeric = spans or _is_numeric(values)
    tree = not (spans or _allows_own_values(encoded, name, sets=sets)) if hierarchy.numeric is None else False
    rows, missing = np.argsort(places).astype(np.int32)[codes], values[0] is None
    even = np.arange(len(values)) / max(1, hierarchy.size - 1)
    scale = _scale(values)
    if tree:
        axis = tree_axis(hierarchy, codes, weight)
    elif numeric:
        steps = scale if encoded.policy.table.loss == "ncp" else even
        axis = _core.table.Axis.from_scale(rows, steps, missing=missing, weight=weight)
    else:
        axis = _core.table.Axis.from_set(rows, len(values), hierarchy.size, missing=missing, weight=weight)
    return AttributeView(axis, values, places, rows, scale, tree, numeric)


def tree_axis(hierarchy: HierarchyLevels, codes: Int32s, weight: float) -> _core.table.Axis:
    """Return the core's axis of an attribute that is published by the nodes of its hierarchy."""
    levels = [(t, node_loss(n, hierarchy.size)) for t, n in zip(hierarchy.node_ids, hierarchy.leaves, strict=True)]
    return _core.table.Axis.from_tree(codes, levels, weight=weight)


def _allows_own_values(encoded: EncodedTable, name: str, *, sets: bool | None) -> bool:
    """Return whether a column may be published by intervals or sets of its own values."""
    spec = encoded.policy.columns[name].hierarchy
    values = encoded.columns.dictionaries[name].values.to_pylist()
    if spec is not None and (not sets or spec.kind not in ("file", "tree")):
        return False
    unambiguous = not any(SET_SYMBOLS & set(str(value)) for value in values)
    return _is_numeric(values) or (unambiguous and sets is not False)


def _allows_intervals(encoded: EncodedTable, name: str) -> bool:
    """Return whether a column of dates or codes may be published by intervals, in the order of their texts."""
    spec = encoded.policy.columns[name].hierarchy
    if spec is None or spec.kind not in ("dates", "prefix"):
        return False
    texts = [
        text for text in encoded.columns.dictionaries[name].values.cast(pa.string()).to_pylist() if text is not None
    ]
    if spec.kind == "dates":
        return None not in days_of(texts, spec)
    return len({len(text) for text in texts}) == 1 and not any(SET_SYMBOLS & set(text) for text in texts)


def _interval_ends(encoded: EncodedTable, name: str, value_order: Int64s) -> list[str | None] | None:
    """Return dates in the form of interval ends: without times and with the year first; None for other columns."""
    spec = encoded.policy.columns[name].hierarchy
    return days_of(_texts(encoded, name, value_order), spec) if spec is not None and spec.kind == "dates" else None


def _date_key(days: list[str | None], values: list[object]) -> Callable[[int], tuple[str, str]]:
    """Return a sort key that puts dates in order of time, and a missing date first."""
    return lambda place: (days[place] or "", str(values[place]))


def _texts(encoded: EncodedTable, name: str, value_order: Int64s) -> list[str | None]:
    """Return the values as Arrow writes them, so that an exact cell keeps its written form."""
    texts = encoded.columns.dictionaries[name].values.cast(pa.string())
    return list(texts.take(pa.array(value_order)).to_pylist())


def _is_numeric(values: list[object]) -> bool:
    known = [value for value in values if value is not None]
    try:
        return bool(known) and all(np.isfinite(float(value)) for value in known)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False


def _scale(values: list[object]) -> Floats:
    """Return positions from 0 to 1: by size if all values are numbers, else evenly spaced."""
    if not _is_numeric(values) or values[0] is None:
        return np.linspace(0, 1, len(values))
    numbers = np.array([float(value) for value in values])  # type: ignore[arg-type]
    return np.asarray((numbers - numbers[0]) / ((numbers[-1] - numbers[0]) or 1.0))
