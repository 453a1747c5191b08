"""Links between persons and published records: which records may belong to which person."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array, eye_array

from reticent.arrays import Bools, Floats, Int64s
from reticent.audit.attack.evidence import Evidence
from reticent.audit.attack.observations import Observations, latest_observations
from reticent.policy import Policy
from reticent.verify.labels.row_matching import Field, match_rows


@dataclass(frozen=True, repr=False)
class Link:
    """Which records may belong to which person.

    Attributes:
        person: the kind of each person; persons of one kind have the same values.
        record: the kind of each record; records of one kind show the same labels.
        allowed: kinds of persons x kinds of records: 1 if such a record may belong to such a person.
    """

    person: Int64s
    record: Int64s
    allowed: csr_array

    @cached_property
    def sizes(self) -> Int64s:
        """The number of records that may belong to each person."""
        each = self.allowed @ np.bincount(self.record, minlength=self.allowed.shape[1])
        return np.asarray(each[self.person], dtype=np.int64)

    @cached_property
    def _last(self) -> Int64s:
        """The last record of each kind; -1 if there is none."""
        last = np.full(self.allowed.shape[1], -1, dtype=np.int64)
        last[self.record] = np.arange(len(self.record))
        return last

    @cached_property
    def only_record(self) -> Int64s:
        """The one record that certainly belongs to each person; -1 if there is none."""
        rivals = np.bincount(self.person, minlength=self.allowed.shape[0]) @ self.allowed
        sure = np.flatnonzero(self.sizes == 1)
        records = np.full(len(self.person), -1, dtype=np.int64)
        mine = csr_array(self.allowed.multiply((self._last >= 0)[None, :]))[self.person[sure]]
        mine.eliminate_zeros()
        records[sure] = np.where(rivals[mine.indices] == 1, self._last[mine.indices], -1)
        return records

    @cached_property
    def record_of(self) -> Int64s:
        """A record that may belong to each person; -1 if there is none."""
        pairs = self.allowed.tocoo()
        best = np.full(self.allowed.shape[0], -1, dtype=np.int64)
        np.maximum.at(best, pairs.row, self._last[pairs.col])
        return best[self.person]

    @cached_property
    def person_of(self) -> Int64s:
        """A person who may be behind each record, in rotation; the first person if nobody matches."""
        everybody = np.arange(len(self.person))
        members = csr_array(
            (np.ones(len(everybody)), (self.person, everybody)), (self.allowed.shape[0], len(everybody))
        )
        by_label = csr_array(csr_array(self.allowed.T) @ members)
        many = np.diff(by_label.indptr)[self.record]
        turn = np.arange(len(self.record)) % np.maximum(many, 1)
        at = np.minimum(by_label.indptr[self.record] + turn, max(len(by_label.indices) - 1, 0))
        return np.where(many > 0, by_label.indices[at], 0)

    def records_of(self, persons: Int64s) -> Int64s:
        """Return all records that may belong to these persons."""
        labels = np.unique(self.allowed[np.unique(self.person[persons])].indices)
        return np.flatnonzero(np.isin(self.record, labels))

    def has_record_in(self, records: Int64s) -> Bools:
        """Return, per person, whether one of these records may be theirs."""
        shown = np.bincount(self.record[records], minlength=self.allowed.shape[1])
        return np.asarray((self.allowed @ shown)[self.person] > 0)

    def mean(self, posterior: Floats, records: Int64s, persons: Int64s) -> Floats:
        """Return the mean posterior of the records that may belong to each person: persons x values."""
        labels = csr_array((np.ones(len(records)), (self.record[records], np.arange(len(records)))))
        labels.resize((self.allowed.shape[1], len(records)))
        combinations, at = np.unique(self.person[persons], return_inverse=True)
        total = self.allowed[combinations] @ (labels @ posterior)
        many = (self.allowed[combinations] @ (labels @ np.ones(len(records))))[:, None]
        return np.asarray(np.divide(total, many, out=np.zeros_like(total), where=many > 0)[at])


def attack_target(evidence: Evidence) -> tuple[Observations, pa.ChunkedArray, Link] | None:
    """Return the latest release, everybody's true value, and the links to records; None if one is missing."""
    original, policy = evidence.original, evidence.policy
    seen = latest_observations(evidence)
    if seen is None or original is None or policy.sensitive[0] not in original.column_names:
        return None
    match = link(seen, original, policy)
    return None if match is None else (seen, original[policy.sensitive[0]], match)


def link(seen: Observations, table: pa.Table, policy: Policy, *, by: tuple[str, ...] | None = None) -> Link | None:
    """Link persons to records by position if the release states it, else by their common fields or those of `by`."""
    size = table.num_rows
    if by is None and seen.position is not None and len(seen.position) and int(seen.position.max()) < size:
        return Link(np.arange(size), seen.position, csr_array(eye_array(size)))
    fields = seen.fields.column_names if by is None else by
    names = [name for name in fields if name in table.column_names]
    if not names:
        return None
    meeting = match_rows([_field(table, seen.fields, policy, name) for name in names], size, len(seen))
    shape = (len(meeting.source_counts), len(meeting.published_counts))
    return Link(
        meeting.source_kind,
        meeting.published_kind,
        csr_array((np.ones(meeting.pairs.shape[1]), tuple(meeting.pairs)), shape),
    )


def _field(table: pa.Table, shown: pa.Table, policy: Policy, name: str) -> Field:
    """Return a column of the persons and of the records for matching."""
    if name in policy.columns and policy.columns[name].role == "quasi":
        return Field.from_labels(table, shown, policy, name)
    return Field.from_equal_texts(table[name], shown[name])


def split_persons(table: pa.Table, policy: Policy, key: bytes) -> Bools:
    """Split the persons at random, with all records of a person on one side; true: the attacker learns from them."""
    person = policy.person
    named = person is not None and person in table.column_names
    names = table[person].to_pylist() if named else range(table.num_rows)
    bits = [hashlib.blake2b(str(who).encode(), digest_size=1, key=key).digest()[0] & 1 for who in names]
    return np.array(bits, dtype=np.bool_)
