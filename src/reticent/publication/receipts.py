"""Messages that were taken in already, by name: one that is sent again because its answer was lost is answered, not released twice.

The names are stored in the transaction that releases the messages; the latest ones are remembered.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reticent.store import Store, Transaction

_SPACE = "receipt"
# A sender repeats within minutes; this is days of a busy hospital.
_REMEMBERED = 200_000
_FEW = 64


class Receipts:
    """The names of one stream's messages, the oldest first."""

    def __init__(self, store: Store, name: str) -> None:
        self._name = name
        rows = sorted((int(value), key) for key, value in store.items(name, _SPACE).items())
        self._known = OrderedDict((key, number) for number, key in rows)
        self._next = rows[-1][0] + 1 if rows else 0

    def __contains__(self, name: object) -> bool:
        return name in self._known

    def note(self, tx: Transaction, names: Sequence[str]) -> None:
        """Remembers messages within the transaction that releases them, and forgets a few of the oldest."""
        for name in names:
            tx.put(self._name, _SPACE, name, str(self._next).encode())
            self._known[name] = self._next
            self._next += 1
        for _ in range(min(_FEW, max(0, len(self._known) - _REMEMBERED))):
            tx.delete(self._name, _SPACE, self._known.popitem(last=False)[0])
