"""The 1/l frequency bound: no sensitive value makes up more than 1/l of a group.

Guarantee: against an attacker who knows a person's quasi-identifiers, is sure of the person's group and holds
    every record of the group equally likely: the person's value is guessed with probability at most 1/l.
Not covered: attackers with other background knowledge (of negated values, of other members, of how groups were
    formed), values that are close in meaning, several releases of the same people.
Cost: O(distinct values) per group.
Reference: X. Xiao, Y. Tao, "Anatomy: simple and effective privacy preservation", VLDB 2006 (Definition 2);
    also (alpha, k)-anonymity, R. Wong et al., KDD 2006, with alpha = 1/l.
Differences from the paper: l may be any number of at least 1, not only a whole one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reticent.errors import PolicyError
from reticent.policy.models.base import Histograms, Model, Number, exact, wide

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class FrequencyL(Model):
    """The most frequent value makes up at most 1/l of the group.

    >>> import numpy as np
    >>> FrequencyL(2).holds(np.array([2, 1, 1])), FrequencyL(2).holds(np.array([3, 1, 1]))
    (True, False)
    """

    l: Number

    def __post_init__(self) -> None:
        if exact(self.l, "l") < 1:
            raise PolicyError("l must be at least 1.", hint="Write for example l: 3.")

    def _holds(self, groups: Histograms) -> NDArray[Any]:
        bound = exact(self.l, "l")
        largest, sizes = groups.largest(), groups.sizes
        return wide(largest, bound.numerator) * bound.numerator <= wide(sizes, bound.denominator) * bound.denominator
