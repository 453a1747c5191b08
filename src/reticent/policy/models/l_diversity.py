"""l-diversity in its three forms: distinct, entropy and recursive (c,l).

Guarantee: against an attacker who knows a person's quasi-identifiers and can rule out l - 2 values:
    distinct: at least l values remain possible in a group, nothing is said about how likely each is;
    entropy: the entropy of the group's values is at least log l, so no value comes close to certainty;
    recursive: the most frequent value does not dominate the rest, also after l - 2 values were ruled out.
Not covered: values close in meaning (similarity), groups whose distribution differs strongly from the table's
    (skewness; see t-closeness), several releases of the same people, attackers who know how groups were formed.
Cost: distinct O(1), entropy O(distinct values), recursive O(d log d) for d distinct values per group.
Reference: A. Machanavajjhala, D. Kifer, J. Gehrke, M. Venkitasubramaniam, "l-diversity: privacy beyond
    k-anonymity", ACM TKDD 1(1), 2007 (distinct l-diversity as named by N. Li et al., ICDE 2007).
Differences from the paper: entropy is compared exactly, so a class on the boundary, such as (2,2,2) with l = 3,
    is accepted where rounding would refuse it; l of the entropy form may be any number of at least 1. Recursive
    diversity also asks for l distinct values, which the strict inequality implies.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent.errors import PolicyError
from reticent.policy.models.base import Histograms, Model, Number, exact, whole, wide

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

# The double-precision sum below is off by far less than this share of n ln n; closer calls are decided exactly.
_DOUBT = 1e-9


@dataclass(frozen=True)
class DistinctL(Model):
    """At least l distinct values per group.

    >>> DistinctL(2).holds(np.array([5, 0, 1]))
    True
    """

    l: int

    def __post_init__(self) -> None:
        whole(self.l, "l")

    def _holds(self, groups: Histograms) -> NDArray[np.bool_]:
        return groups.distinct >= self.l


@dataclass(frozen=True)
class EntropyL(Model):
    """The entropy of the group's values is at least log l.

    >>> EntropyL(3).holds(np.array([2, 2, 2])), EntropyL(3).holds(np.array([3, 2, 2]))
    (True, False)
    """

    l: Number

    def __post_init__(self) -> None:
        if exact(self.l, "l") < 1:
            raise PolicyError("l must be at least 1.", hint="Write for example l: {entropy: 3}.")

    def _holds(self, groups: Histograms) -> NDArray[np.bool_]:
        bound, sizes = exact(self.l, "l"), groups.sizes
        # H >= log l  <=>  n ln n - sum f ln f - n ln l >= 0
        full = sizes * np.log(np.maximum(sizes, 1))
        excess = full - groups.total(groups.counts * np.log(groups.counts)) - sizes * math.log(bound)
        holds = np.asarray(excess >= 0)
        for group in np.flatnonzero(np.abs(excess) <= _DOUBT * (full + 1)):
            counts = groups.counts[groups.starts[group] : groups.starts[group + 1]]
            holds[group] = _entropy_reaches(counts.tolist(), bound)
        return holds


@dataclass(frozen=True)
class RecursiveL(Model):
    """Recursive (c,l): with counts f1 >= f2 >= ..., f1 < c * (f_l + f_{l+1} + ...).

    >>> RecursiveL(2, 2).holds(np.array([3, 1, 1])), RecursiveL(1, 2).holds(np.array([2, 1, 1]))
    (True, False)
    """

    c: Number
    l: int

    def __post_init__(self) -> None:
        whole(self.l, "l")
        if exact(self.c, "c") <= 0:
            raise PolicyError("c must be above 0.", hint="Write for example l: {recursive: [4, 3]}.")

    def _holds(self, groups: Histograms) -> NDArray[Any]:
        ratio, rows = exact(self.c, "c"), groups.rows
        order = np.lexsort((-groups.counts, rows))
        rank = np.arange(len(rows)) - groups.starts[:-1][rows]
        tail = groups.total(np.where(rank >= self.l - 1, groups.counts[order], 0))
        largest = groups.largest()
        below = wide(largest, ratio.denominator) * ratio.denominator < wide(tail, ratio.numerator) * ratio.numerator
        return below & (groups.distinct >= self.l)


def _entropy_reaches(counts: list[int], bound: Fraction) -> bool:
    """Decide n^n >= l^n * prod f^f exactly."""
    shared = math.gcd(*counts)  # a common factor changes neither side of the comparison
    counts = [count // shared for count in counts]
    size = sum(counts)
    if _on_boundary(counts, size, bound):
        return True
    # not equal, so enough digits must tell which is larger
    digits = 40
    while True:
        with localcontext() as context:
            context.prec = digits
            spent = sum((count * Decimal(count).ln() for count in counts), Decimal(0))
            limit = size * (Decimal(bound.numerator).ln() - Decimal(bound.denominator).ln())
            excess = size * Decimal(size).ln() - spent - limit
            if abs(excess) > Decimal(10) ** (12 - digits) * (size * Decimal(size + 1).ln() + 1):
                return excess > 0
        digits *= 2


def _on_boundary(counts: list[int], size: int, bound: Fraction) -> bool:
    """Whether n^n = l^n * prod f^f, by comparing the exponent of every prime."""
    left: dict[int, int] = {}
    terms = [(size, size), (bound.numerator, -size), (bound.denominator, size)]
    for base, times in terms + [(count, -count) for count in counts]:
        for prime, power in _factors(base).items():
            left[prime] = left.get(prime, 0) + power * times
    return not any(left.values())


def _factors(number: int) -> dict[int, int]:
    """The prime factors of a positive integer and their exponents."""
    exponents: dict[int, int] = {}
    prime = 2
    while prime * prime <= number:
        while number % prime == 0:
            exponents[prime] = exponents.get(prime, 0) + 1
            number //= prime
        prime += 1
    if number > 1:
        exponents[number] = exponents.get(number, 0) + 1
    return exponents
