"""k-anonymity: every group holds at least k records.

Guarantee: against an attacker who knows a person's quasi-identifiers and that the person is in the release: at
    least k records look alike, so a record is linked to the person with probability at most 1/k.
Not covered: what the k records have in common (a group with one sensitive value discloses it), several releases
    of the same people, and several records of one person in a group (k counts records, not persons).
Cost: O(1) per group, O(entries) for many.
Reference: P. Samarati, "Protecting respondents' identities in microdata release", IEEE TKDE 13(6), 2001;
    L. Sweeney, "k-anonymity: a model for protecting privacy", IJUFKS 10(5), 2002.
Differences from the paper: none. Suppressed records are outside the release and form no group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reticent.policy.models.base import Histograms, Model, whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class KAnonymity(Model):
    """At least k records per group.

    >>> import numpy as np
    >>> KAnonymity(3).holds(np.array([2, 0, 1]))
    True
    """

    k: int

    def __post_init__(self) -> None:
        whole(self.k, "k")

    def _holds(self, groups: Histograms) -> NDArray[np.bool_]:
        return groups.sizes >= self.k
