"""The gs factor: what a suppressed value weighs against a generalised one, in the measures that count both.

Cost: none of its own.
Reference: F. Prasser et al. (ARX), the factor of that name.
Differences from the paper: none. At 0.5 both weigh 1; below, suppression weighs less, down to nothing at 0; above, generalisation does.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Balance:
    """What each kind of damage weighs, from 0 to 1.

    >>> Balance.of(0.5), Balance.of(0.25).suppressed, Balance.of(1.0).general
    (Balance(general=1.0, suppressed=1.0), 0.5, 0.0)
    """

    general: float = 1.0
    suppressed: float = 1.0

    @classmethod
    def of(cls, factor: float) -> Balance:
        """From the factor of a policy, 0 to 1."""
        return cls(min(1.0, 2.0 - 2.0 * factor), min(1.0, 2.0 * factor))


EVEN = Balance()
