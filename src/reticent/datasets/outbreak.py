"""An outbreak in the middle of a feed: one diagnosis rises, stays high for some weeks and falls again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.datasets.illnesses import VALUES
from reticent.errors import PolicyError

FACTOR = 6.5
"""How many times as likely the diagnosis is at the height. Relatives and returning persons follow less than in proportion:
about six times as frequent among all."""

_LONGEST = 50_400  # six weeks of 1,200 admissions a day
_RAMP = 0.2  # of the outbreak, to rise and again to fall


@dataclass(frozen=True)
class Outbreak:
    """Which diagnosis breaks out, and from which row to before which."""

    value: str
    first: int
    last: int

    def __post_init__(self) -> None:
        """Refuses a diagnosis that the feed does not have."""
        if self.value not in VALUES:
            raise PolicyError("The feed has no such diagnosis.", hint=f"Choose one of: {', '.join(VALUES)}.")

    @classmethod
    def amid(cls, n: int, value: str = "influenza") -> Outbreak:
        """The outbreak of a feed of ``n`` rows: its middle third, at most six weeks.

        >>> Outbreak.amid(90_000)
        Outbreak(value='influenza', first=30000, last=60000)
        """
        length = min(n // 3, _LONGEST)
        first = (n - length) // 2
        return cls(value, first, first + length)

    def strength(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """How many times as likely the diagnosis is at each row: 1 outside, ``FACTOR`` at the height."""
        part = (rows - self.first) / max(1, self.last - self.first)
        return np.asarray(1 + (FACTOR - 1) * np.clip(np.minimum(part, 1 - part) / _RAMP, 0, 1))
