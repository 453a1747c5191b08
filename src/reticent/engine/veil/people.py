"""Persons as a house sees them: a keyed hash, and what it remembers of each over all events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from reticent.errors import DAMAGED, DataError, StateError
from reticent.release.ledger import person_hashes

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from reticent import _core
    from reticent.engine.rng import Rng

Batch = tuple["npt.NDArray[np.uint64]", "npt.NDArray[np.uint64]", "npt.NDArray[np.uint32]", "npt.NDArray[np.int32]"]
"""Persons, units, rows of the prior and values of some records."""
_CLOCK = 4
"""Bytes behind a memory: the release of a series in which the person was last seen."""


def hashes_of(column: pa.ChunkedArray, rng: Rng, name: str) -> npt.NDArray[np.uint64]:
    """Keyed hashes of a column of persons (or units), the same in every publication of the house."""
    if column.null_count:
        raise DataError(f"{column.null_count:,} records have no '{name}'.", hint="Every record needs its person.")
    words = column.cast(pa.string()).combine_chunks().dictionary_encode()
    words = words.combine_chunks() if isinstance(words, pa.ChunkedArray) else words
    table = person_hashes(words.dictionary.to_pylist(), rng.house_key("veil persons"))
    return np.asarray(table[words.indices.to_numpy(zero_copy_only=False)])


class People:
    """The memories of persons: row, slots and event number of each."""

    def __init__(self, veil: _core.veil.Veil, l: int) -> None:
        self._veil = veil
        self._size = 8 + 2 * l + _CLOCK
        self._at: dict[int, int] = {}
        self._memories = np.zeros((1024, self._size), dtype=np.uint8)

    def __len__(self) -> int:
        return len(self._at)

    def __repr__(self) -> str:
        return f"People({len(self)})"

    def known(self, persons: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Which of the persons were seen before."""
        return np.fromiter((int(person) in self._at for person in persons), dtype=bool, count=len(persons))

    def take(
        self,
        persons: npt.NDArray[np.uint64],
        units: npt.NDArray[np.uint64],
        rows: npt.NDArray[np.uint32],
        values: npt.NDArray[np.int32],
        kind: Literal["visit", "correction"] = "visit",
        *,
        now: int | None = None,
    ) -> Seen:
        """The next event of each record's person, in the order of the records.

        Args:
            persons: keyed hashes.
            units: what the veil is keyed by: the persons, or their households.
            rows: of the prior, for first sights.
            values: codes of the domain; -1: unseen.
            kind: of later events.
            now: the number of this release of a series: releases that a person missed are events, too.
        """
        seen = Seen.empty(len(persons), (self._size - 8 - _CLOCK) // 2)
        for some in _rounds(persons):
            known = self.known(persons[some])
            for which, first in ((some[~known], True), (some[known], False)):
                if len(which):
                    batch = persons[which], units[which], rows[which], values[which]
                    sights = self._first(batch, now) if first else self._later(batch, kind, now)
                    seen.put(which, sights)
        return seen

    def _first(self, batch: Batch, now: int | None) -> _core.veil.Sights:
        persons, units, rows, values = batch
        places = self._new(persons)
        sights = self._veil.begin(units, rows, values)
        self._memories[places, :-_CLOCK] = sights.memories
        self._clock(places, now)
        return sights

    def _later(self, batch: Batch, kind: Literal["visit", "correction"], now: int | None) -> _core.veil.Sights:
        persons, units, _, values = batch
        places = np.fromiter((self._at[int(person)] for person in persons), dtype=np.int64, count=len(persons))
        memories = np.ascontiguousarray(self._memories[places, :-_CLOCK])
        events = None
        if now is not None:
            last = np.ascontiguousarray(self._memories[places, -_CLOCK:]).view("<u4").reshape(-1)
            number = np.ascontiguousarray(memories[:, 2:6]).view("<u4").reshape(-1)
            events = (number + (now - last)).astype(np.uint32)
        sights = self._veil.step(units, memories, values, kind=kind, events=events)
        self._memories[places, :-_CLOCK] = sights.memories
        self._clock(places, now)
        return sights

    def _clock(self, places: npt.NDArray[np.int64], now: int | None) -> None:
        self._memories[places, -_CLOCK:] = np.frombuffer(np.uint32(now or 0).tobytes(), dtype=np.uint8)

    def _new(self, persons: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        first = len(self._at)
        self._at.update((int(person), first + i) for i, person in enumerate(persons))
        if len(self._at) > len(self._memories):
            grown = np.zeros((max(2 * len(self._memories), len(self._at)), self._size), dtype=np.uint8)
            grown[:first] = self._memories[:first]
            self._memories = grown
        return np.arange(first, len(self._at))

    def to_bytes(self) -> bytes:
        """All memories, for a snapshot."""
        persons = np.fromiter(self._at, dtype="<u8", count=len(self))
        return len(self).to_bytes(8, "little") + persons.tobytes() + self._memories[: len(self)].tobytes()

    def load(self, data: bytes) -> None:
        """Takes up what `to_bytes` gave."""
        size = int.from_bytes(data[:8], "little")
        if len(data) != 8 + size * (8 + self._size):
            raise StateError("The memory of a house is damaged.", hint=DAMAGED)
        persons = np.frombuffer(data, dtype="<u8", count=size, offset=8)
        self._at = {int(person): i for i, person in enumerate(persons)}
        rows = np.frombuffer(data, dtype=np.uint8, offset=8 + 8 * size).reshape(size, self._size)
        self._memories = np.concatenate([rows, np.zeros((1024, self._size), dtype=np.uint8)])


class Seen:
    """What a batch publishes: candidates, row and event of each record; and, private, whether the truth is offered."""

    def __init__(
        self,
        candidates: npt.NDArray[np.uint16],
        rows: npt.NDArray[np.uint32],
        events: npt.NDArray[np.uint32],
        offered: npt.NDArray[np.bool_],
    ) -> None:
        self.candidates, self.rows, self.events, self.offered = candidates, rows, events, offered

    @classmethod
    def empty(cls, size: int, l: int) -> Seen:
        """To be filled round by round."""
        return cls(
            np.zeros((size, l), dtype=np.uint16),
            np.zeros(size, dtype=np.uint32),
            np.zeros(size, dtype=np.uint32),
            np.zeros(size, dtype=bool),
        )

    def put(self, which: npt.NDArray[np.int64], sights: _core.veil.Sights) -> None:
        """Fills in some records."""
        self.candidates[which], self.rows[which] = sights.candidates, sights.rows
        self.events[which], self.offered[which] = sights.events, sights.offered


def _rounds(persons: npt.NDArray[np.uint64]) -> Iterator[npt.NDArray[np.int64]]:
    """The first records of all persons, then the second ones, and so on, each round in the order of the input."""
    order = np.argsort(persons, kind="stable")
    ordered = persons[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    turn = np.arange(len(order)) - np.repeat(starts, np.diff(np.concatenate([starts, [len(order)]])))
    for number in range(int(turn.max(initial=-1)) + 1):
        yield np.sort(order[turn == number])
