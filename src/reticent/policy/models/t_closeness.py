"""t-closeness: a group's sensitive distribution lies within distance t of the whole table's.

The distance is the earth mover's distance (EMD) with one of three ground distances:
equal (any two values are 1 apart), ordered (values on a line, neighbours 1/(m-1) apart) and hierarchical
(two values are as far apart as the level of their lowest common ancestor, divided by the height of the tree).

Guarantee: against an attacker who knows the table's overall distribution and a person's group: learning the group
    moves the belief about the person's value by at most t, measured by the chosen distance.
Not covered: identity disclosure (add k), groups that are close overall while a rare value gains much in ratio,
    several releases of the same people.
Cost: equal O(distinct values) per group; ordered and hierarchical O(domain) per group and level.
Reference: N. Li, T. Li, S. Venkatasubramanian, "t-closeness: privacy beyond k-anonymity and l-diversity",
    ICDE 2007, section 4.
Differences from the paper: none in the distances; m counts the values that occur in the table. Distances are
    integers over a common denominator and compared with t as an exact fraction, in 64 bits where that is proved
    to suffice and in unbounded integers elsewhere, so large tables do not overflow. The table is the whole input,
    records later suppressed included.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from reticent.errors import InternalError, PolicyError
from reticent.policy.models.base import _WIDE, Histograms, Model, Number, exact, wide

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_CELLS = 1 << 21  # histograms are spread out this many cells at a time, so memory stays flat


@dataclass(frozen=True)
class _TCloseness(Model):
    """What the three distances share; ``against`` must be called before ``holds``."""

    t: Number
    reference: NDArray[np.int64] | None = field(default=None, compare=False, repr=False)
    tables: tuple[NDArray[np.int32], ...] = field(default=(), compare=False, repr=False)
    order: NDArray[np.int64] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not 0 <= exact(self.t, "t") <= 1:
            raise PolicyError("t must lie between 0 and 1.", hint="Write for example t: 0.2.")

    def against(
        self,
        reference: NDArray[np.int64],
        *,
        tables: Sequence[NDArray[np.int32]] = (),
        order: NDArray[np.int64] | None = None,
    ) -> Self:
        """Bind to the whole table's histogram; ``tables`` is the sensitive ladder, ``order`` the codes sorted."""
        return replace(self, reference=np.asarray(reference, dtype=np.int64), tables=tuple(tables), order=order)

    def distances(self, histograms: NDArray[np.int64] | Histograms) -> NDArray[np.float64]:
        """The distance of each group from the table, rounded to double precision for reports."""
        groups = histograms if isinstance(histograms, Histograms) else Histograms.from_dense(histograms)
        unit = self._unit() * int(self._table().sum())
        return np.asarray(self._moved(groups) / (np.maximum(groups.sizes, 1) * float(unit)), dtype=np.float64)

    def _holds(self, groups: Histograms) -> NDArray[Any]:
        table, bound = self._table(), exact(self.t, "t")
        if groups.width != len(table) or (groups.codes.size and int(table[groups.codes].min()) < 1):
            raise InternalError("A group holds a sensitive value that the reference distribution lacks.")
        allowed = bound.numerator * self._unit() * int(table.sum())
        moved = self._moved(groups)
        spent = (moved if moved.dtype == object else wide(moved, bound.denominator)) * bound.denominator
        return spent <= wide(groups.sizes, allowed) * allowed

    def _moved(self, groups: Histograms) -> NDArray[Any]:
        """EMD of each group times its size, the table's size and ``_unit``: an integer."""
        raise NotImplementedError

    def _unit(self) -> int:
        """The integer that turns ground distances into integers."""
        raise NotImplementedError

    def _table(self) -> NDArray[np.int64]:
        if self.reference is None:
            raise InternalError("A t-closeness model was asked before it was given the table's distribution.")
        return self.reference

    def _numbers(self, groups: Histograms, factor: int) -> type:
        """int64 when no sum in ``_moved`` can leave it, else Python's integers."""
        top = int(groups.sizes.max(initial=0)) * int(self._table().sum()) * factor
        return np.int64 if top < _WIDE else object

    def _extras(self, groups: Histograms, first: int, last: int, kind: type) -> NDArray[Any]:
        """Per group and value: (share in group - share in table) times both sizes."""
        table: NDArray[Any] = self._table().astype(kind)
        counts: NDArray[Any] = groups.dense(first, last).astype(kind)
        sizes: NDArray[Any] = groups.sizes[first:last, None].astype(kind)
        return np.asarray(counts * table.sum() - sizes * table[None, :])

    def _chunks(self, groups: Histograms) -> list[tuple[int, int]]:
        step = max(1, _CELLS // max(1, groups.width))
        return [(first, min(first + step, len(groups))) for first in range(0, len(groups), step)]


@dataclass(frozen=True)
class EqualT(_TCloseness):
    """Half the L1 distance between the distributions is at most t.

    >>> EqualT(0.25).against(np.array([2, 2])).holds(np.array([3, 1]))
    True
    """

    def _unit(self) -> int:
        return 2

    def _moved(self, groups: Histograms) -> NDArray[Any]:
        kind = self._numbers(groups, 4)
        table: NDArray[Any] = self._table().astype(kind)
        sizes: NDArray[Any] = groups.sizes.astype(kind)
        expected = table[groups.codes] * sizes[groups.rows]
        # values absent from the group contribute their expected share; all shares sum to n * N
        present = np.abs(groups.counts.astype(kind) * table.sum() - expected) - expected
        return np.asarray(groups.total(present) + sizes * table.sum())


@dataclass(frozen=True)
class OrderedT(_TCloseness):
    """The mean absolute difference of the cumulative distributions over the m - 1 steps is at most t.

    >>> OrderedT(0.5).against(np.array([1, 1, 1])).holds(np.array([0, 0, 2]))
    True
    """

    def _unit(self) -> int:
        return max(1, int(np.count_nonzero(self._table())) - 1)

    def _moved(self, groups: Histograms) -> NDArray[Any]:
        codes = np.arange(groups.width) if self.order is None else np.asarray(self.order)
        codes = codes[self._table()[codes] > 0]
        kind = self._numbers(groups, max(2, groups.width))
        parts = [
            np.abs(np.cumsum(self._extras(groups, *chunk, kind)[:, codes], axis=1)).sum(axis=1)
            for chunk in self._chunks(groups)
        ]
        return np.concatenate([np.zeros(0, dtype=kind), *parts])


@dataclass(frozen=True)
class HierarchicalT(_TCloseness):
    """The EMD over the sensitive hierarchy is at most t.

    >>> tables = (np.array([0, 1, 2]), np.array([0, 0, 1]), np.array([0, 0, 0]))
    >>> HierarchicalT(0.5).against(np.array([1, 1, 0]), tables=tables).holds(np.array([2, 0, 0]))
    True
    """

    def _unit(self) -> int:
        if len(self.tables) < 2 or np.any(self.tables[-1] != self.tables[-1][:1]):
            raise InternalError("Hierarchical t-closeness needs a hierarchy that ends in one root.")
        return len(self.tables) - 1

    def _moved(self, groups: Histograms) -> NDArray[Any]:
        kind = self._numbers(groups, 2 * self._unit())
        parts = [self._climb(self._extras(groups, *chunk, kind)) for chunk in self._chunks(groups)]
        return np.concatenate([np.zeros(0, dtype=kind), *parts])

    def _climb(self, extras: NDArray[Any]) -> NDArray[Any]:
        """Settle surplus against shortage under each node, level by level; what remains moves up."""
        moved = np.zeros(len(extras), dtype=extras.dtype)
        leaves = np.arange(extras.shape[1])  # one leaf per node of the level below, to find its parent
        for level, table in enumerate(self.tables[1:], start=1):
            parents = table[leaves]
            order = np.argsort(parents, kind="stable")
            starts = np.flatnonzero(np.diff(parents[order], prepend=-1))
            below = extras[:, order]
            surplus = np.add.reduceat(np.maximum(below, 0), starts, axis=1)
            shortage = np.add.reduceat(np.maximum(-below, 0), starts, axis=1)
            moved = moved + level * np.minimum(surplus, shortage).sum(axis=1)
            extras, leaves = surplus - shortage, leaves[order][starts]
        return moved
