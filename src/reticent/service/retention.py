"""How long the released batches of a stream can be read again: for ever, unless the operator says otherwise.

The server cannot know who still has to read what, so nothing goes by itself. With a limit, batches go once they are older
than that, a few with each commit; a reader who asks for one that is gone is told so and never skips it unknowingly.
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
# Batches that one commit removes at most: more than it adds, and few enough not to be noticed.
_MAX_REMOVALS = 8


class Retention:
    """What is kept of one stream's releases; `days` None keeps all."""

    def __init__(self, publisher: str, days: float | None, *, clock: Callable[[], float] = time.time) -> None:
        self._publisher = publisher
        self._seconds = None if days is None else days * 24 * _HOUR
        self._clock = clock
        self.limited = days is not None
        self._hours: deque[tuple[int, int]] = deque()
        self.oldest = 0

    def load(self, store: Store) -> None:
        """Reads where the store stands: its oldest batch, and the first batch of each hour."""
        table = schema.outbox.c
        (first,) = store.read(sa.select(sa.func.min(table.number)).where(table.publisher == self._publisher))[0]
        self.oldest = 0 if first is None else int(first)
        self._hours = deque(
            sorted((int(hour), int(number)) for hour, number in store.items(self._publisher, _SPACE).items())
        )

    def record_batch(self, tx: Transaction, number: int) -> None:
        """A batch of this number goes into the store: notes its hour, and removes a few that are too old."""
        if self._seconds is None:
            return
        now = self._clock()
        hour = int(now // _HOUR)
        if not self._hours or self._hours[-1][0] < hour:
            # What came before the first hour that was noted counts as of that hour: nobody knows how old it is.
            first = number if self._hours else self.oldest
            self._hours.append((hour, first))
            tx.put(self._publisher, _SPACE, str(hour), str(first).encode())
        # An hour is over for good when its last batch is too old; the one that is running never is.
        while len(self._hours) > 1 and (self._hours[0][0] + 1) * _HOUR + self._seconds <= now:
            tx.delete(self._publisher, _SPACE, str(self._hours.popleft()[0]))
        below = min(self._hours[0][1], self.oldest + _MAX_REMOVALS)
        if below > self.oldest:
            self.oldest = below  # readers look at it after they have read, so it must never lag behind
            tx.forget_outbox(self._publisher, below)

    def check(self, cursor: int) -> None:
        """Refuses a cursor whose next batch is gone; to be asked after reading, for batches go meanwhile."""
        if cursor + 1 < self.oldest:
            raise ServiceError(
                410,
                "gone",
                f"The batches before number {self.oldest} are no longer kept.",
                f"Read on with cursor={self.oldest - 1}, and get what is missing from someone who has read it.",
            )
