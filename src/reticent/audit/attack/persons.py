"""Persons behind published records: who may stand where, and which published value is whose."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array, eye_array

from reticent.audit.groups import codes
from reticent.audit.labels.meaning import Stretches, cover
from reticent.audit.labels.meeting import Field, meet

if TYPE_CHECKING:
    from reticent.audit.arrays import Codes, Flags, Vector
    from reticent.audit.attack.sights import Sights
    from reticent.policy import Policy


_MANY = 20_000  # persons at most where labels of several levels make matching dear
_WORK = 4_000_000  # comparisons of labels at once


class Cover(NamedTuple):
    """Codes of the values and of the labels, which label may stand for which value, and the values by their text."""

    value: Codes
    label: Codes
    fits: csr_array
    rank: Codes


@dataclass(frozen=True, repr=False)
class Link:
    """Which records may be a person's.

    Attributes:
        person: the combination of values of each person; -1 for those left out.
        record: the combination of labels of each record.
        allowed: combinations of values x combinations of labels: a one where the one may stand for the other.
    """

    person: Codes
    record: Codes
    allowed: csr_array

    @cached_property
    def sizes(self) -> Codes:
        """How many records may be each person's."""
        each = self.allowed @ np.bincount(self.record, minlength=self.allowed.shape[1])
        return np.where(self.person >= 0, each[self.person], 0).astype(np.int64)

    @cached_property
    def alone(self) -> Codes:
        """Per person the one record that is surely theirs; -1 for others."""
        rivals = np.bincount(self.person[self.person >= 0], minlength=self.allowed.shape[0]) @ self.allowed
        last = np.full(self.allowed.shape[1], -1, dtype=np.int64)
        last[self.record] = np.arange(len(self.record))
        sure = np.flatnonzero(self.sizes == 1)
        records = np.full(len(self.person), -1, dtype=np.int64)
        filled = np.bincount(self.record, minlength=self.allowed.shape[1]) > 0
        mine = csr_array(self.allowed.multiply(filled[None, :]))[self.person[sure]]
        mine.eliminate_zeros()
        records[sure] = np.where(rivals[mine.indices] == 1, last[mine.indices], -1)
        return records

    @cached_property
    def record_of(self) -> Codes:
        """Per person a record that may be theirs; -1 where none is."""
        last = np.full(self.allowed.shape[1], -1, dtype=np.int64)
        last[self.record] = np.arange(len(self.record))
        pairs = self.allowed.tocoo()
        best = np.full(self.allowed.shape[0], -1, dtype=np.int64)
        np.maximum.at(best, pairs.row, last[pairs.col])
        return np.where(self.person >= 0, best[self.person], -1)

    @cached_property
    def person_of(self) -> Codes:
        """Per record a person who may stand behind it, those who may in turn; the first of all where nobody may."""
        known = np.flatnonzero(self.person >= 0)
        shape = (self.allowed.shape[0], len(self.person))
        members = csr_array((np.ones(len(known)), (self.person[known], known)), shape)
        by_label = csr_array(csr_array(self.allowed.T) @ members)
        many = np.diff(by_label.indptr)[self.record]
        turn = np.arange(len(self.record)) % np.maximum(many, 1)
        at = np.minimum(by_label.indptr[self.record] + turn, max(len(by_label.indices) - 1, 0))
        return np.where(many > 0, by_label.indices[at], 0)

    def records(self, persons: Codes) -> Codes:
        """All records that may be theirs."""
        labels = np.unique(self.allowed[np.unique(self.person[persons])].indices)
        return np.flatnonzero(np.isin(self.record, labels))

    def reached(self, records: Codes) -> Flags:
        """Persons one of whose records is among these."""
        shown = np.bincount(self.record[records], minlength=self.allowed.shape[1])
        return np.where(self.person >= 0, (self.allowed @ shown)[self.person] > 0, False)  # noqa: FBT003 - an array

    def mean(self, posterior: Vector, records: Codes, persons: Codes) -> Vector:
        """Persons x values: the mean of what is thought of the records that may be theirs."""
        labels = csr_array((np.ones(len(records)), (self.record[records], np.arange(len(records)))))
        labels.resize((self.allowed.shape[1], len(records)))
        combinations, at = np.unique(self.person[persons], return_inverse=True)
        total = self.allowed[combinations] @ (labels @ posterior)
        many = (self.allowed[combinations] @ (labels @ np.ones(len(records))))[:, None]
        return np.asarray(np.divide(total, many, out=np.zeros_like(total), where=many > 0)[at])


