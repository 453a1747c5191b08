"""Records as the core takes them: keyed hashes of persons and quasi-identifiers, codes of sensitive values.

Nothing is remembered of a quasi-identifier but its hash, and that only while its group is open: no dictionary grows
with the stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from reticent import _core
from reticent.arrays import Int32s, UInt64s
from reticent.encode.native import AS_THEY_ARE, native
from reticent.engine.stream.values import Values
from reticent.errors import DAMAGED, DataError, StateError


@dataclass(slots=True, repr=False)
class Records:
    """One batch on codes; enough to place it, or to place it again after a crash."""

    seqs: UInt64s
    qis: UInt64s
    persons: UInt64s
    codes: Int32s
    labels: tuple[str | None, ...] = ()
    """Values first met in this batch, in the order of their codes."""

    def __len__(self) -> int:
        return len(self.seqs)

    def __getitem__(self, rows: slice) -> Records:
        return Records(self.seqs[rows], self.qis[rows], self.persons[rows], self.codes[rows])

    def to_bytes(self) -> bytes:
        """A journal entry."""
        return entry({"labels": self.labels}, self.seqs, (self.qis, self.persons, self.codes))

    @classmethod
    def all_from(cls, journal: bytes) -> Iterator[Records]:
        """Reads journal entries back, one behind the other."""
        for head, seqs, (qis, persons, codes) in entries(journal, (np.uint64, np.uint64, np.int32)):
            yield cls(seqs, qis, persons, codes, tuple(head["labels"]))


def entry(head: dict[str, Any], seqs: UInt64s, columns: Sequence[npt.NDArray[Any]]) -> bytes:
    """A journal entry: positions, columns of the same length, and what is said of them. Positions without a gap are two numbers."""
    first, size = int(seqs[0]) if len(seqs) else 0, len(seqs)
    rows: dict[str, int | None] = {"rows": size, "first": first}
    if size and int(seqs[-1]) - first != size - 1:  # they rise, as the judge has seen
        rows, columns = {"rows": size, "first": None}, (seqs, *columns)
    line = orjson.dumps(rows | head)
    return b"".join([len(line).to_bytes(4, "little"), line, *(column.tobytes() for column in columns)])


def entries(journal: bytes, kinds: Sequence[type]) -> Iterator[tuple[dict[str, Any], UInt64s, list[npt.NDArray[Any]]]]:
    """Reads journal entries back, one behind the other; `kinds` are the types of the columns behind the positions."""
    at = 0
    while at < len(journal):
        try:
            start = at + 4
            at = start + int.from_bytes(journal[at:start], "little")
            head = orjson.loads(journal[start:at])
            first, size = head["first"], head["rows"]
            columns: list[npt.NDArray[Any]] = []
            for kind in kinds if first is not None else (np.uint64, *kinds):
                # Copied, since the core wants aligned columns.
                columns.append(np.frombuffer(journal, dtype=kind, count=size, offset=at).copy())
                at += columns[-1].nbytes
            seqs = columns.pop(0) if first is None else np.arange(first, first + size, dtype=np.uint64)
        except (ValueError, KeyError, TypeError):
            raise StateError("The journal of the stream is damaged.", hint=DAMAGED) from None
        yield head, seqs, columns


class NativeBatches:
    """Batches in one piece and in types the core reads; as they are, wherever they can be."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names, self._own = names, {name: place for place, name in enumerate(names)}
        self._schema: pa.Schema | None = None
        self._places: dict[str, int] = {}
        self._ready = False

    def knows(self, schema: pa.Schema) -> bool:
        """Whether the last batch came with this schema."""
        return self._schema is not None and self._schema.equals(schema)

    def of(self, batch: pa.Table) -> tuple[pa.RecordBatch, dict[str, int]]:
        """A batch, and where its columns lie."""
        if not self.knows(batch.schema):
            self._schema = schema = batch.schema
            self._places = {name: schema.get_field_index(name) for name in self._names}
            self._ready = all(schema.field(place).type in AS_THEY_ARE for place in self._places.values())
        if self._ready:
            pieces = batch.to_batches()
            if len(pieces) == 1:
                return pieces[0], self._places
        columns = [native(batch.column(name)) for name in self._names]
        return pa.RecordBatch.from_arrays(columns, names=self._names), self._own


class RecordHasher:
    """Turns batches into records, under the key of the stream; `values` learns what is new."""

    def __init__(self, quasi: Sequence[str], person: str | None, sensitive: str, key: bytes, values: Values) -> None:
        self.quasi, self._person, self._sensitive = quasi, person, sensitive
        needed = [*dict.fromkeys(name for name in (*self.quasi, sensitive, person) if name is not None)]
        self._batches = NativeBatches(needed)
        self._at: dict[str, int] | None = None
        self._columns: tuple[list[int], int | None, int] = [], None, 0
        self._hasher = _core.stream.Hasher(key)
        self._values, self._taught = values, 0

    def knows(self, schema: pa.Schema) -> bool:
        """Whether the last batch came with this schema."""
        return self._batches.knows(schema)

    def read(self, batch: pa.Table, seqs: UInt64s) -> Records:
        """Hashes and codes of a batch."""
        known = len(self._values)
        if known > self._taught:
            self._hasher.learn(self._values.labels[self._taught :])
            self._taught = known
        rows, at = self._batches.of(batch)
        if at is not self._at:
            quasi, person = [at[name] for name in self.quasi], at[self._person] if self._person else None
            self._at, self._columns = at, (quasi, person, at[self._sensitive])
        hashes = self._hasher.read(rows.__arrow_c_array__(), *self._columns)
        if hashes.missing:
            raise DataError(
                f"{hashes.missing:,} records have no '{self._person}'.",
                hint="Every record needs its person: without it a returning person cannot be protected.",
            )
        qis, persons, codes = hashes.qis, hashes.persons, hashes.codes
        if persons is None:
            persons = seqs  # without a person column every record stands for someone else
        if codes is not None:
            return Records(seqs, qis, persons, codes)
        codes = self._values.encode(rows.column(at[self._sensitive]).cast(pa.string()))
        return Records(seqs, qis, persons, codes, tuple(self._values.labels[known:]))
