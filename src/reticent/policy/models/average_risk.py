"""Average risk: the average probability of re-identifying a published record is at most a given threshold.

Guarantee: against an attacker who knows the quasi-identifiers of everybody in the release and picks a record of the
    matching class at random: the expected share of correct picks is at most the threshold.
Not covered: single records, which may be unique while others are in large classes (also require k); sensitive values
    that the records of a class share.
Cost: O(classes).
Reference: K. El Emam, "Guide to the De-Identification of Personal Health Information", CRC Press 2013 (average re-identification
    risk); the requirement of that name in ARX (F. Prasser et al.).
Differences from the paper: none; if persons have several records, engines count the persons of a class.
"""

from __future__ import annotations

from fractions import Fraction

from reticent.arrays import Int64s


def keeps_average_risk(sizes: Int64s, threshold: float) -> bool:
    """Whether classes of these sizes keep the threshold; the mean of 1 / size over records is classes / records.

    >>> import numpy as np
    >>> keeps_average_risk(np.array([9, 1]), 0.2), keeps_average_risk(np.array([9, 1]), 0.1)
    (True, False)
    """
    return len(sizes) <= Fraction(repr(threshold)) * int(sizes.sum())  # exact decimal: 0.2 is one fifth
