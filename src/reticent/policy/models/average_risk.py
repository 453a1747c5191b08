"""Average risk: a record is found, over all published records, with at most a given probability on average.

Guarantee: against an attacker who knows the quasi-identifiers of everybody in the release and picks a record of each class at random:
    the share of right picks is at most the threshold in expectation.
Not covered: single records, which may stand alone while others stand in large classes (ask for k beside it); what the records of a
    class have in common.
Cost: O(classes).
Reference: K. El Emam, "Guide to the De-Identification of Personal Health Information", CRC Press 2013 (average re-identification
    risk); the requirement of that name in ARX (F. Prasser et al.).
Differences from the paper: none; where persons have several records, engines count the persons of a class.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from reticent.arrays import Int64s


@dataclass(frozen=True)
class AverageRisk:
    """Classes per record, at most.

    >>> import numpy as np
    >>> AverageRisk(0.2).holds(np.array([9, 1])), AverageRisk(0.1).holds(np.array([9, 1]))
    (True, False)
    """

    threshold: float

    def holds(self, sizes: Int64s) -> bool:
        """Whether classes of these sizes meet it; the mean over records of 1 / size is classes / records."""
        return len(sizes) <= Fraction(repr(self.threshold)) * int(sizes.sum())  # 0.2 is a fifth, as it was written
