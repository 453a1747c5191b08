"""Lives: what is remembered of persons who come, go and are corrected, and the event that an arriving record is.

A person's life is its memory under the veil (`core/src/veil/memory.rs`), the code of its last value, its place in the order of
events and the number of publications before it. It stays when the person's records go: who comes back with the same value shows
the same candidates, since another set would tell that the person was gone.

What was never published did not happen. A value that is corrected before anybody saw it is made again from the life before it, and
one that is back at what readers know moves nothing: two steps would show two sets that have the truth in common. Events whose records
go before anybody saw them are left out of those that came after them, and a first sight that nobody saw is that of the record's fields
as they are now.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from reticent.arrays import Bools, Int32s, Int64s, UInt8s, UInt32s, UInt64s
from reticent.engine.veil.batch_veiler import VeiledEvents
from reticent.engine.veil.events import iter_rounds
from reticent.engine.veil.transition_check import HEADER_BYTES, OMITTED
from reticent.errors import CORRUPT_HINT, DataError, StateError

if TYPE_CHECKING:
    from reticent import _core


_PUBLISHED = 2**32 - 1
"""In the place of a number of publications: readers know the event."""


class Arrivals(NamedTuple):
    """Records as the veil sees them, side by side: persons, units, rows of the prior, codes and places in the order of events."""

    persons: UInt64s
    households: UInt64s
    strata: UInt32s
    values: Int32s
    positions: Int64s

    def take(self, which: Int64s) -> Arrivals:
        """Some of them."""
        return Arrivals(
            self.persons[which], self.households[which], self.strata[which], self.values[which], self.positions[which]
        )


class PersonStates:
    """Memories by person. Private: a memory says which candidate is true."""

    def __init__(self, veil: _core.veil.Veil, l: int, *, visits: bool = True) -> None:
        """Under a veil with l candidates.

        A later place in the order is one of several `visits`; or one record of each person is kept, and a later one is the same fact,
        unchanged or corrected.
        """
        self._veil, self._visits = veil, visits
        self.width = HEADER_BYTES + 2 * l
        """Bytes of a memory."""
        self._state_type = np.dtype(
            [("memory", np.uint8, self.width), ("value", "<i4"), ("order", "<i8"), ("since", "<u4")]
        )
        self._states: dict[int, bytes] = {}
        self._previous: dict[int, bytes] = {}
        """The lives before the last event, the nearest first, back to the last one that readers know."""

    def __len__(self) -> int:
        return len(self._states)

    def __contains__(self, person: int) -> bool:
        return person in self._states

    def refuse_early(self, records: Arrivals) -> None:
        """Refuses records that lie before the last one of their person: what came after them is published."""
        early = int(np.count_nonzero(self.is_early(records.persons, records.positions)))
        if early:
            raise DataError(
                f"{early:,} records lie before the last known one of their person; nothing was changed.",
                hint="Insert the records of a person in the order of the column that person.events names.",
            )

    def is_early(self, persons: UInt64s, positions: Int64s) -> Bools:
        """Which places in the order of events lie before the last known one of their persons."""
        flags = np.array([int(person) in self._states for person in persons], dtype=bool)
        flags[flags] = positions[flags] < self._read(persons[flags])["order"]
        return flags

    def add_events(self, records: Arrivals, publications: int = _PUBLISHED) -> UInt8s:
        """Each record as an event of its person, in the order of the records; the memories after it. `since` counts the publications so far."""
        memories = np.zeros((len(records.persons), self.width), dtype=np.uint8)
        for which in _iter_rounds(records):
            some = records.take(which)
            known = np.array([int(person) in self._states for person in some.persons], dtype=bool)
            self._begin(some.take(np.flatnonzero(~known)), publications)
            old = some.take(np.flatnonzero(known))
            lives = self._read(old.persons)
            later, other = self._visits & (old.positions > lives["order"]), old.values != lives["value"]
            self._step(old.take(np.flatnonzero(later)), "visit", publications)
            # The same place in the order is the same fact: its value is unchanged, or was corrected.
            self._correct(old.take(np.flatnonzero(~later & other)), publications)
            if not self._visits:
                self._move_last(old)
            memories[which] = self._read(some.persons)["memory"]
        return memories

    def correct(self, records: Arrivals, publications: int = _PUBLISHED) -> UInt8s:
        """Records of known persons whose value is another one now; the memories after it."""
        if self._visits:
            records = records._replace(positions=self._read(records.persons)["order"])
        return self.add_events(records, publications)

    def _move_last(self, some: Arrivals) -> None:
        """The last events of persons lie where their records do."""
        lives = self._read(some.persons).copy()
        lives["order"] = some.positions
        self._states.update(zip(some.persons.tolist(), map(np.void.tobytes, lives), strict=True))

    def _correct(self, some: Arrivals, since: int) -> None:
        """Moves on from what readers know; an event that nobody saw is made again with its new value."""
        lives = self._read(some.persons)
        unseen = (lives["since"] == since) & (since != _PUBLISHED)
        self._step(some.take(np.flatnonzero(~unseen)), "correction", since)
        first = np.array([int(person) not in self._previous for person in some.persons], dtype=bool)
        self._begin(some.take(np.flatnonzero(unseen & first)), since)
        again = np.flatnonzero(unseen & ~first)
        visits = self._visits & (lives["order"][again] > self._restore_previous(some.persons[again])["order"])
        self._step(some.take(again[visits]), "visit", since)
        others = some.take(again[~visits])
        self._step(
            others.take(np.flatnonzero(self._read(others.persons)["value"] != others.values)), "correction", since
        )

    def _restore_previous(self, persons: UInt64s) -> npt.NDArray[np.void]:
        """The lives of persons before their last event, which they have again."""
        size = self._state_type.itemsize
        for person in persons.tolist():
            before = self._previous.pop(person)
            self._states[person] = before[:size]
            if len(before) > size:
                self._previous[person] = before[size:]
        return self._read(persons)

    def rebuild_events(
        self, person: int, records: Mapping[bytes, int], publications: int, places: Mapping[int, tuple[int, int]]
    ) -> dict[int, bytes]:
        """Makes the events of a person that nobody saw again, without those that no record shows any more.

        Args:
            person: whose last event nobody saw.
            shown: by memory, a record that shows it.
            since: publications that were made so far.
            places: the unit and the row of the prior of each record, as they are now.

        Returns:
            The memories of these records now.
        """
        size, lives = self._state_type.itemsize, self._states.pop(person) + self._previous.pop(person, b"")
        chain = [lives[at : at + size] for at in range(0, len(lives), size)]
        known = [life for life in chain if int.from_bytes(life[-4:], "little") != publications]
        if known:
            self._states[person] = known[0]
        made = {}
        for life in reversed(chain[: len(chain) - len(known)]):
            record = records.get(life[: self.width])
            if record is not None:
                made[record] = self._rebuild_event(person, life, publications, places[record])
        return made

    def _rebuild_event(self, person: int, state: bytes, since: int, place: tuple[int, int]) -> bytes:
        """An event of before, behind what is known of its person now."""
        (old,) = np.frombuffer(state, dtype=self._state_type)
        one = Arrivals(
            np.array([person], np.uint64),
            np.array(place[:1], np.uint64),
            np.array(place[1:], np.uint32),
            np.array([old["value"]], np.int32),
            np.array([old["order"]], np.int64),
        )
        if person not in self._states:
            self._begin(one, since)
        else:
            visit = self._visits and old["order"] > self._read(one.persons)["order"][0]
            self._step(one, "visit" if visit else "correction", since)
        return self._states[person][: self.width]

    def unpublished_persons(self, persons: UInt64s, publications: int) -> list[int]:
        """Those of some persons whose last event nobody saw."""
        return [person for person in persons.tolist() if self._is_unpublished(person, publications)]

    def _is_unpublished(self, person: int, since: int) -> bool:
        life = self._states.get(person)
        return life is not None and int.from_bytes(life[-4:], "little") == since != _PUBLISHED

    def last_event_at(self, person: int, position: int) -> tuple[bytes, int]:
        """The memory and the value of a person's last event, if it is at this place; nothing otherwise."""
        life = self._read(np.array([person], np.uint64))[0] if person in self._states else None
        return (
            (b"", -1) if life is None or life["order"] != position else (life["memory"].tobytes(), int(life["value"]))
        )

    def _chain(self, person: int) -> npt.NDArray[np.void]:
        """The life of a person and those before it, the last event first."""
        return np.frombuffer(self._states[person] + self._previous.get(person, b""), dtype=self._state_type).copy()

    def event_positions(self, person: int) -> dict[bytes, int]:
        """By memory, the places of those events of a person that are remembered with it."""
        return {life["memory"].tobytes(): int(life["order"]) for life in self._chain(person)}

    def move_events(self, person: int, positions: Mapping[bytes, int], *, alone: bool) -> bytes | None:
        """The life of a person some of whose events lie at other places now; None where one would come before or behind another.

        Args:
            person: who is known.
            orders: by memory, the place of an event now.
            alone: no record shows an event that lies before those that are remembered with their places.
        """
        chain, places = self._chain(person), self.event_positions(person)
        before = chain["order"].copy()
        for memory, order in positions.items():
            if memory in places:  # a correction lies where its visit does
                chain["order"][before == places[memory]] = order
        kept = (np.sign(np.diff(chain["order"])) == np.sign(np.diff(before))).all()
        kept &= alone or chain["order"][-1] >= before[-1]
        kept &= all(order < chain["order"][-1] for memory, order in positions.items() if memory not in places)
        return chain.tobytes() if kept else None

    def is_latest(self, persons: UInt64s, memories: UInt8s) -> Bools:
        """Which of the records that show these memories are the last ones of their persons."""
        flags: Bools = (self._read(persons)["memory"] == memories).all(axis=1)
        return flags

    def _begin(self, some: Arrivals, since: int) -> None:
        if len(some.persons):
            self._write(some, self._veil.begin(some.households, some.strata, some.values).memories, since)

    def _step(self, some: Arrivals, kind: Literal["visit", "correction"], since: int) -> None:
        if len(some.persons):
            memories = np.ascontiguousarray(self._read(some.persons)["memory"])
            for person in some.persons.tolist():
                hidden = self._previous.get(person, b"") if self._is_unpublished(person, since) else b""
                self._previous[person] = self._states[person] + hidden
            self._write(some, self._veil.step(some.households, memories, some.values, kind=kind).memories, since)

    def _read(self, persons: UInt64s) -> npt.NDArray[np.void]:
        return np.frombuffer(b"".join([self._states[int(person)] for person in persons]), dtype=self._state_type)

    def _write(self, some: Arrivals, memories: UInt8s, since: int) -> None:
        lives = np.zeros(len(some.persons), dtype=self._state_type)
        lives["memory"], lives["value"], lives["order"], lives["since"] = memories, some.values, some.positions, since
        self._states.update(zip(some.persons.tolist(), map(np.void.tobytes, lives), strict=True))

    def load(self, states: Mapping[int, bytes]) -> None:
        """Takes up what `of` gave."""
        size = self._state_type.itemsize
        for person, life in states.items():
            if len(life) == size - 4:  # of a store that did not count publications
                life += _PUBLISHED.to_bytes(4, "little")  # noqa: PLW2901 - the rest is the same
            if len(life) % size:
                raise StateError("The memory of a person is damaged.", hint=CORRUPT_HINT)
            if not life:
                continue  # of somebody whom nobody has seen
            self._states[person] = life[:size]
            if len(life) > size:
                self._previous[person] = life[size:]

    def dump(self, persons: UInt64s | None = None) -> dict[int, bytes]:
        """The lives of some persons, or of all that are in memory, each with those before its last event; empty if there is none."""
        some = self._states if persons is None else persons.tolist()
        return {person: self._states.get(person, b"") + self._previous.get(person, b"") for person in some}


def decode_memories(memories: UInt8s) -> VeiledEvents:
    """What memories show: candidates in canonical order, row and event; and whether the truth is among them."""
    slots = np.ascontiguousarray(memories[:, HEADER_BYTES:]).view("<u2")
    rows = np.ascontiguousarray(memories[:, :2]).view("<u2").reshape(-1)
    events = np.ascontiguousarray(memories[:, 2:6]).view("<u4").reshape(-1)
    return VeiledEvents(
        np.sort(slots, axis=1), rows.astype(np.uint32), events.astype(np.uint32), memories[:, 6] != OMITTED
    )


def _iter_rounds(records: Arrivals) -> Iterator[Int64s]:
    """Parts in which every person, and every unit, stands once; a person's records in their order."""
    for some in iter_rounds(records.persons):
        for part in iter_rounds(records.households[some]):
            yield some[part]
