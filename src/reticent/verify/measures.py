"""The verifier's own arithmetic for l and t, which shares no code with the models of the engines.

Each measure returns one double per group. Groups whose double is too close to the bound are decided again in exact
rationals.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.arrays import Bools, Floats, Int32s, Int64s
from reticent.verify.groups import Groups

_CLOSE = 1e-9  # doubles closer to the bound than this are decided again, exactly


def entropy_l(groups: Groups, bound: Fraction) -> tuple[Floats, Bools]:
    """Return exp(entropy) of each group, and whether it reaches l."""
    share = groups.count / groups.sizes()[groups.group]
    entropy = -np.bincount(groups.group, weights=share * np.log(share), minlength=groups.size)
    exp_entropy, distinct = np.exp(entropy), groups.distinct()
    even = groups.largest() * distinct == groups.sizes()  # then exp(entropy) is the number of values
    gap = np.where(even, np.inf, np.abs(entropy - math.log(bound)))
    holds = np.where(even, distinct >= math.ceil(bound), exp_entropy >= float(bound))
    return exp_entropy, _decide(holds, gap, lambda group: _group_reaches(groups, group, bound))


def recursive_l(groups: Groups, level: int, c: Fraction) -> tuple[Floats, Bools]:
    """Return f1 / (f_l + ... + f_m) of each group, and whether it is below c."""
    order = np.lexsort((-groups.count, groups.group))
    rank = np.arange(len(order)) - np.searchsorted(groups.group, groups.group)
    tail = np.bincount(groups.group, weights=np.where(rank >= level - 1, groups.count[order], 0), minlength=groups.size)
    ratio = np.divide(groups.largest(), tail, out=np.full(groups.size, np.inf), where=tail > 0)
    close = np.abs(ratio - float(c)) / float(c)

    def decide_exactly(group: int) -> bool:
        counts = sorted(groups.counts_of(group), reverse=True)
        return counts[0] < c * sum(counts[level - 1 :])

    return ratio, _decide(ratio < float(c), close, decide_exactly)


def largest_share(groups: Groups, limit: Fraction) -> tuple[Floats, Bools]:
    """Return the largest share of a value in each group, and whether it is within the limit."""
    largest, sizes = groups.largest(), groups.sizes()
    shares = largest / np.maximum(sizes, 1)
    if int(sizes.max(initial=0)) * max(limit.numerator, limit.denominator) < 2**62:
        return shares, largest * limit.denominator <= sizes * limit.numerator
    close = np.abs(shares - float(limit))
    return shares, _decide(shares <= float(limit), close, lambda g: int(largest[g]) <= limit * int(sizes[g]))


@dataclass(frozen=True, eq=False)
class Part:
    """One part of a distance: a weight times the sum of absolute values of sums of (group share - table share).

    Every ground distance used here makes the earth mover's distance such a sum: over single values (equal), over
    all values up to each step (ordered), over the leaves below each node (hierarchical).

    Attributes:
        weight: cost of moving one unit of mass.
        value_order: the values in the order of summation.
        starts: where each sum starts in that order; None for running sums.
    """

    weight: Fraction
    value_order: Int64s
    starts: Int64s | None

    def moved_mass(self, extra: NDArray[Any]) -> NDArray[Any]:
        """Return the sum of absolute sums, per row."""
        sorted_ = extra[:, self.value_order]
        if self.starts is None:
            sums = np.cumsum(sorted_, axis=1)[:, :-1]
        else:
            sums = np.add.reduceat(sorted_, self.starts, axis=1)
        return np.asarray(np.abs(sums).sum(axis=1))


def equal_parts(width: int) -> list[Part]:
    """Equal distance: half the sum of absolute differences."""
    return [Part(Fraction(1, 2), np.arange(width), np.arange(width))]


def ordered_parts(value_order: Int64s) -> list[Part]:
    """Ordered distance: differences of the cumulative shares over the m - 1 steps; `value_order` sorts the values."""
    return [Part(Fraction(1, max(1, len(value_order) - 1)), value_order, None)]


def tree_parts(tables: tuple[Int32s, ...]) -> list[Part]:
    """Hierarchical distance: a tree metric with edges of 1/(2 height); each edge carries its node's imbalance."""
    weight = Fraction(1, 2 * (len(tables) - 1))
    permutations = [np.argsort(table, kind="stable") for table in tables[:-1]]
    return [
        Part(weight, order, np.flatnonzero(np.diff(table[order], prepend=-1)))
        for order, table in zip(permutations, tables, strict=False)
    ]


def distance(
    groups: Groups, reference: Int64s, places: Int64s, parts: list[Part], bound: Fraction
) -> tuple[Floats, Bools]:
    """Return the distance of each group from the reference, and whether it is within t; `places` maps value codes."""
    table = reference / reference.sum()
    out = np.zeros(groups.size)
    for first, shares in groups.iter_shares(len(reference), places):
        for part in parts:
            out[first : first + len(shares)] += part.moved_mass(shares - table) * float(part.weight)

    def decide_exactly(group: int) -> bool:
        extra = _exact_extra(groups, group, reference, places)
        return bool(sum(part.weight * part.moved_mass(extra)[0] for part in parts) <= bound)

    return out, _decide(out <= float(bound), np.abs(out - float(bound)), decide_exactly)


def _decide(holds: Bools, gap: Floats, again: Callable[[int], bool]) -> Bools:
    """Replace the answers that are too close to the bound by exact ones."""
    holds = holds.copy()
    for group in np.flatnonzero(gap < _CLOSE):
        holds[group] = again(int(group))
    return holds


def _exact_extra(groups: Groups, group: int, reference: Int64s, places: Int64s) -> NDArray[Any]:
    first, last = np.searchsorted(groups.group, [group, group + 1])
    size, total = int(groups.count[first:last].sum()), int(reference.sum())
    extra = np.array([[-Fraction(int(count), total) for count in reference]], dtype=object)
    for value, count in zip(groups.value[first:last], groups.count[first:last], strict=True):
        extra[0, places[value]] += Fraction(int(count), size)
    return extra


def _group_reaches(groups: Groups, group: int, bound: Fraction) -> bool:
    counts = groups.counts_of(group)
    shared = math.gcd(*counts)
    return _entropy_reaches(tuple(sorted(count // shared for count in counts)), bound)


@lru_cache(maxsize=4096)
def _entropy_reaches(counts: tuple[int, ...], bound: Fraction) -> bool:
    """Decide n^n >= l^n prod f^f: in whole numbers up to 5,000 records, else with 120 digits."""
    size = sum(counts)
    if size <= 5000:
        spent: int = math.prod(count**count for count in counts)
        return bool((size * bound.denominator) ** size >= bound.numerator**size * spent)
    with localcontext() as context:
        context.prec = 120
        logs = sum((count * Decimal(count).ln() for count in counts), Decimal(0))
        limit = size * (Decimal(bound.numerator) / Decimal(bound.denominator)).ln()
        return size * Decimal(size).ln() - logs - limit >= -(Decimal(10) ** -100)
