"""m-Invariance: a person's group shows the same m values in every release.

Guarantee: every group has m records with different values, and all groups of a person show the same set of values, so that each
    candidate keeps the share 1/m, against an attacker who knows all releases and every quasi-identifier, person by person.
Not covered: an attacker who knows that values change, and how. A changed value is covered where the person's set contains the new
    one (section I-A.2 of Li and Zhou); other changes are withheld, because no group can show both the old set and the new value.
Cost: O(n log^2 n) in the native core.
Reference: X. Xiao, Y. Tao, "m-invariance: towards privacy preserving re-publication of dynamic datasets", SIGMOD 2007.
Differences from the paper: the phases are those of m-Distinct with candidate update sets of one value, of which m-Invariance is the special
    case; the balancing step finds the least number of counterfeits by flow.
"""

from reticent.engine.series.m_distinct import MDistinct


class MInvariance(MDistinct):
    """Publishes the next release of a table whose records come and go but do not change."""

    method = "m-invariance"
    static_values = True
