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

from fractions import Fraction

from reticent.arrays import Int64s


def keeps_average_risk(sizes: Int64s, threshold: float) -> bool:
    """Whether classes of these sizes keep to a risk; the mean over records of 1 / size is classes / records.

    >>> import numpy as np
    >>> keeps_average_risk(np.array([9, 1]), 0.2), keeps_average_risk(np.array([9, 1]), 0.1)
    (True, False)
    """
    return len(sizes) <= Fraction(repr(threshold)) * int(sizes.sum())  # 0.2 is a fifth, as it was written
