"""Rate limits: a bucket of allowances per caller that fills as time passes."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

_CALLERS = 10_000


class Rate:
    """Allows `rate` calls per second and caller, and bursts of two seconds' worth."""

    def __init__(self, rate: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = max(2 * rate, 1.0)
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allows(self, caller: str) -> bool:
        """Whether the caller may go on; counts the call if so."""
        left = self._now(caller)
        if left < 1:
            return False
        self._left[caller] = (left - 1, self._clock())
        self._left.move_to_end(caller)
        if len(self._left) > _CALLERS:
            self._left.popitem(last=False)
        return True

    def _now(self, caller: str) -> float:
        left, at = self._left.get(caller, (self._burst, self._clock()))
        return min(self._burst, left + (self._clock() - at) * self._rate)
