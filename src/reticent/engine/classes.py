"""Classes of sensitive values: the design behind every sealed mode.

A class is a set of l values (in general a multiset of L slots). A record draws its class from its own value alone, value v
choosing class j with probability proportional to the class's weight. The weights are made so that, under the design prior,
every slot of a class is equally likely to be the true one: P(v | class) = copies of v / slots, whatever else is known.

Guarantee: posterior at most 1/l relative to the design prior, records independent given it, against a reader who knows the
    algorithm, the design, every quasi-identifier and the order of arrival.
Not covered: priors that depend on the quasi-identifiers; readers who know other people's values.
Cost: O(l log n) per class, at most n classes for n values; integers only, so the design is exact.
Reference: the greedy decomposition is ours; the eligibility condition p_v <= 1/l is that of Xiao and Tao, Anatomy, VLDB 2006.

    >>> [(c.values, str(c.weight)) for c in design({0: 2, 1: 1, 2: 1}, 2)]
    [((0, 1), '1/2'), ((0, 2), '1/2')]
"""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING

from reticent.errors import GuaranteeError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Class:
    """One class: its slots as sorted value codes (a value may have several) and the share of records it takes."""

    values: tuple[int, ...]
    weight: Fraction

    def copies(self, value: int) -> int:
        """How many slots hold this value."""
        return self.values.count(value)


def design(prior: Mapping[int, Fraction | int], l: int, *, copies: int = 1) -> tuple[Class, ...]:
    """Splits the prior into classes of `copies * l` slots each, exactly.

    Args:
        prior: weight per value code, counts or fractions, not necessarily summing to one; zero means never in a class.
        l: no value may fill more than one slot in l.
        copies: slots per class divided by l; more slots follow the prior more closely.

    Returns:
        The classes, with weights that sum to one and Σ_j weight_j * copies_j(v) = copies * l * p_v for every value v.

    Raises:
        GuaranteeError: some value has more than one share in l, so that no method can keep its posterior at 1/l.
    """
    shares = _whole(prior)
    total = sum(shares.values())
    _check(shares, total, l)
    slots = copies * l
    base = Counter({v: slots * c // total for v, c in shares.items()})
    rest = {v: slots * c % total for v, c in shares.items()}
    fixed = tuple(base.elements())
    return tuple(
        Class(tuple(sorted((*fixed, *chosen))), Fraction(weight, total))
        for chosen, weight in _decompose(rest, slots - len(fixed), total)
    )


def choices(classes: tuple[Class, ...]) -> dict[int, tuple[tuple[int, Fraction], ...]]:
    """For each value the classes that hold it, with the probability of drawing each; probabilities sum to one."""
    chosen: dict[int, list[tuple[int, Fraction]]] = {}
    for number, entry in enumerate(classes):
        for value, copies in Counter(entry.values).items():
            chosen.setdefault(value, []).append((number, copies * entry.weight))
    return {v: tuple((j, w / sum(x for _, x in ws)) for j, w in ws) for v, ws in chosen.items()}


def _whole(prior: Mapping[int, Fraction | int]) -> dict[int, int]:
    """The prior as whole numbers, so that all arithmetic is exact and quick; zeros are dropped."""
    fractions = {v: Fraction(p) for v, p in prior.items() if p}
    scale = lcm(*(f.denominator for f in fractions.values()))
    return {v: int(f * scale) for v, f in fractions.items()}


def _check(shares: Mapping[int, int], total: int, l: int) -> None:
    if l < 1:
        raise GuaranteeError("l must be at least 1.", hint="Set l in the policy.")
    if any(c < 0 for c in shares.values()):
        raise GuaranteeError("The prior has a negative weight.", hint="Give counts of zero or more.")
    top = max(shares.values(), default=0)
    if top * l > total or not shares:
        most = total // top if top else 0
        raise GuaranteeError(
            f"The design prior has {len(shares)} values and its most frequent one holds more than one share in l = {l}.",
            hint=f"No method can keep a posterior of 1/{l} here; the largest possible l is {most}.",
        )


def _decompose(rest: Mapping[int, int], size: int, total: int) -> list[tuple[tuple[int, ...], int]]:
    """Sets of `size` values whose weights add up to `rest`; every value stays below what remains, so it always ends.

    Each step takes the `size` largest. It gives them as much weight as keeps all of them non-negative and everything
    left out at most the remaining total: one of the two becomes tight, hence at most one step per value.
    """
    if size == 0:
        return [((), total)]
    heap = [(-f, v) for v, f in rest.items() if f]
    heapq.heapify(heap)
    parts, remaining = [], total
    while remaining:
        top = [heapq.heappop(heap) for _ in range(size)]
        outside = -heap[0][0] if heap else 0
        weight = min(-top[-1][0], remaining - outside)
        parts.append((tuple(v for _, v in top), weight))
        remaining -= weight
        for negative, value in top:
            if negative + weight:
                heapq.heappush(heap, (negative + weight, value))
    return parts
