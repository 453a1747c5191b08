"""Records: the live rows of an evolving table as codes, with an index by person and by record id.

A row has a number while it is live; a new row gets the smallest free number, so that a restart continues identically.
Everything here is private. Each row also has the keyed hashes of its person.
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
    """Growable columns; the number of a row is stable while the row is live."""

    def __init__(self, columns: Sequence[str], *, sensitive: str, memory_width: int = 0) -> None:
        self.columns = tuple(columns)
        self.words = {name: Dictionary() for name in columns}
        self.sensitive_index = self.columns.index(sensitive)
        self.codes = np.zeros((0, len(self.columns)), dtype=np.int32)
        self.classes = np.zeros(0, dtype=np.int32)
        # Hash of the person under the ledger's key; of the person and of the household under the veil key.
        # A household of 0 comes from an earlier version, which stored none.
        self.hashes = np.zeros((0, 3), dtype=np.uint64)
        # A method's memory of the published candidates of each row.
        self.memories = np.zeros((0, memory_width), dtype=np.uint8)
        self.persons: list[str | None] = []
        self.record_ids: list[str | None] = []
        self._by_person: dict[str, int | set[int]] = {}
        self._by_record_id: dict[str, int] = {}
        self._free: list[int] = []
        self._live = np.zeros(0, dtype=np.bool_)
        self._live_count = 0
        # Number of live rows in the store that were not loaded because no change needs them.
        self.not_loaded = 0
        # Per column, the number of live rows with each code; computed on first use.
        self._uses: list[Int64s] | None = None

    def __len__(self) -> int:
        return self._live_count + self.not_loaded

    def rows(self) -> UInt32s:
        """Return all live rows, in order."""
        return np.flatnonzero(self._live).astype(np.uint32)

    def values(self, rows: UInt32s) -> Int32s:
        """Return the sensitive codes of rows."""
        return np.ascontiguousarray(self.codes[rows, self.sensitive_index])

    def encode(self, batch: pa.Table) -> Int32s:
        """Encode a batch; new values are added to the dictionaries."""
        codes = np.empty((batch.num_rows, len(self.columns)), dtype=np.int32)
        for i, name in enumerate(self.columns):
            try:
                codes[:, i] = self.words[name].encode(batch.column(name))
            except DataError as error:
                raise DataError(f"Column '{name}': {error.message}", hint=error.hint) from None
        return codes

    def put(self, rows: UInt32s, codes: Int32s) -> None:
        """Set the codes of rows, live or new."""
        live = rows[self._live[rows]]
        self._count(live, -1)
        self.codes[rows] = codes
        self._count(live, 1)

    def unused_codes(self, codes: Int32s) -> list[Int32s]:
        """Return per column the codes that no live row has; the counts are computed once, then updated."""
        if self._uses is None:
            live = self.codes[self.rows()]
            self._uses = [np.bincount(column) for column in live.T]
        unique = [np.unique(column) for column in codes.T]
        counts = [np.append(uses, 0)[np.minimum(own, len(uses))] for own, uses in zip(unique, self._uses, strict=True)]
        return [own[count == 0] for own, count in zip(unique, counts, strict=True)]

    def _count(self, rows: Sequence[int] | UInt32s, by: int) -> None:
        for at, uses in enumerate(self._uses or ()):
            codes = self.codes[rows, at]
            if (further := int(codes.max(initial=-1)) + 1 - len(uses)) > 0:
                uses = np.append(uses, np.zeros(max(further, len(uses)), dtype=np.int64))  # noqa: PLW2901 - the grown array
                self._uses[at] = uses  # type: ignore[index]
            np.add.at(uses, codes, by)

    def rows_of_person(self, person: str) -> tuple[int, ...]:
        """Return the rows of a person."""
        rows = self._by_person.get(person, ())
        return (rows,) if isinstance(rows, int) else tuple(sorted(rows))

    def row_of_record(self, record_id: str) -> int | None:
        """Return the row of a record id."""
        return self._by_record_id.get(record_id)

    def allocate(self, count: int) -> UInt32s:
        """Return numbers for new rows, the smallest free numbers first."""
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
        """Set the person and record id of rows, which makes them live."""
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
        """Remove rows."""
        for row in rows:
            person, name = self.persons[row], self.record_ids[row]
            if person is None:
                raise DataError("A record is deleted twice.", hint="Name each record once.")
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
        """Set the keyed hash of the person of each row; a person always has the same hash."""
        self.hashes[rows, 0] = person_hashes((self.persons[row] for row in rows.tolist()), key)

    def load(
        self, rows: UInt32s, persons: Sequence[str], record_ids: Sequence[str] | None, *, top: int | None = None
    ) -> None:
        """Make exactly these row numbers live in an empty table; the caller fills their columns afterwards.

        `top` is the first free number if only some rows are loaded.
        """
        size = (int(rows.max()) + 1 if len(rows) else 0) if top is None else top
        self._grow(size)
        self.persons, self.record_ids = [None] * size, [None] * size
        self.bind(rows.tolist(), persons, record_ids)
        if top is None:
            self._free = [row for row, person in enumerate(self.persons) if person is None]

    def to_tables(self) -> tuple[dict[str, pa.Table], bytes]:
        """Return the live rows and dictionaries for a snapshot, and the memories of the rows."""
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
        """Load what `to_tables` returned."""
        records = tables["records"]
        for i, name in enumerate(self.columns):
            self.words[name] = Dictionary(tables[f"words {i}"].column("value").combine_chunks())
        rows = records.column("row").to_numpy().astype(np.uint32)
        names = records.column("name")
        self.load(rows, records.column("person").to_pylist(), None if names.null_count else names.to_pylist())
        for i in range(len(self.columns)):
            self.codes[rows, i] = records.column(f"code {i}").to_numpy()
        for i in range(3):
            self.hashes[rows, i] = records.column(f"hash {i}").to_numpy()
        self.classes[rows] = records.column("class").to_numpy()
        self.memories[rows] = np.frombuffer(memories, np.uint8).reshape(len(rows), self.memories.shape[1])
