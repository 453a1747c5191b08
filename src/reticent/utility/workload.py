"""A workload of count queries: the error of a recipient's counts.

Each query counts the records with values in a range of each of a few attributes. The recipient assumes that all values
of a generalized cell are equally likely.

Cost: O(records) per query and attribute.
Reference: K. LeFevre, D. DeWitt, R. Ramakrishnan, "Workload-aware anonymization", KDD 2006; X. Xiao, Y. Tao, "Anatomy",
    VLDB 2006, section 6 (relative error of random range-count queries).
Differences from the paper: attributes are drawn by their weights; the divisor of the relative error is at least one
    record in a thousand, so that nearly empty queries do not dominate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from reticent.arrays import Floats, Int32s, Int64s

QUERIES = 200
ATTRIBUTES = 2
SHARE = 0.3
"""Share of an attribute's values that a range covers: two such ranges contain about a tenth of the records."""
FLOOR = 0.001


@dataclass(frozen=True, repr=False)
class Workload:
    """Queries: each maps attributes to the values in its range (1 if in range, by code)."""

    queries: tuple[Mapping[str, Floats], ...]

    @classmethod
    def random(
        cls, value_orders: Mapping[str, Int64s], weights: Sequence[float], generator: np.random.Generator
    ) -> Self:
        """Draw queries from the codes of each attribute in value order; attributes are drawn by their weights."""
        names, shares = list(value_orders), np.asarray(weights) / np.sum(weights)
        count = min(ATTRIBUTES, int((shares > 0).sum()))
        draws = (generator.choice(len(names), count, replace=False, p=shares) for _ in range(QUERIES))
        return cls(tuple({names[at]: _range(value_orders[names[at]], generator) for at in draw} for draw in draws))

    def error(self, true_values: Mapping[str, Int32s], chance: Callable[[str, Floats], Floats]) -> float:
        """Return the mean relative error; `chance` gives the probability that a published record is in a range."""
        rows = len(next(iter(true_values.values())))
        actual, estimate = np.zeros(len(self.queries)), np.zeros(len(self.queries))
        for at, query in enumerate(self.queries):
            actual[at] = np.prod([asked[true_values[name]] for name, asked in query.items()], axis=0).sum()
            estimate[at] = np.prod([chance(name, asked) for name, asked in query.items()], axis=0).sum()
        return float(relative_error(actual, estimate, floor=max(1.0, FLOOR * rows)).mean())


def _range(value_order: Int64s, generator: np.random.Generator) -> Floats:
    size = max(1, round(SHARE * len(value_order)))
    start = int(generator.integers(0, len(value_order) - size + 1))
    asked = np.zeros(len(value_order))
    asked[value_order[start : start + size]] = 1.0
    return asked


def relative_error(true_counts: Floats, estimate: Floats, floor: float = 1.0) -> Floats:
    """Return |estimate - true count| / true count per query; the divisor is at least `floor`."""
    actual = np.asarray(true_counts, dtype=np.float64)
    return np.abs(np.asarray(estimate, dtype=np.float64) - actual) / np.maximum(actual, floor)
