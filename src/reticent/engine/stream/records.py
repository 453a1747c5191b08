"""Records as the core takes them: keyed hashes of persons and quasi-identifiers, codes of sensitive values.

Only the hash of a quasi-identifier is stored, and only while its group is open: no dictionary grows with the stream. Under the veil
(`FieldReader`) published fields are generalized to their levels, with a cache of limited size: a column of ever new values costs
time, not memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from reticent import _core
from reticent.arrays import Int32s, UInt64s
from reticent.encode.columns import NATIVE_TYPES, normalize_names, to_native
from reticent.engine.stream.values import Values
from reticent.engine.veil.parameters import VeilParameters
from reticent.engine.veil.published_levels import PublishedLevels
from reticent.errors import CORRUPT_HINT, DataError, StateError
from reticent.policy import Policy
from reticent.policy.hierarchy import ROOT


@dataclass(slots=True, repr=False)
class Records:
    """One batch as codes: enough to place it, also again after a crash."""

    seqs: UInt64s
    quasi: UInt64s
    persons: UInt64s
    codes: Int32s
    labels: tuple[str | None, ...] = ()
    """Values that occur first in this batch, in the order of their codes."""

    def __len__(self) -> int:
        return len(self.seqs)

    def __getitem__(self, rows: slice) -> Records:
        return Records(self.seqs[rows], self.quasi[rows], self.persons[rows], self.codes[rows])

    def to_bytes(self) -> bytes:
        """Return a journal entry."""
        return journal_entry({"labels": self.labels}, self.seqs, (self.quasi, self.persons, self.codes))

    @classmethod
    def iter_from(cls, journal: bytes) -> Iterator[Records]:
        """Yield the records of each journal entry."""
        for head, seqs, (quasi, persons, codes) in iter_entries(journal, (np.uint64, np.uint64, np.int32)):
            yield cls(seqs, quasi, persons, codes, tuple(head["labels"]))


def journal_entry(head: dict[str, Any], seqs: UInt64s, columns: Sequence[npt.NDArray[Any]]) -> bytes:
    """Return a journal entry: a header, positions and columns of the same length; consecutive positions take two numbers."""
    first, size = int(seqs[0]) if len(seqs) else 0, len(seqs)
    rows: dict[str, int | None] = {"rows": size, "first": first}
    if size and int(seqs[-1]) - first != size - 1:  # positions are ascending
        rows, columns = {"rows": size, "first": None}, (seqs, *columns)
    line = orjson.dumps(rows | head)
    return b"".join([len(line).to_bytes(4, "little"), line, *(column.tobytes() for column in columns)])


def iter_entries(
    journal: bytes, kinds: Sequence[type]
) -> Iterator[tuple[dict[str, Any], UInt64s, list[npt.NDArray[Any]]]]:
    """Yield the journal entries; `kinds` are the types of the columns after the positions."""
    at = 0
    while at < len(journal):
        try:
            start = at + 4
            at = start + int.from_bytes(journal[at:start], "little")
            head = orjson.loads(journal[start:at])
            first, size = head["first"], head["rows"]
            columns: list[npt.NDArray[Any]] = []
            for kind in kinds if first is not None else (np.uint64, *kinds):
                # A copy, because the core needs aligned columns.
                columns.append(np.frombuffer(journal, dtype=kind, count=size, offset=at).copy())
                at += columns[-1].nbytes
            seqs = columns.pop(0) if first is None else np.arange(first, first + size, dtype=np.uint64)
        except (ValueError, KeyError, TypeError):
            raise StateError("The journal of the stream is corrupt.", hint=CORRUPT_HINT) from None
        yield head, seqs, columns


class NativeBatches:
    """Converts batches into one piece with types that the core reads; without a copy where possible."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names, self._own_places = names, {name: place for place, name in enumerate(names)}
        self._schema: pa.Schema | None = None
        self._places: dict[str, int] = {}
        self._ready = False

    def knows(self, schema: pa.Schema) -> bool:
        """Whether the last batch had this schema."""
        return self._schema is not None and self._schema.equals(schema)

    def convert(self, batch: pa.Table) -> tuple[pa.RecordBatch, dict[str, int]]:
        """Return a batch and the positions of its columns."""
        if not self.knows(batch.schema):
            self._schema = schema = batch.schema
            self._places = {name: schema.get_field_index(name) for name in self._names}
            self._ready = all(schema.field(place).type in NATIVE_TYPES for place in self._places.values())
        if self._ready:
            pieces = batch.to_batches()
            if len(pieces) == 1:
                return pieces[0], self._places
        columns = [to_native(batch.column(name)) for name in self._names]
        return pa.RecordBatch.from_arrays(columns, names=self._names), self._own_places


