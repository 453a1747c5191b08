"""How long subscribers can read the released batches of a stream: forever, unless the operator sets a limit.

With a limit, each commit deletes a few batches that are older. A subscriber who requests a deleted batch gets an error
and so never skips a batch unknowingly.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

import sqlalchemy as sa

from reticent.service.problems import ServiceError
from reticent.store import Store, Transaction, schema

_SPACE = "hour"
_HOUR = 3600
# Most batches that one commit deletes: more than it adds, and few enough to be fast.
_MAX_REMOVALS = 8


class Retention:
    """The retention limit of one stream; with `days` None all batches stay."""

    def __init__(self, publisher: str, days: float | None, *, clock: Callable[[], float] = time.time) -> None:
        self._publisher = publisher
        self._seconds = None if days is None else days * 24 * _HOUR
        self._clock = clock
        self.limited = days is not None
        self._hours: deque[tuple[int, int]] = deque()
        self.oldest = 0

    def load(self, store: Store) -> None:
        """Load the oldest batch and the first batch of each hour from the store."""
        table = schema.outbox.c
        (first,) = store.read(sa.select(sa.func.min(table.number)).where(table.publisher == self._publisher))[0]
        self.oldest = 0 if first is None else int(first)
        self._hours = deque(
            sorted((int(hour), int(number)) for hour, number in store.items(self._publisher, _SPACE).items())
        )

    def record_batch(self, tx: Transaction, number: int) -> None:
        """Record the hour of a new batch and delete a few old batches."""
        if self._seconds is None:
            return
        now = self._clock()
        hour = int(now // _HOUR)
        if not self._hours or self._hours[-1][0] < hour:
            # The age of batches before the first recorded hour is unknown: they count as part of that hour.
            first = number if self._hours else self.oldest
            self._hours.append((hour, first))
            tx.put(self._publisher, _SPACE, str(hour), str(first).encode())
        # An hour is deleted when its last batch is too old; the current hour never is.
        while len(self._hours) > 1 and (self._hours[0][0] + 1) * _HOUR + self._seconds <= now:
            tx.delete(self._publisher, _SPACE, str(self._hours.popleft()[0]))
        below = min(self._hours[0][1], self.oldest + _MAX_REMOVALS)
        if below > self.oldest:
            self.oldest = below  # `check` compares it after reading, so it must never lag behind the store
            tx.forget_outbox(self._publisher, below)

    def check(self, cursor: int) -> None:
        """Reject a cursor whose next batch was deleted; call it after reading, since batches may be deleted meanwhile."""
        if cursor + 1 < self.oldest:
            raise ServiceError(
                410,
                "gone",
                f"The batches before number {self.oldest} were deleted by the retention limit.",
                f"Continue with cursor={self.oldest - 1} and get the missing batches from another recipient.",
            )
