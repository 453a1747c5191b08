"""Person states: the memory of persons whose records are inserted, deleted and corrected, and their events.

The state of a person is its memory under the veil (`core/src/veil/memory.rs`), the code of its last value, the position
of its last event and the number of publications before it. The state outlives the person's records: a person who comes
back with the same value shows the same candidates, because another set would disclose the absence.

Unpublished events leave no trace. A value that is corrected before publication is drawn again from the previous state;
a value that returns to the published one changes nothing, because two steps would show two sets that share the true
value. Unpublished events whose records are deleted are removed from the chain of events. An unpublished first event
uses the current fields of the record.
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
"""Replaces the number of publications: the event counts as published."""


class Arrivals(NamedTuple):
    """Records as the veil sees them: persons, households, strata of the prior, codes and positions of events."""

    persons: UInt64s
    households: UInt64s
    strata: UInt32s
    values: Int32s
    positions: Int64s

    def take(self, which: Int64s) -> Arrivals:
        """Return some of the records."""
        return Arrivals(
            self.persons[which], self.households[which], self.strata[which], self.values[which], self.positions[which]
        )


class PersonStates:
    """Memories by person. Private: a memory contains which candidate is true."""

    def __init__(self, veil: _core.veil.Veil, l: int, *, visits: bool = True) -> None:
        """Create an empty set of states for a veil with l candidates.

        With `visits`, a record at a later position is a new visit. Without, each person has one record, and a later
        record is the same fact, unchanged or corrected.
        """
        self._veil, self._visits = veil, visits
        self.width = HEADER_BYTES + 2 * l
        """Size of a memory in bytes."""
        self._state_type = np.dtype(
            [("memory", np.uint8, self.width), ("value", "<i4"), ("order", "<i8"), ("since", "<u4")]
        )
        self._states: dict[int, bytes] = {}
        self._previous: dict[int, bytes] = {}
        """The states before the last event, latest first, back to the last published one."""

    def __len__(self) -> int:
        return len(self._states)

    def __contains__(self, person: int) -> bool:
        return person in self._states

    def refuse_early(self, records: Arrivals) -> None:
        """Refuse records before the last record of their person: the later records may be published already."""
        early = int(np.count_nonzero(self.is_early(records.persons, records.positions)))
        if early:
            raise DataError(
                f"{early:,} records are before the last known record of their person; nothing was changed.",
                hint="Insert the records of a person in the order of the column in person.events.",
            )

    def is_early(self, persons: UInt64s, positions: Int64s) -> Bools:
        """Return which positions are before the last known event of their person."""
        flags = np.array([int(person) in self._states for person in persons], dtype=bool)
        flags[flags] = positions[flags] < self._read(persons[flags])["order"]
        return flags

    def add_events(self, records: Arrivals, publications: int = _PUBLISHED) -> UInt8s:
        """Add each record as an event of its person, in the order of the records, and return the memories afterwards.

        `publications` is the number of publications so far.
        """
        memories = np.zeros((len(records.persons), self.width), dtype=np.uint8)
        for which in _iter_rounds(records):
            part = records.take(which)
            is_known = np.array([int(person) in self._states for person in part.persons], dtype=bool)
            self._begin(part.take(np.flatnonzero(~is_known)), publications)
            known = part.take(np.flatnonzero(is_known))
            states = self._read(known.persons)
            later, changed = self._visits & (known.positions > states["order"]), known.values != states["value"]
            self._step(known.take(np.flatnonzero(later)), "visit", publications)
            # A record at the same position is the same fact: its value is unchanged or corrected.
            self._correct(known.take(np.flatnonzero(~later & changed)), publications)
            if not self._visits:
                self._move_last(known)
            memories[which] = self._read(part.persons)["memory"]
        return memories

    def correct(self, records: Arrivals, publications: int = _PUBLISHED) -> UInt8s:
        """Apply the corrected values of records of known persons, and return the memories afterwards."""
        if self._visits:
            records = records._replace(positions=self._read(records.persons)["order"])
        return self.add_events(records, publications)

    def _move_last(self, records: Arrivals) -> None:
        """Move the last events of persons to the positions of their records."""
        states = self._read(records.persons).copy()
        states["order"] = records.positions
        self._states.update(zip(records.persons.tolist(), map(np.void.tobytes, states), strict=True))

    def _correct(self, records: Arrivals, since: int) -> None:
        """Correct published events by a step of the kernel, and draw unpublished events again with their new value."""
        states = self._read(records.persons)
        unpublished = (states["since"] == since) & (since != _PUBLISHED)
        self._step(records.take(np.flatnonzero(~unpublished)), "correction", since)
        first = np.array([int(person) not in self._previous for person in records.persons], dtype=bool)
        self._begin(records.take(np.flatnonzero(unpublished & first)), since)
        redrawn = np.flatnonzero(unpublished & ~first)
        visits = self._visits & (states["order"][redrawn] > self._restore_previous(records.persons[redrawn])["order"])
        self._step(records.take(redrawn[visits]), "visit", since)
        others = records.take(redrawn[~visits])
        self._step(
            others.take(np.flatnonzero(self._read(others.persons)["value"] != others.values)), "correction", since
        )

    def _restore_previous(self, persons: UInt64s) -> npt.NDArray[np.void]:
        """Reset persons to their states before the last event, and return these states."""
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
        """Draw the unpublished events of a person again, without events that no record shows any more.

        Args:
            person: a person whose last event is unpublished.
            records: by memory, a record that shows it.
            publications: the number of publications so far.
            places: the current household and stratum of each record.

        Returns:
            The new memories of these records.
        """
        size, data = self._state_type.itemsize, self._states.pop(person) + self._previous.pop(person, b"")
        chain = [data[at : at + size] for at in range(0, len(data), size)]
        published = [state for state in chain if int.from_bytes(state[-4:], "little") != publications]
        if published:
            self._states[person] = published[0]
        memories = {}
        for state in reversed(chain[: len(chain) - len(published)]):
            record = records.get(state[: self.width])
            if record is not None:
                memories[record] = self._rebuild_event(person, state, publications, places[record])
        return memories

    def _rebuild_event(self, person: int, state: bytes, since: int, place: tuple[int, int]) -> bytes:
        """Append an old event to the current chain of its person, and return its new memory."""
        (old,) = np.frombuffer(state, dtype=self._state_type)
        event = Arrivals(
            np.array([person], np.uint64),
            np.array(place[:1], np.uint64),
            np.array(place[1:], np.uint32),
            np.array([old["value"]], np.int32),
            np.array([old["order"]], np.int64),
        )
        if person not in self._states:
            self._begin(event, since)
        else:
            visit = self._visits and old["order"] > self._read(event.persons)["order"][0]
            self._step(event, "visit" if visit else "correction", since)
        return self._states[person][: self.width]

    def unpublished_persons(self, persons: UInt64s, publications: int) -> list[int]:
        """Return the persons whose last event is unpublished."""
        return [person for person in persons.tolist() if self._is_unpublished(person, publications)]

    def _is_unpublished(self, person: int, since: int) -> bool:
        state = self._states.get(person)
        return state is not None and int.from_bytes(state[-4:], "little") == since != _PUBLISHED

    def last_event_at(self, person: int, position: int) -> tuple[bytes, int]:
        """Return the memory and value of a person's last event if it has this position, else (b"", -1)."""
        state = self._read(np.array([person], np.uint64))[0] if person in self._states else None
        if state is None or state["order"] != position:
            return b"", -1
        return state["memory"].tobytes(), int(state["value"])

    def _chain(self, person: int) -> npt.NDArray[np.void]:
        """Return the state of a person and the previous states, last event first."""
        return np.frombuffer(self._states[person] + self._previous.get(person, b""), dtype=self._state_type).copy()

    def event_positions(self, person: int) -> dict[bytes, int]:
        """Return the positions of a person's stored events, by memory."""
        return {state["memory"].tobytes(): int(state["order"]) for state in self._chain(person)}

    def move_events(self, person: int, positions: Mapping[bytes, int], *, alone: bool) -> bytes | None:
        """Return the state of a person with some events at new positions; None if the order of events would change.

        Args:
            person: a known person.
            positions: by memory, the new position of an event.
            alone: whether no record shows an event before the stored ones.
        """
        chain, places = self._chain(person), self.event_positions(person)
        before = chain["order"].copy()
        for memory, position in positions.items():
            if memory in places:  # a correction has the position of its visit
                chain["order"][before == places[memory]] = position
        in_order = (np.sign(np.diff(chain["order"])) == np.sign(np.diff(before))).all()
        in_order &= alone or chain["order"][-1] >= before[-1]
        in_order &= all(at < chain["order"][-1] for memory, at in positions.items() if memory not in places)
        return chain.tobytes() if in_order else None

    def is_latest(self, persons: UInt64s, memories: UInt8s) -> Bools:
        """Return which memories are the latest of their persons."""
        flags: Bools = (self._read(persons)["memory"] == memories).all(axis=1)
        return flags

    def _begin(self, records: Arrivals, since: int) -> None:
        if len(records.persons):
            self._write(records, self._veil.begin(records.households, records.strata, records.values).memories, since)

    def _step(self, records: Arrivals, kind: Literal["visit", "correction"], since: int) -> None:
        if len(records.persons):
            memories = np.ascontiguousarray(self._read(records.persons)["memory"])
            for person in records.persons.tolist():
                unpublished = self._previous.get(person, b"") if self._is_unpublished(person, since) else b""
                self._previous[person] = self._states[person] + unpublished
            step = self._veil.step(records.households, memories, records.values, kind=kind)
            self._write(records, step.memories, since)

    def _read(self, persons: UInt64s) -> npt.NDArray[np.void]:
        return np.frombuffer(b"".join([self._states[int(person)] for person in persons]), dtype=self._state_type)

    def _write(self, records: Arrivals, memories: UInt8s, since: int) -> None:
        states = np.zeros(len(records.persons), dtype=self._state_type)
        states["memory"], states["value"], states["since"] = memories, records.values, since
        states["order"] = records.positions
        self._states.update(zip(records.persons.tolist(), map(np.void.tobytes, states), strict=True))

    def load(self, states: Mapping[int, bytes]) -> None:
        """Load states that `dump` returned."""
        size = self._state_type.itemsize
        for person, state in states.items():
            if len(state) == size - 4:  # from a store that did not count publications
                state += _PUBLISHED.to_bytes(4, "little")  # noqa: PLW2901 - the rest is the same
            if len(state) % size:
                raise StateError("The memory of a person is corrupt.", hint=CORRUPT_HINT)
            if not state:
                continue  # no event of this person was published
            self._states[person] = state[:size]
            if len(state) > size:
                self._previous[person] = state[size:]

    def dump(self, persons: UInt64s | None = None) -> dict[int, bytes]:
        """Return the states of some persons, or of all in memory, with their previous states; b"" if there is none."""
        chosen = self._states if persons is None else persons.tolist()
        return {person: self._states.get(person, b"") + self._previous.get(person, b"") for person in chosen}


def decode_memories(memories: UInt8s) -> VeiledEvents:
    """Decode memories: candidates in canonical order, stratum, event, and whether the true value is a candidate."""
    slots = np.ascontiguousarray(memories[:, HEADER_BYTES:]).view("<u2")
    strata = np.ascontiguousarray(memories[:, :2]).view("<u2").reshape(-1)
    events = np.ascontiguousarray(memories[:, 2:6]).view("<u4").reshape(-1)
    return VeiledEvents(
        np.sort(slots, axis=1), strata.astype(np.uint32), events.astype(np.uint32), memories[:, 6] != OMITTED
    )


def _iter_rounds(records: Arrivals) -> Iterator[Int64s]:
    """Yield parts with every person and every household at most once; a person's records stay in order."""
    for rows in iter_rounds(records.persons):
        for part in iter_rounds(records.households[rows]):
            yield rows[part]
