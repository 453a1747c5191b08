"""The utility tree: which attributes a classifier can best do without, by sequential backward selection.

From all attributes down to none: each step evaluates every set with one attribute removed and goes on from the best.
The attributes outside the best set of a (sub)tree form the next batch to generalise. Where time runs out, the attributes that are
left are given up in the order of what their sets scored last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

UNKNOWN = -1.0
"""Stands for the F-measure of a set that was not evaluated: below every other, so that these sets come last, one by one."""


@dataclass(frozen=True)
class UtilityTree:
    """The spine of the tree: nested attribute sets, from all to none, with their F-measures.

    Siblings that were evaluated and not chosen have lower F than the chosen one, so no search ever returns them.
    """

    sets: tuple[tuple[str, ...], ...]
    scores: tuple[float, ...]
    evaluated: int

    @property
    def removal(self) -> tuple[str, ...]:
        """Attributes in the order in which they were given up."""
        pairs = zip(self.sets, self.sets[1:], strict=False)
        return tuple(next(iter(set(larger) - set(smaller))) for larger, smaller in pairs)

    def batches(self) -> list[tuple[str, ...]]:
        """Attributes to generalise, batch after batch: outside the best set, then outside the best set below it, ...

        >>> UtilityTree((("a", "b", "c"), ("a", "b"), ("a",), ()), (0.8, 0.7, 0.75, 0.5), 6).batches()
        [('b', 'c'), ('a',)]
        """
        batches, root = [], 0
        while root + 1 < len(self.sets):
            # Earlier is larger: among equals the larger set wins.
            best = max(range(root + 1, len(self.sets)), key=lambda i: (self.scores[i], -i))
            batches.append(tuple(name for name in self.sets[root] if name not in self.sets[best]))
            root = best
        return batches


def utility_tree(
    attributes: Sequence[str], f_measure: Callable[[tuple[str, ...]], float], late: Callable[[], bool] = lambda: False
) -> UtilityTree:
    """Builds the tree; ties are broken by the order of the attributes. `late` says when time is up."""
    current = tuple(attributes)
    sets, scores, evaluated = [current], [f_measure(current)], 1
    without = dict.fromkeys(current, UNKNOWN)
    while current:
        values: dict[str, float] = {}
        for gone in current:
            if late():
                break
            values[gone] = f_measure(tuple(name for name in current if name != gone))
        evaluated, without = evaluated + len(values), without | values
        whole = len(values) == len(current)
        best = max(current, key=lambda name: (without[name], -current.index(name)))
        current = tuple(name for name in current if name != best)
        sets.append(current)
        scores.append(without[best] if whole else UNKNOWN)
    return UtilityTree(tuple(sets), tuple(scores), evaluated)