class RecordHasher:
    """Turns batches into records under the key of the stream; adds new values to `values`."""

    def __init__(self, quasi: Sequence[str], person: str | None, sensitive: str, key: bytes, values: Values) -> None:
        self.quasi, self._person, self._sensitive = quasi, person, sensitive
        columns = [*dict.fromkeys(name for name in (*self.quasi, sensitive, person) if name is not None)]
        self._batches = NativeBatches(columns)
        self._at: dict[str, int] | None = None
        self._columns: tuple[list[int], int | None, int] = [], None, 0
        self._hasher = _core.stream.Hasher(key)
        self._values, self._labels_taught = values, 0

    def knows(self, schema: pa.Schema) -> bool:
        """Whether the last batch had this schema."""
        return self._batches.knows(schema)

    def read(self, batch: pa.Table, seqs: UInt64s) -> Records:
        """Return the hashes and codes of a batch."""
        known = len(self._values)
        if known > self._labels_taught:
            self._hasher.learn(self._values.labels[self._labels_taught :])
            self._labels_taught = known
        rows, at = self._batches.convert(batch)
        if at is not self._at:
            quasi, person = [at[name] for name in self.quasi], at[self._person] if self._person else None
            self._at, self._columns = at, (quasi, person, at[self._sensitive])
        hashes = self._hasher.read(rows.__arrow_c_array__(), *self._columns)
        if hashes.missing:
            raise DataError(
                f"{hashes.missing:,} records have no value in '{self._person}'.",
                hint="Give every record a person; Reticent cannot protect a returning person without one.",
            )
        quasi_hashes, persons, codes = hashes.quasi, hashes.persons, hashes.codes
        if persons is None:
            persons = seqs  # without a person column every record is its own person
        if codes is not None:
            return Records(seqs, quasi_hashes, persons, codes)
        codes = self._values.encode(rows.column(at[self._sensitive]).cast(pa.string()))
        return Records(seqs, quasi_hashes, persons, codes, tuple(self._values.labels[known:]))


LabelPath = tuple[str | None, frozenset[str]]
"""A label, and the set of the label and all labels above it."""

_MAX_CACHE = 1 << 16
# New values first, then new combinations of their labels; what is unknown after that is not text.
_MAX_ROUNDS = 3


class Labels:
    """The published labels of one column, by code."""

    def __init__(self, name: str, levels: PublishedLevels) -> None:
        self.name, self._levels = name, levels
        self._codes: dict[LabelPath, int] = {}
        self.nodes: list[frozenset[str]] = []
        """Per code, its label and the labels above it."""
        self._array = pa.array([], pa.string())

    @property
    def array(self) -> pa.Array:
        """The labels; later ones are appended."""
        if len(self._array) < len(self._codes):
            self._array = pa.array([label for label, _ in self._codes], pa.string())
        return self._array

    def learn(self, values: Sequence[str | None]) -> list[int]:
        """Return the codes of raw values."""
        return [self._code(path) for path in self._generalize(values)]

    def _code(self, path: LabelPath) -> int:
        code = self._codes.setdefault(path, len(self._codes))
        if code == len(self.nodes):
            self.nodes.append(path[1])
        return code

    def _generalize(self, values: Sequence[str | None]) -> list[LabelPath]:
        try:
            return self._levels.generalize(self.name, values)
        except DataError:  # a value is outside the hierarchy
            if len(values) > 1:
                return [path for value in values for path in self._generalize([value])]
            return [(ROOT, frozenset([ROOT]))]  # published as `*`: one unknown value must not stop a stream


class PublishedColumn(NamedTuple):
    """A published column: the code of every record, and its labels."""

    codes: Int32s
    labels: Labels

    def __repr__(self) -> str:
        return f"PublishedColumn({self.labels.name!r}, {len(self.codes)} records)"

    def array(self) -> pa.Array:
        """Return the published labels."""
        return self.labels.array.take(pa.array(self.codes))


