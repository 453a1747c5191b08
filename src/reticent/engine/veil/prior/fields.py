"""Published fields: what a reader sees of each record, at the published level and at every coarser one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reticent.arrays import Bools, Int32s, Integers
from reticent.engine.veil.domain import MISSING
from reticent.errors import PolicyError
from reticent.policy import Policy
from reticent.policy.hierarchy import ROOT, Ladder, ladder


@dataclass(frozen=True, repr=False)
class Field:
    """One published column.

    Attributes:
        name: of the column.
        codes: per record, its published node.
        levels: per level, from the published one up to the last below `*`: published node -> node of that level.
        labels: per such level, node -> label.
    """

    name: str
    codes: Int32s
    levels: tuple[Int32s, ...]
    labels: tuple[tuple[str, ...], ...]

    def __repr__(self) -> str:
        return f"Field({self.name!r}, {len(self.codes)} records, {len(self.levels)} levels)"

    @property
    def size(self) -> int:
        """Number of published nodes."""
        return len(self.levels[0]) if self.levels else 1

    def matches(self, label: str) -> Bools:
        """Per published node, whether it is the node of this label or lies below it, on whatever level that is."""
        if label == ROOT:
            return np.ones(self.size, dtype=bool)
        out = np.zeros(self.size, dtype=bool)
        for nodes, labels in zip(self.levels, self.labels, strict=True):
            out |= np.isin(nodes, [node for node, name in enumerate(labels) if name == label])
        return out

    def coarser(self) -> Field:
        """The same field, published one level higher up; without levels where that is `*`."""
        if len(self.levels) < 2:
            return Field(self.name, np.zeros_like(self.codes), (), ())
        _, first = np.unique(self.levels[1], return_index=True)
        levels = tuple(nodes[first] for nodes in self.levels[1:])
        return Field(self.name, self.levels[1][self.codes], levels, self.labels[1:])

    def take(self, at: Integers) -> Field:
        """The same field of some of the records."""
        return Field(self.name, self.codes[at], self.levels, self.labels)


def published(table: pa.Table, policy: Policy, columns: Sequence[str]) -> dict[str, Field]:
    """The fields of a table at the levels at which the policy publishes them."""
    return {name: _field(table.column(name), policy, name) for name in columns}


def names(labels: pa.Array) -> tuple[str, ...]:
    """Labels as text, as a release writes them."""
    return tuple(MISSING if label is None else label for label in labels.cast(pa.string()).to_pylist())


def coded(column: pa.ChunkedArray | pa.Array) -> tuple[pa.Array, Int32s]:
    """The distinct values of a column, and the code of each record."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    whole = whole.dictionary_decode() if pa.types.is_dictionary(whole.type) else whole
    values = pc.unique(whole)
    return values, pc.index_in(whole, value_set=values).to_numpy(zero_copy_only=False).astype(np.int32)


def steps(policy: Policy, name: str, values: pa.Array) -> Ladder:
    """The hierarchy of a column over some values."""
    return ladder(policy.columns[name].hierarchy, values, column=name, base=policy.base)


def level_of(policy: Policy, name: str) -> int:
    """The level at which a column is published; 0 is as it is."""
    return policy.columns[name].level


def _field(column: pa.ChunkedArray, policy: Policy, name: str) -> Field:
    values, codes = coded(column)
    rungs = steps(policy, name, values)
    lowest = min(level_of(policy, name), rungs.height)
    at = rungs.tables[lowest]
    _, first = np.unique(at, return_index=True)
    levels = tuple(rungs.tables[level][first] for level in range(lowest, rungs.height))
    labels = tuple(names(rungs.labels[level]) for level in range(lowest, rungs.height))
    return Field(name, at[codes], levels, labels)


def asked_columns(policy: Policy, by: Sequence[str] | None) -> Sequence[str] | None:
    """The columns to condition on, None for a free choice; none at all where relatives share a veil, as `House` asks for.

    Raises:
        PolicyError: the policy names a unit, and columns were asked for.
    """
    if policy.prior is None or policy.prior.unit is None:
        return by
    if by:
        raise PolicyError(
            "prior: a unit and fields do not go together: relatives stand in different rows.",
            hint="Leave --by and prior.by out, or take the unit out.",
        )
    return ()
