"""Throughput and latency over the last seconds."""

from __future__ import annotations

import time
from collections import deque

_SPAN = 10.0


class Meter:
    """Counts rows and times of batches; `read` looks back ten seconds."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._seen: deque[tuple[float, int, float]] = deque(maxlen=20_000)
        self.rows = 0
        self.batches = 0

    def add(self, rows: int, seconds: float) -> None:
        """A batch is on disk, so many seconds after it came in."""
        self._seen.append((time.monotonic(), rows, seconds))
        self.rows += rows
        self.batches += 1

    def read(self) -> dict[str, float]:
        """Rows per second, and the median and the 99th percentile of the latency in milliseconds."""
        now = time.monotonic()
        recent = [(rows, seconds) for at, rows, seconds in tuple(self._seen) if at > now - _SPAN]
        times = sorted(seconds for _, seconds in recent)
        span = max(min(_SPAN, now - self._began), 1e-3)
        return {
            "rows_per_second": sum(rows for rows, _ in recent) / span,
            "median_ms": 1e3 * times[len(times) // 2] if times else 0.0,
            "p99_ms": 1e3 * times[min(len(times) - 1, int(0.99 * len(times)))] if times else 0.0,
        }