def link(seen: Sights, table: pa.Table, policy: Policy, *, by: tuple[str, ...] | None = None) -> Link | None:
    """Match persons with records by position where the release tells it, else by all published fields they share, or those of `by`."""
    size = table.num_rows
    if by is None and seen.place is not None and len(seen.place) and int(seen.place.max()) < size:
        return Link(np.arange(size), seen.place, csr_array(eye_array(size)))
    fields = seen.fields.column_names if by is None else by
    names = [name for name in fields if name in table.column_names]
    if not names:
        return None
    covers = {name: _cover(table[name], seen.fields[name], policy, name) for name in names}
    if all(one.fits.sum(axis=1).max() <= 1 for one in covers.values()):
        return _joined(covers, size)
    return _compared(covers, size, len(seen))


def _cover(values: pa.ChunkedArray, labels: pa.ChunkedArray, policy: Policy, name: str) -> Cover:
    value, names = codes(values)
    label, shown = codes(labels)
    quasi = name in policy.columns and policy.columns[name].role == "quasi"
    covers = cover(names, shown, policy, name) if quasi else _same(names, shown)
    itself = _same(names, shown).astype(np.bool_)
    # A label that is the value itself stands before nodes of that name.
    own = np.asarray(itself.sum(axis=1)).ravel() > 0
    rank = np.argsort(np.argsort(np.array([name or "" for name in names]), kind="stable"), kind="stable")
    return Cover(value, label, csr_array(covers.multiply(~own[:, None]) + itself).astype(np.float64), rank)


def _same(values: tuple[str | None, ...], labels: tuple[str | None, ...]) -> csr_array:
    place = {label: code for code, label in enumerate(labels)}
    pairs = [(row, place[value]) for row, value in enumerate(values) if value in place]
    rows, columns = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return csr_array((np.ones(len(rows), dtype=np.bool_), (rows, columns)), shape=(len(values), len(labels)))


def _joined(covers: dict[str, Cover], size: int) -> Link:
    """Every value has one label: persons and records meet by their labels."""
    key, strangers = np.zeros(0, dtype=np.int64), np.zeros(size, dtype=np.bool_)
    for value, label, covering, _ in covers.values():
        home = np.where(np.diff(covering.indptr) > 0, np.asarray(covering.argmax(axis=1)).ravel(), -1)[value]
        strangers |= home < 0
        both = np.concatenate([home, label])
        key = both if not len(key) else key * (int(both.max()) + 2) + both + 1
        _, key = np.unique(key, return_inverse=True)
    width = int(key.max()) + 1
    return Link(np.where(strangers, -1, key[:size]), key[size:], csr_array(eye_array(width)))


def _compared(covers: dict[str, Cover], size: int, records: int) -> Link:
    """Labels of several levels: combinations of values meet the combinations of labels that may stand for them."""
    mine = _combined([(cover.value, cover.fits.shape[0]) for cover in covers.values()], size)
    theirs = _combined([(cover.label, cover.fits.shape[1]) for cover in covers.values()], records)
    first = [np.unique(side, return_index=True)[1] for side in (mine, theirs)]
    most = int(min(_MANY, max(200, _WORK * 25 // max(1, len(first[1])))))
    rows, shape = first[0][:most], (min(most, len(first[0])), len(first[1]))
    fields = []
    for value, label, fits, rank in covers.values():
        known, shown = (np.asarray(part, dtype=np.int64) for part in fits.nonzero())
        fields.append(Field(value[rows], label[first[1]], Stretches.listed(known, shown, rank, fits.shape[1])))
    meeting = meet(fields, *shape)
    # Combinations are different: each is a kind of its own.
    mine_at, theirs_at = (
        np.argsort(kind)[part] for kind, part in zip((meeting.row, meeting.place), meeting.pairs, strict=True)
    )
    allowed = csr_array((np.ones(len(mine_at)), (mine_at, theirs_at)), shape)
    return Link(np.where(mine < most, mine, -1), theirs, allowed)


def _combined(columns: list[tuple[Codes, int]], size: int) -> Codes:
    key = np.zeros(size, dtype=np.int64)
    for code, width in columns:
        _, key = np.unique(key * max(width, 1) + code, return_inverse=True)
    return np.asarray(key.reshape(-1), dtype=np.int64)


def halves(table: pa.Table, policy: Policy, key: bytes) -> Flags:
    """Persons split at random, all records of one on one side: true for those a reader learns from."""
    person = policy.person
    named = person is not None and person in table.column_names
    names = table[person].to_pylist() if named else range(table.num_rows)
    bits = [hashlib.blake2b(str(who).encode(), digest_size=1, key=key).digest()[0] & 1 for who in names]
    return np.array(bits, dtype=np.bool_)
