"""Lives: what is remembered of persons who come, go and are corrected, and the event that an arriving record is.

A person's life is its memory under the veil (`core/src/veil/memory.rs`), the code of its last value and its place in the order
of events. It stays when the person's records go: who comes back with the same value shows the same candidates, since another
set would tell that the person was gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from reticent.engine.veil.events import rounds
from reticent.engine.veil.people import Seen
from reticent.errors import DAMAGED, DataError, StateError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from reticent import _core

    Places = npt.NDArray[np.int64]

_HEAD = 8
_LOST = 255


class Arrivals(NamedTuple):
    """Records as the veil sees them, side by side: persons, units, rows of the prior, codes and places in the order of events."""

    persons: npt.NDArray[np.uint64]
    units: npt.NDArray[np.uint64]
    rows: npt.NDArray[np.uint32]
    values: npt.NDArray[np.int32]
    orders: npt.NDArray[np.int64]

    def at(self, which: Places) -> Arrivals:
        """Some of them."""
        return Arrivals(
            self.persons[which], self.units[which], self.rows[which], self.values[which], self.orders[which]
        )


class Lives:
    """Memories by person. Private: a memory says which candidate is true."""

    def __init__(self, veil: _core.veil.Veil, l: int) -> None:
        self._veil = veil
        self.width = _HEAD + 2 * l
        """Bytes of a memory."""
        self._life = np.dtype([("memory", np.uint8, self.width), ("value", "<i4"), ("order", "<i8")])
        self._of: dict[int, bytes] = {}

    def __len__(self) -> int:
        return len(self._of)

    def __contains__(self, person: int) -> bool:
        return person in self._of

    def __repr__(self) -> str:
        return f"Lives({len(self)})"

    def refuse_early(self, records: Arrivals) -> None:
        """Refuses records that lie before the last one of their person: what came after them is published."""
        known = np.flatnonzero([int(person) in self._of for person in records.persons])
        lives = self._read(records.persons[known])
        early = int(np.count_nonzero(records.orders[known] < lives["order"]))
        if early:
            raise DataError(
                f"{early:,} records lie before the last known one of their person; nothing was changed.",
                hint="Insert the records of a person in the order of the column that person.events names.",
            )

    def arrive(self, records: Arrivals) -> npt.NDArray[np.uint8]:
        """Each record as an event of its person, in the order of the records; the memories after it."""
        memories = np.zeros((len(records.persons), self.width), dtype=np.uint8)
        for which in _rounds(records):
            some = records.at(which)
            known = np.array([int(person) in self._of for person in some.persons], dtype=bool)
            self._begin(some.at(np.flatnonzero(~known)))
            old = some.at(np.flatnonzero(known))
            lives = self._read(old.persons)
            later, other = old.orders > lives["order"], old.values != lives["value"]
            self._step(old.at(np.flatnonzero(later)), "visit")
            # The same place in the order is the same fact: its value is unchanged, or was corrected.
            self._step(old.at(np.flatnonzero(~later & other)), "correction")
            memories[which] = self._read(some.persons)["memory"]
        return memories

    def correct(self, records: Arrivals) -> npt.NDArray[np.uint8]:
        """Records of known persons whose value is another one now; the memories after it."""
        last = self._read(records.persons)["order"]
        return self.arrive(records._replace(orders=last))

    def latest(self, persons: npt.NDArray[np.uint64], shown: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
        """Which of the records that show these memories are the last ones of their persons."""
        flags: npt.NDArray[np.bool_] = (self._read(persons)["memory"] == shown).all(axis=1)
        return flags

    def _begin(self, some: Arrivals) -> None:
        if len(some.persons):
            self._write(some, self._veil.begin(some.units, some.rows, some.values).memories)

    def _step(self, some: Arrivals, kind: Literal["visit", "correction"]) -> None:
        if len(some.persons):
            memories = np.ascontiguousarray(self._read(some.persons)["memory"])
            self._write(some, self._veil.step(some.units, memories, some.values, kind=kind).memories)

    def _read(self, persons: npt.NDArray[np.uint64]) -> npt.NDArray[np.void]:
        return np.frombuffer(b"".join([self._of[int(person)] for person in persons]), dtype=self._life)

    def _write(self, some: Arrivals, memories: npt.NDArray[np.uint8]) -> None:
        lives = np.zeros(len(some.persons), dtype=self._life)
        lives["memory"], lives["value"], lives["order"] = memories, some.values, some.orders
        self._of.update(zip(some.persons.tolist(), map(np.void.tobytes, lives), strict=True))

    def load(self, lives: Mapping[int, bytes]) -> None:
        """Takes up what `of` gave."""
        if any(len(life) != self._life.itemsize for life in lives.values()):
            raise StateError("The memory of a person is damaged.", hint=DAMAGED)
        self._of.update(lives)

    def of(self, persons: npt.NDArray[np.uint64] | None = None) -> dict[int, bytes]:
        """The lives of some persons, or of all that are in memory."""
        return dict(self._of) if persons is None else {person: self._of[person] for person in persons.tolist()}


def seen(memories: npt.NDArray[np.uint8]) -> Seen:
    """What memories show: candidates in canonical order, row and event; and whether the truth is among them."""
    slots = np.ascontiguousarray(memories[:, _HEAD:]).view("<u2")
    rows = np.ascontiguousarray(memories[:, :2]).view("<u2").reshape(-1)
    events = np.ascontiguousarray(memories[:, 2:6]).view("<u4").reshape(-1)
    return Seen(np.sort(slots, axis=1), rows.astype(np.uint32), events.astype(np.uint32), memories[:, 6] != _LOST)


def _rounds(records: Arrivals) -> Iterator[Places]:
    """Parts in which every person, and every unit, stands once; a person's records in their order."""
    for some in rounds(records.persons):
        for part in rounds(records.units[some]):
            yield some[part]
