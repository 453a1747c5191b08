"""A table as the searches see it: codes, hierarchy levels, and distinct combinations in the native core."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from reticent import _core
from reticent.arrays import Int32s, Int64s, UInt32s
from reticent.encode import EncodedColumns, encode_table
from reticent.engine.table.levels import Levels
from reticent.engine.table.people import People, build_people, people_of
from reticent.errors import PolicyError
from reticent.policy import Policy
from reticent.policy.hierarchy import HierarchyLevels, build_levels_by_column

if TYPE_CHECKING:
    from reticent.engine.table.cuts import Cuts

SensitiveColumn = tuple[Int32s, int, "list[Int32s]"]

IMPORTANT_FACTOR = 4.0
"""Weight of a quasi-identifier that the policy calls important, relative to the others."""
SPAN_PARTS = 1_000_000
"""Numeric spans are passed to the search as whole numbers out of this many parts."""


@dataclass(frozen=True, repr=False)
class EncodedTable:
    """One table, encoded and collapsed.

    Attributes:
        policy: the policy of the release.
        quasi: names of the quasi-identifiers, in the policy's order.
        columns: codes and dictionaries of the columns that the search uses.
        hierarchies: hierarchy levels of the quasi-identifiers.
        collapsed: distinct combinations with sensitive histograms.
        model: the requirements on every class.
        rows: the number of records.
        sensitive: the columns that the model uses, in the core's form; if persons are counted, their pairs.
        people: the persons of the rows; None if every person has one record.
        cancellation: the cancellation token with the limits of the searches.
        emphasis: weights that replace the policy's.
        closed_model: the requirements on a class with all records of its persons, if they differ from `model`.
        linked_k: the number of persons required in every other class.
        small_steps: `linked_k` comes from a pilot run: the search begins there and continues in small steps.
        times: the number of records per row, if the rows were counted before.
        loss_limit: the best loss so far; a search may skip outcomes that lose more.
    """

    policy: Policy
    quasi: tuple[str, ...]
    columns: EncodedColumns
    hierarchies: dict[str, HierarchyLevels]
    collapsed: _core.table.CollapsedTable
    model: _core.table.Model
    rows: int
    sensitive: list[SensitiveColumn]
    people: People | None = None
    cancellation: _core.table.CancellationToken = field(default_factory=_core.table.CancellationToken)
    emphasis: tuple[float, ...] | None = None
    closed_model: _core.table.Model | None = None
    linked_k: int = 0
    small_steps: bool = False
    times: UInt32s | None = None
    loss_limit: float = math.inf

    @classmethod
    def from_table(cls, policy: Policy, table: pa.Table, times: UInt32s | None = None) -> EncodedTable:
        """Encode and collapse a table, or refuse a policy without requirements.

        `times` is the number of records per row if a cluster has counted them already.
        """
        refuse_empty_policy(policy)
        privacy = policy.privacy
        guarded = policy.sensitive if privacy.l is not None or privacy.t is not None else ()
        # A frame that a cluster has counted has only the columns that the model uses.
        present = [name for name in policy.sensitive if name in table.column_names]
        columns = _sort_codes(encode_table(table, [*policy.quasi, *present]), policy.quasi)
        levels = build_levels_by_column(policy, {name: columns.dictionaries[name].values for name in policy.quasi})
        sensitive = [_sensitive(policy, columns, name) for name in guarded]
        people = people_of(table, policy, sensitive, times)
        if people is not None:
            sensitive = [(people.pairs, len(people.owner), [])]
        collapsed = _collapse(policy, columns, levels, sensitive, times)
        rows = table.num_rows if times is None else int(times.sum(dtype=np.int64))
        required = model(policy, people=people)
        return cls(policy, policy.quasi, columns, levels, collapsed, required, rows, sensitive, people, times=times)

    def with_k(self, k: int) -> EncodedTable:
        """Return the same table with another k required of every class."""
        return replace(self, model=model(self.policy, people=self.people, k=k))

    def with_linked_k(self, k: int) -> EncodedTable:
        """Return the same table with k persons required of every class whose persons have records in other classes, too.

        An attacker who links the classes of a person is left with the values that all of them share. Mondrian detects
        classes with all records of their persons; the other searches require k of every class.
        """
        return replace(self.with_k(k), closed_model=self.closed_model or self.model, linked_k=k)

    def take_rows(self, rows: Int64s) -> EncodedTable:
        """Return the table with some of its rows; if persons are counted, `rows` has all rows of its persons."""
        times = None if self.times is None else self.times[rows]
        columns = replace(self.columns, codes={name: codes[rows] for name, codes in self.columns.codes.items()})
        people, sensitive = None, [(codes[rows], width, tree) for codes, width, tree in self.sensitive]
        if self.people is not None:
            persons = np.unique(self.people.persons[rows], return_inverse=True)[1].astype(np.int64)
            values = [(codes[rows], width, tree) for codes, width, tree in self.people.columns]
            people = build_people(persons, values, times)
            sensitive = [(people.pairs, len(people.owner), [])]
        return replace(
            self,
            columns=columns,
            collapsed=_collapse(self.policy, columns, self.hierarchies, sensitive, times),
            model=model(self.policy, people=people),
            rows=len(rows) if times is None else int(times.sum(dtype=np.int64)),
            sensitive=sensitive,
            people=people,
            times=times,
        )

    def split_rows(self, rows: UInt32s, times: UInt32s) -> EncodedTable:
        """Replace the rows of a counted table by parts of rows: the row of each part, and the number of its records."""
        codes = {name: column[rows] for name, column in self.columns.codes.items()}
        sensitive = [(column[rows], width, tree) for column, width, tree in self.sensitive]
        return replace(self, columns=replace(self.columns, codes=codes), sensitive=sensitive, times=times)

    def with_time_share(self, parts: int) -> EncodedTable:
        """Return the same table with the remaining time divided by `parts`."""
        left = self.cancellation.seconds_left
        return replace(self, cancellation=self.cancellation.with_limits(seconds=None if left is None else left / parts))

    @property
    def values(self) -> Int32s | None:
        """Return the codes of the sensitive column if the model uses exactly one and counts records; else None."""
        return self.sensitive[0][0] if len(self.sensitive) == 1 and self.people is None else None

    @property
    def limit(self) -> int:
        """Return the largest number of records that may be suppressed."""
        return self.policy.privacy.may_suppress(self.rows)

    @property
    def lattice_size(self) -> int:
        """Return the exact number of full-domain generalizations."""
        return math.prod(hierarchy.height + 1 for hierarchy in self.hierarchies.values())

    @property
    def weights(self) -> list[float]:
        """Return the weight of each quasi-identifier, 1 by default."""
        if self.emphasis is not None:
            return list(self.emphasis)
        settings = self.policy.table
        for key, names in (("weights", set(settings.weights)), ("important", set(settings.important))):
            if unknown := sorted(names - set(self.quasi)):
                raise PolicyError(
                    f"table.{key} names {', '.join(unknown)}, which is not a quasi-identifier.",
                    hint="Correct the name.",
                )
        base = 1 / IMPORTANT_FACTOR if settings.important else 1.0
        factor = {name: 1.0 if name in settings.important else base for name in self.quasi}
        return [float(settings.weights.get(name, 1.0)) * factor[name] for name in self.quasi]

    @property
    def person_count(self) -> int:
        """Return the number of persons."""
        return self.rows if self.people is None else self.people.count

    def codes(self, name: str) -> Int32s:
        """Return the leaf codes of a column."""
        return self.columns.codes[name]


def _collapse(
    policy: Policy,
    columns: EncodedColumns,
    hierarchies: dict[str, HierarchyLevels],
    sensitive: list[SensitiveColumn],
    times: UInt32s | None,
) -> _core.table.CollapsedTable:
    codes = [columns.codes[name] for name in policy.quasi]
    charges = [node_charges(hierarchies[name], policy.table.loss) for name in policy.quasi]
    return _core.table.CollapsedTable(codes, charges, sensitive, times=times)


def _sort_codes(columns: EncodedColumns, names: Sequence[str]) -> EncodedColumns:
    """Renumber the codes of some columns in the order of their values, so that no search depends on the row order."""
    codes, dictionaries = dict(columns.codes), dict(columns.dictionaries)
    for name in names:
        places = order_values(list(dictionaries[name]))
        if (np.diff(places) < 0).any():
            rank = np.argsort(places).astype(np.int32)
            codes[name], dictionaries[name] = rank[codes[name]], dictionaries[name].reorder(places)
    return replace(columns, codes=codes, dictionaries=dictionaries)


def apply_limits(cancellation: _core.table.CancellationToken, policy: Policy) -> _core.table.CancellationToken:
    """Return the token with the time and memory limits of the policy, starting now."""
    return cancellation.with_limits(seconds=policy.table.time_limit, megabytes=policy.table.memory_limit)


def refuse_empty_policy(policy: Policy) -> None:
    """Refuse a policy without requirements, without quasi-identifiers, or without the sensitive column it needs."""
    privacy = policy.privacy
    if privacy.k is None and privacy.l is None and privacy.t is None and not privacy.overall:
        raise PolicyError("The policy sets no k, l or t.", hint="Write for example privacy: {k: 5}.")
    if not policy.quasi:
        raise PolicyError("The policy has no quasi-identifier.", hint="Give at least one column the role quasi.")
    if not policy.sensitive and (privacy.l is not None or privacy.t is not None):
        raise PolicyError("l and t need a sensitive column.", hint="Give one column the role sensitive.")


def attributes_at_levels(encoded: EncodedTable, levels: Sequence[int | Int64s]) -> dict[str, Levels | Cuts]:
    """Return every quasi-identifier at its level."""
    chosen = zip(encoded.quasi, levels, strict=True)
    return {name: Levels(encoded.hierarchies[name], encoded.codes(name), level) for name, level in chosen}


def model(policy: Policy, *, people: People | None = None, k: int | None = None) -> _core.table.Model:
    """Return the policy's requirements in the core's form, with every number as an exact fraction."""
    privacy = policy.privacy
    l: tuple[str, list[int]] | None = None
    if privacy.l is not None:
        number = _fraction(privacy.l.l)
        if privacy.l.kind == "distinct":
            l = ("distinct", [number.numerator])
        elif privacy.l.kind == "recursive":
            c = _fraction(privacy.l.c or 0)
            l = ("recursive", [c.numerator, c.denominator, number.numerator])
        else:
            l = (privacy.l.kind, [number.numerator, number.denominator])
    t = None
    if privacy.t is not None:
        bound = _fraction(privacy.t.t)
        t = (privacy.t.kind, bound.numerator, bound.denominator)
    persons = None if people is None else people.for_core()
    return _core.table.Model(k=k or privacy.k or 1, l=l, t=t, persons=persons)


def _fraction(number: float) -> Fraction:
    return Fraction(repr(number)) if isinstance(number, float) else Fraction(number)


def node_charges(hierarchy: HierarchyLevels, loss: str) -> tuple[list[Int32s], list[Int64s], int]:
    """Return the nodes of a hierarchy and the charge of each: its leaves, or the span of its values for NCP of numbers."""
    if loss != "ncp" or hierarchy.numeric is None:
        return list(hierarchy.node_ids), list(hierarchy.leaves), hierarchy.size
    numeric = hierarchy.numeric
    known = np.isfinite(numeric)
    width = float(np.ptp(numeric[known])) if known.any() else 0.0
    charges = []
    for table, leaves in zip(hierarchy.node_ids, hierarchy.leaves, strict=True):
        low, high = np.full(len(leaves), np.inf), np.full(len(leaves), -np.inf)
        np.minimum.at(low, table[known], numeric[known])
        np.maximum.at(high, table[known], numeric[known])
        spans = np.where(low > high, 0.0, high - low) / (width or 1.0)
        charges.append(1 + np.rint(spans * SPAN_PARTS).astype(np.int64))
    charges[-1][:] = 1 + SPAN_PARTS
    return list(hierarchy.node_ids), charges, 1 + SPAN_PARTS


def _sensitive(policy: Policy, columns: EncodedColumns, name: str) -> SensitiveColumn:
    """Return a sensitive column with codes in the order of its values, and its hierarchy if the distance needs it."""
    values = columns.dictionaries[name].values
    places = order_values(values.to_pylist())
    rank = np.argsort(places).astype(np.int32)
    tree: list[Int32s] = []
    if policy.privacy.t is not None and policy.privacy.t.kind == "hierarchical":
        tree = [
            np.ascontiguousarray(table[places])
            for table in build_levels_by_column(policy, {name: values})[name].node_ids
        ]
        tree[0] = np.arange(len(places), dtype=np.int32)
    return rank[columns.codes[name]], len(places), tree


def order_values(values: list[Any]) -> Int64s:
    """Return the order of values: numbers by size, other values by their text, a missing value first."""
    try:
        keys = [(value is not None, float(value or 0), "") for value in values]
    except (TypeError, ValueError):
        keys = [(value is not None, 0.0, "" if value is None else str(value)) for value in values]
    return np.array(sorted(range(len(values)), key=keys.__getitem__), dtype=np.int64)
