"""Records: the live rows of an evolving table, as codes, found by person and by record.

A row has a number for as long as it lives; the least free number is used next, so that a restart goes on exactly alike.
Everything here is private. Persons are kept as keyed hashes beside the rows.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.arrays import Int32s, Int64s, UInt32s
from reticent.encode import Dictionary
from reticent.errors import DataError
from reticent.release import person_hashes

NO_CLASS = -1


class Records:
    """Growable columns; row numbers are stable while the row lives."""

    def __init__(self, columns: Sequence[str], *, sensitive: str, memory_width: int = 0) -> None:
        self.columns = tuple(columns)
        self.words = {name: Dictionary() for name in columns}
        self.sensitive_index = self.columns.index(sensitive)
        self.codes = np.zeros((0, len(self.columns)), dtype=np.int32)
        self.classes = np.zeros(0, dtype=np.int32)
        # the person under the key of the ledger, and under that of a house where there is one; then what the house is keyed by (0: of an
        # earlier version, which kept no unit)
        self.hashes = np.zeros((0, 3), dtype=np.uint64)
        # what a method remembers of what the row showed
        self.memories = np.zeros((0, memory_width), dtype=np.uint8)
        self.persons: list[str | None] = []
        self.record_ids: list[str | None] = []
        self._by_person: dict[str, int | set[int]] = {}
        self._by_record_id: dict[str, int] = {}
        self._free: list[int] = []
        self._live = np.zeros(0, dtype=np.bool_)
        self._live_count = 0
        # Live rows that the store has and that were not loaded, since a change does not concern them.
        self.not_loaded = 0
        # Per column how many live rows have each code, once somebody has asked.
        self._uses: list[Int64s] | None = None

    def __len__(self) -> int:
        return self._live_count + self.not_loaded

    def rows(self) -> UInt32s:
        """All live rows, in order."""
        return np.flatnonzero(self._live).astype(np.uint32)

    def values(self, rows: UInt32s) -> Int32s:
        """Sensitive codes of rows."""
        return np.ascontiguousarray(self.codes[rows, self.sensitive_index])

    def encode(self, batch: pa.Table) -> Int32s:
        """A batch as codes; grows the dictionaries."""
        codes = np.empty((batch.num_rows, len(self.columns)), dtype=np.int32)
        for i, name in enumerate(self.columns):
            try:
                codes[:, i] = self.words[name].encode(batch.column(name))
            except DataError as error:
                raise DataError(f"Column '{name}': {error.message}", hint=error.hint) from None
        return codes

    def put(self, rows: UInt32s, codes: Int32s) -> None:
        """Gives rows their codes, whether they are live or will be."""
        live = rows[self._live[rows]]
        self._count(live, -1)
        self.codes[rows] = codes
        self._count(live, 1)

    def unused_codes(self, codes: Int32s) -> list[Int32s]:
        """Of some records' codes those that no live row has, per column; counted once, then kept with every change."""
        if self._uses is None:
            live = self.codes[self.rows()]
            self._uses = [np.bincount(column) for column in live.T]
        unique = [np.unique(column) for column in codes.T]
        wide = [np.append(uses, 0)[np.minimum(own, len(uses))] for own, uses in zip(unique, self._uses, strict=True)]
        return [own[count == 0] for own, count in zip(unique, wide, strict=True)]

    def _count(self, rows: Sequence[int] | UInt32s, by: int) -> None:
        for at, uses in enumerate(self._uses or ()):
            codes = self.codes[rows, at]
            if (further := int(codes.max(initial=-1)) + 1 - len(uses)) > 0:
                uses = np.append(uses, np.zeros(max(further, len(uses)), dtype=np.int64))  # noqa: PLW2901 - it has grown
                self._uses[at] = uses  # type: ignore[index]
            np.add.at(uses, codes, by)

    def rows_of_person(self, person: str) -> tuple[int, ...]:
        """Rows of a person."""
        rows = self._by_person.get(person, ())
        return (rows,) if isinstance(rows, int) else tuple(sorted(rows))

    def row_of_record(self, record_id: str) -> int | None:
        """The row of a record id."""
        return self._by_record_id.get(record_id)

    def allocate(self, count: int) -> UInt32s:
        """Numbers for new rows, the least free ones first."""
        reused = [heapq.heappop(self._free) for _ in range(min(count, len(self._free)))]
        first, fresh = len(self.persons), count - len(reused)
        self._grow(first + fresh)
        self.persons.extend([None] * fresh)
        self.record_ids.extend([None] * fresh)
        return np.array([*reused, *range(first, first + fresh)], dtype=np.uint32)

    def _grow(self, needed: int) -> None:
        room = len(self.classes)
        if needed <= room:
            return
        more = max(needed, 2 * room, 64) - room
        self.codes = np.concatenate([self.codes, np.zeros((more, len(self.columns)), dtype=np.int32)])
        self.classes = np.concatenate([self.classes, np.full(more, NO_CLASS, dtype=np.int32)])
        self.hashes = np.concatenate([self.hashes, np.zeros((more, 3), dtype=np.uint64)])
        self._live = np.concatenate([self._live, np.zeros(more, dtype=np.bool_)])
        self.memories = np.concatenate([self.memories, np.zeros((more, self.memories.shape[1]), dtype=np.uint8)])

    def bind(self, rows: Sequence[int], persons: Sequence[str], record_ids: Sequence[str] | None) -> None:
        """Gives rows their person and record id, which makes them live."""
        for i, row in enumerate(rows):
            person = self.persons[row] = persons[i]
            known = self._by_person.get(person)
            if known is None:
                self._by_person[person] = row
            elif isinstance(known, int):
                self._by_person[person] = {known, row}
            else:
                known.add(row)
            if record_ids is not None:
                self.record_ids[row] = record_ids[i]
                self._by_record_id[record_ids[i]] = row
        self._live[rows] = True
        self._live_count += len(rows)
        self._count(rows, 1)

    def remove(self, rows: Sequence[int]) -> None:
        """Forgets rows."""
        for row in rows:
            person, name = self.persons[row], self.record_ids[row]
            if person is None:
                raise DataError("A row is removed twice.", hint="Name each record once.")
            known = self._by_person[person]
            if isinstance(known, int) or len(known) == 1:
                del self._by_person[person]
            else:
                known.discard(row)
            if name is not None:
                del self._by_record_id[name]
            self.persons[row] = self.record_ids[row] = None
            self.classes[row] = NO_CLASS
            heapq.heappush(self._free, row)
        self._live[rows] = False
        self._live_count -= len(rows)
        self._count(rows, -1)

    def hash_persons(self, rows: UInt32s, key: bytes) -> None:
        """The keyed hashes of the persons of rows: the same person always gets the same."""
        self.hashes[rows, 0] = person_hashes((self.persons[row] for row in rows.tolist()), key)

    def load(
        self,
        rows: UInt32s,
        persons: Sequence[str],
        record_ids: Sequence[str] | None,
        *,
        top: int | None = None,
    ) -> None:
        """Makes exactly these rows live in an empty table, by number; their columns are filled by the caller afterwards.

        `top` is given when only a part is loaded: the first number that is surely free.
        """
        size = (int(rows.max()) + 1 if len(rows) else 0) if top is None else top
        self._grow(size)
        self.persons, self.record_ids = [None] * size, [None] * size
        self.bind(rows.tolist(), persons, record_ids)
        if top is None:
            self._free = [row for row, person in enumerate(self.persons) if person is None]

    def to_tables(self) -> tuple[dict[str, pa.Table], bytes]:
        """For a snapshot: live rows and words as they are, so that everything goes on exactly alike; and what the rows showed."""
        rows = self.rows()
        fields: dict[str, Any] = {
            "row": rows,
            "person": pa.array([self.persons[row] for row in rows.tolist()], pa.string()),
            "name": pa.array([self.record_ids[row] for row in rows.tolist()], pa.string()),
            "class": self.classes[rows],
        }
        fields |= {f"code {i}": self.codes[rows, i] for i in range(len(self.columns))}
        fields |= {f"hash {i}": self.hashes[rows, i] for i in range(3)}
        words = {f"words {i}": pa.table({"value": self.words[name].values}) for i, name in enumerate(self.columns)}
        return {"records": pa.table(fields), **words}, self.memories[rows].tobytes()

    def from_tables(self, tables: dict[str, pa.Table], memories: bytes) -> None:
        """Takes up what `to_tables` gave."""
        held = tables["records"]
        for i, name in enumerate(self.columns):
            self.words[name] = Dictionary(tables[f"words {i}"].column("value").combine_chunks())
        rows = held.column("row").to_numpy().astype(np.uint32)
        names = held.column("name")
        self.load(rows, held.column("person").to_pylist(), None if names.null_count else names.to_pylist())
        for i in range(len(self.columns)):
            self.codes[rows, i] = held.column(f"code {i}").to_numpy()
        for i in range(3):
            self.hashes[rows, i] = held.column(f"hash {i}").to_numpy()
        self.classes[rows] = held.column("class").to_numpy()
        self.memories[rows] = np.frombuffer(memories, np.uint8).reshape(len(rows), self.memories.shape[1])
