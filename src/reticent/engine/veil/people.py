"""Persons as a house sees them: a keyed hash, and what it remembers of each over all events."""

from __future__ import annotations

from typing import Literal, NamedTuple

import pyarrow as pa

from reticent import _core
from reticent.arrays import Bools, Int32s, Int64s, UInt16s, UInt32s, UInt64s
from reticent.encode.names import single_names
from reticent.encode.native import native
from reticent.engine.rng import Rng
from reticent.errors import DAMAGED, DataError, StateError


class Seen(NamedTuple):
    """What a batch publishes: candidates, row and event of each record; and, private, whether the truth is offered."""

    candidates: UInt16s
    rows: UInt32s
    events: UInt32s
    offered: Bools

    def at(self, which: Int64s) -> Seen:
        """Some of the records, each as often as it is named."""
        return Seen(self.candidates[which], self.rows[which], self.events[which], self.offered[which])


def hashes_of(column: pa.ChunkedArray, rng: Rng, name: str) -> UInt64s:
    """Keyed hashes of a column of persons (or units), the same in every publication of the house."""
    rows = pa.RecordBatch.from_arrays([native(single_names(column))], names=[name])
    hashes = _core.stream.Hasher(rng.house_key("veil persons")).read(rows.__arrow_c_array__(), [], 0, 0)
    if hashes.missing:
        raise DataError(f"{hashes.missing:,} records have no '{name}'.", hint="Every record needs its person.")
    assert hashes.persons is not None  # noqa: S101 - a column was named
    return hashes.persons


class People:
    """The memories of persons: row, slots and event number of each."""

    def __init__(self, veil: _core.veil.Veil) -> None:
        self._core = _core.veil.People(veil)

    def __len__(self) -> int:
        return len(self._core)

    def __repr__(self) -> str:
        return f"People({len(self)})"

    def known(self, persons: UInt64s) -> Bools:
        """Which of the persons were seen before."""
        return self._core.known(persons)

    def take(
        self,
        persons: UInt64s,
        units: UInt64s,
        rows: UInt32s,
        values: Int32s,
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
        seen = self._core.take(persons, units, rows, values, kind, now=now)
        return Seen(seen.candidates, seen.rows, seen.events, seen.offered)

    def to_bytes(self) -> bytes:
        """All memories, for a snapshot."""
        return self._core.to_bytes()

    def load(self, data: bytes) -> None:
        """Takes up what `to_bytes` gave."""
        try:
            self._core.load(data)
        except ValueError:
            raise StateError("The memory of a house is damaged.", hint=DAMAGED) from None
