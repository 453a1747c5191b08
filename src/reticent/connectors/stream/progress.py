"""Progress of a running stream for the operator."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Mapping

_EVERY = 0.5
_LAST = 1000


class Progress:
    """Counts records and latencies; prints a status line on a terminal."""

    def __init__(self, *, show: bool | None = None) -> None:
        self._show = sys.stderr.isatty() if show is None else show
        self._start = self._last = time.perf_counter()
        self._latencies: deque[tuple[float, int]] = deque(maxlen=_LAST)
        self.records = 0

    def batch(self, records: int, seconds: float) -> None:
        """Record that a batch is stored, `seconds` after its first byte was read."""
        self.records += records
        self._latencies.append((seconds, records))

    def p99(self) -> float:
        """Return the latency in seconds below which 99 % of the last records stayed."""
        ordered = sorted(self._latencies)
        remaining = 0.99 * sum(records for _, records in ordered)
        for seconds, records in ordered:
            remaining -= records
            if remaining <= 0:
                return seconds
        return 0.0

    def tick(self, figures: Callable[[], Mapping[str, float]], *, final: bool = False) -> None:
        """Print the status line, at most twice a second."""
        now = time.perf_counter()
        if not self._show or (now - self._last < _EVERY and not final):
            return
        self._last, metrics = now, figures()
        rate = self.records / max(now - self._start, 1e-9)
        status = f"{self.records:,} records, {rate:,.0f}/s, p99 {self.p99() * 1e3:.1f} ms"
        if "sau" in metrics:
            status += f", {metrics['open_groups']:,.0f} open groups, SAU {metrics['sau']:.3f} (limit {metrics['sau_limit']:.3f})"
            status += f", forced open {metrics['forced_open_rate']:.3f}"
        elif "persons" in metrics:
            status += f", {metrics['persons']:,.0f} persons"
            if "omission_rate" in metrics:
                status += f", {metrics['omission_rate']:.1%} omission rate"
            if metrics.get("alarm"):
                status += ": the prior no longer fits"
        else:
            status += f", {metrics.get('pending', 0):,.0f} pending"
        sys.stderr.write("\r\x1b[2K" + status + ("\n" if final else ""))
        sys.stderr.flush()