ShownColumns = list[tuple[int, Labels]]
"""Columns whose published values differ from the input: the number of the field, and its labels."""


def published_columns(batch: _core.stream.CodedBatch, shown: ShownColumns) -> dict[str, PublishedColumn]:
    """Return the columns of a batch whose published values differ from the input."""
    return {labels.name: PublishedColumn(batch.field(number), labels) for number, labels in shown}


class FieldReader:
    """Reads batches under the veil key."""

    def __init__(self, policy: Policy, parameters: VeilParameters, key: bytes, *, household: str | None = None) -> None:
        assert policy.person is not None  # noqa: S101 - the veil over a stream requires a person
        self._person, self._household, self._parameters = policy.person, household, parameters
        self._generalized_columns = [name for name in policy.quasi if policy.columns[name].level > 0]
        self._fields = [*dict.fromkeys([*self._generalized_columns, *parameters.levels.by])]
        self._by = [self._fields.index(name) for name in parameters.levels.by]
        self._columns_read = [*self._fields, parameters.sensitive]
        self._batches = NativeBatches(
            [*dict.fromkeys([*self._columns_read, self._person, *([household] if household else [])])]
        )
        self._at: dict[str, int] | None = None
        self._columns: tuple[int, list[int], int | None] = 0, [], None
        prefix_lengths = [parameters.levels.prefix_length(name) for name in self._fields]
        self._core = _core.stream.Coder(key, [*prefix_lengths, None], self._by)
        self._forget()

    def _forget(self) -> None:
        self._core.forget()
        self._labels = [Labels(name, self._parameters.levels) for name in self._fields]
        self._shown: ShownColumns = [
            (number, labels) for number, labels in enumerate(self._labels) if labels.name in self._generalized_columns
        ]

    def knows(self, schema: pa.Schema) -> bool:
        """Whether the last batch had this schema."""
        return self._batches.knows(schema)

    def read(self, batch: pa.Table, *, normalized: bool) -> tuple[_core.stream.CodedBatch, ShownColumns]:
        """Return the codes of a batch, the sensitive ones last, and its generalized columns; learns new values.

        `normalized` says that the names of persons and households are in canonical form.
        """
        piece, at = self._batches.convert(batch)
        if at is not self._at:
            household = at[self._household] if self._household else None
            self._at, self._columns = at, (at[self._person], [at[name] for name in self._columns_read], household)
        capsules, columns = piece.__arrow_c_array__(), self._columns
        for teaching_round in range(_MAX_ROUNDS):
            coded = self._core.read(capsules, *columns, normalized)
            if coded.is_complete:
                shown = self._shown
                if teaching_round and self._core.cache_size() > _MAX_CACHE:
                    self._forget()
                return coded, shown
            if coded.has_odd_names:
                return self.read(self._normalize_names(batch), normalized=True)
            self._refuse_missing_persons(coded.missing)
            self._teach(coded)
        raise DataError("A column contains text that is not UTF-8.", hint="Convert the input to UTF-8.")

    def _normalize_names(self, batch: pa.Table) -> pa.Table:
        for name in (self._person, *([self._household] if self._household else [])):
            place = batch.schema.get_field_index(name)
            names = normalize_names(pa.chunked_array([to_native(batch.column(place))]))
            batch = batch.set_column(place, name, names)
        return batch

    def _teach(self, coded: _core.stream.CodedBatch) -> None:
        for field, values in coded.unknown_values:
            own = field < len(self._labels)
            codes = self._labels[field].learn(values) if own else self._parameters.domain.codes(values)
            self._core.learn(field, values, codes)
        for codes in coded.unknown_combinations:
            nodes = tuple(self._labels[field].nodes[code] for field, code in zip(self._by, codes, strict=True))
            self._core.learn_stratum(codes, self._parameters.levels.stratum_of(nodes))

    def _refuse_missing_persons(self, missing: int) -> None:
        if missing:
            raise DataError(
                f"{missing:,} records have no value in '{self._person}'{f' or in {self._household!r}' if self._household else ''}.",
                hint="Give every record a person; Reticent cannot protect a returning person without one.",
            )
