"""A table as the searches see it: codes, ladders, and distinct combinations in the native core."""

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
"""How much more a quasi-identifier weighs that the policy calls important."""
SPAN_PARTS = 1_000_000
"""Numeric spans are given to the search as whole numbers of this many parts."""


@dataclass(frozen=True, repr=False)
class EncodedTable:
    """One table, encoded and collapsed.

    Attributes:
        columns: codes and dictionaries of the columns that the search looks at.
        quasi: names of the quasi-identifiers, in the policy's order.
        ladders: their hierarchies.
        collapsed: distinct combinations with sensitive histograms.
        model: what every class must satisfy.
        sensitive: the columns the model looks at, in the core's form; where people are counted, their pairs.
        people: who the rows belong to; none where everybody has one record.
        watch: what searches of this table may use.
        emphasis: weights to search by instead of the policy's.
        closed: what a class must satisfy that holds all records of its persons, where others are asked for more.
        apart: persons asked of the others.
        near: `apart` is what some of the persons needed: the search of all begins there and goes on in small steps.
        times: records that each row stands for, where somebody else has counted them.
        below: the loss that is found already; a search may leave out what loses more.
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
        """Encodes and collapses a table; refuses a policy that asks for nothing.

        Where `times` is given, a row stands for that many records: a cluster has counted them already.
        """
        refuse_empty_policy(policy)
        privacy = policy.privacy
        guarded = policy.sensitive if privacy.l is not None or privacy.t is not None else ()
        # A frame that was counted elsewhere brings only the columns that the model looks at.
        present = [name for name in policy.sensitive if name in table.column_names]
        columns = _sort_codes(encode_table(table, [*policy.quasi, *present]), policy.quasi)
        known = build_levels_by_column(policy, {name: columns.dictionaries[name].values for name in policy.quasi})
        sensitive = [_sensitive(policy, columns, name) for name in guarded]
        people = people_of(table, policy, sensitive, times)
        if people is not None:
            sensitive = [(people.pairs, len(people.owner), [])]
        collapsed = _collapse(policy, columns, known, sensitive, times)
        rows = table.num_rows if times is None else int(times.sum(dtype=np.int64))
        asked = model(policy, people=people)
        return cls(policy, policy.quasi, columns, known, collapsed, asked, rows, sensitive, people, times=times)

    def with_k(self, k: int) -> EncodedTable:
        """The same table with more persons asked of every class."""
        return replace(self, model=model(self.policy, people=self.people, k=k))

    def with_linked_k(self, k: int) -> EncodedTable:
        """The same table with more persons asked of every class that some of its persons stand outside of, too.

        What all classes of a person have in common is what a reader who links them is left with; Mondrian can tell the classes that
        are all there is of their persons, the other searches ask more of every class.
        """
        return replace(self.with_k(k), closed_model=self.closed_model or self.model, linked_k=k)

    def take_rows(self, rows: Int64s) -> EncodedTable:
        """The same with some of the rows: where people are counted, all of some persons, who are numbered anew."""
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
        """Parts of the rows of a counted table instead of the rows: which row each is of, how many of its records; collapsed as before."""
        codes = {name: column[rows] for name, column in self.columns.codes.items()}
        sensitive = [(column[rows], width, tree) for column, width, tree in self.sensitive]
        return replace(self, columns=replace(self.columns, codes=codes), sensitive=sensitive, times=times)

    def with_time_share(self, parts: int) -> EncodedTable:
        """The same table with an equal share of the time that is left."""
        left = self.cancellation.seconds_left
        return replace(self, cancellation=self.cancellation.with_limits(seconds=None if left is None else left / parts))

    @property
    def values(self) -> Int32s | None:
        """Codes of the sensitive column, where the model looks at exactly one."""
        return self.sensitive[0][0] if len(self.sensitive) == 1 and self.people is None else None

    @property
    def limit(self) -> int:
        """Most records that may be suppressed."""
        return self.policy.privacy.may_suppress(self.rows)

    @property
    def lattice_size(self) -> int:
        """How many full-domain generalisations there are, exactly."""
        return math.prod(ladder.height + 1 for ladder in self.hierarchies.values())

    @property
    def weights(self) -> list[float]:
        """Importance of each quasi-identifier, 1 by default."""
        if self.emphasis is not None:
            return list(self.emphasis)
        settings = self.policy.table
        for key, names in (("weights", set(settings.weights)), ("important", set(settings.important))):
            if strangers := sorted(names - set(self.quasi)):
                raise PolicyError(
                    f"table.{key} names {', '.join(strangers)}, which is no quasi-identifier.", hint="Correct the name."
                )
        aside = 1 / IMPORTANT_FACTOR if settings.important else 1.0
        factor = {name: 1.0 if name in settings.important else aside for name in self.quasi}
        return [float(settings.weights.get(name, 1.0)) * factor[name] for name in self.quasi]

    @property
    def person_count(self) -> int:
        """How many persons there are, each with a record or more."""
        return self.rows if self.people is None else self.people.count

    def codes(self, name: str) -> Int32s:
        """Leaf codes of a column."""
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
    """The same with the codes of some columns in the order of their values, so that no search follows the order of the rows."""
    codes, dictionaries = dict(columns.codes), dict(columns.dictionaries)
    for name in names:
        places = order_values(list(dictionaries[name]))
        if (np.diff(places) < 0).any():
            rank = np.argsort(places).astype(np.int32)
            codes[name], dictionaries[name] = rank[codes[name]], dictionaries[name].reorder(places)
    return replace(columns, codes=codes, dictionaries=dictionaries)


def apply_limits(cancellation: _core.table.CancellationToken, policy: Policy) -> _core.table.CancellationToken:
    """The same watch with the limits of the policy, from now on."""
    return cancellation.with_limits(seconds=policy.table.time_limit, megabytes=policy.table.memory_limit)


def refuse_empty_policy(policy: Policy) -> None:
    """Refuses a policy that asks for nothing, or names nothing to ask it of."""
    privacy = policy.privacy
    if privacy.k is None and privacy.l is None and privacy.t is None and not privacy.overall:
        raise PolicyError("The policy asks for no k, l or t.", hint="Write for example privacy: {k: 5}.")
    if not policy.quasi:
        raise PolicyError("The policy has no quasi-identifier.", hint="Give at least one column the role quasi.")
    if not policy.sensitive and (privacy.l is not None or privacy.t is not None):
        raise PolicyError("l and t need a sensitive column.", hint="Give one column the role sensitive.")


def attributes_at_levels(encoded: EncodedTable, levels: Sequence[int | Int64s]) -> dict[str, Levels | Cuts]:
    """Every quasi-identifier at its level."""
    chosen = zip(encoded.quasi, levels, strict=True)
    return {name: Levels(encoded.hierarchies[name], encoded.codes(name), level) for name, level in chosen}


def model(policy: Policy, *, people: People | None = None, k: int | None = None) -> _core.table.Model:
    """The policy's requirements in the core's words: every number as an exact fraction."""
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
    """A ladder with what each node is charged: its leaves, or for NCP of numbers the span of its values."""
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
    """A sensitive column with its codes in the order of its values, and its hierarchy where the distance needs it."""
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
    """Numbers by size, other values by their text, a missing value first."""
    try:
        keys = [(value is not None, float(value or 0), "") for value in values]
    except (TypeError, ValueError):
        keys = [(value is not None, 0.0, "" if value is None else str(value)) for value in values]
    return np.array(sorted(range(len(values)), key=keys.__getitem__), dtype=np.int64)
