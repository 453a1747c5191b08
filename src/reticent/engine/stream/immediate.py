"""What `delay-free` and `sealed` share: every record is released in the call that brings it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
import pyarrow as pa

from reticent import _core
from reticent.engine.base import check_batch
from reticent.engine.snapshot import pack, unpack
from reticent.engine.stream.contract import Groups, Placed, StreamPublisher
from reticent.engine.stream.design import Prior, sensitive_column, starting_prior
from reticent.engine.stream.records import RecordReader, Records
from reticent.engine.stream.values import Values
from reticent.errors import DAMAGED, StateError
from reticent.release import Counts, Guarantee, Release

if TYPE_CHECKING:
    import numpy.typing as npt

    from reticent.engine.rng import Rng
    from reticent.engine.stream.design import Label
    from reticent.policy import Policy

T = TypeVar("T")
_NAME = 17
# The design is renewed whenever the evidence behind it has doubled, from a small stream's thousand records on, until more
# evidence changes nothing that matters.
_FIRST_LOOK = 1_000
_LAST_LOOK = 1_000_000


class Immediate(StreamPublisher):
    """A publisher that holds nothing back."""

    def __init__(self, policy: Policy, *, rng: Rng, shard: int = 0) -> None:
        super().__init__(policy, rng=rng, shard=shard)
        self.l = policy.l_of(self.kind)
        self.prior: Prior = starting_prior(policy)
        self.values = Values(self._domain())
        self._reader = RecordReader(policy, sensitive_column(policy), rng.key("stream records"), self.values)
        self._names = [*policy.quasi, *policy.plain]
        self._told = self._met = len(self.values)
        self._hash = policy.hash
        self._next = 0
        self._rows = 0
        self._broken = False
        self._key = rng.key("stream choices")
        self._evidence = sum(self.prior.counts.values()) if self.prior.source == "past" else 0
        self._look_at = max(self._evidence, _FIRST_LOOK)
        self._start()

    @abstractmethod
    def _domain(self) -> list[Label]:
        """The values known before the first record, in published order."""

    @abstractmethod
    def _start(self) -> None:
        """Builds the native state."""

    @abstractmethod
    def _put(self, records: Records) -> Groups:
        """Places records of one piece of a batch, between two looks at the evidence."""

    @abstractmethod
    def _renew(self) -> None:
        """The evidence has doubled: makes the best of it."""

    @abstractmethod
    def _room(self) -> int:
        """Records until the next thing to look at, the evidence aside."""

    def _place(self, records: Records) -> Groups:
        """Places a batch piece by piece, so that what is looked at when does not depend on how batches are cut."""
        at, size, rows = 0, len(records), self._rows
        breaks = self._first_met(records.codes)
        if not breaks and size < min(self._room(), self._look_at - rows):
            return self._put(records)
        parts: list[Groups] = []
        while at < size or not parts:
            end = min([size, at + self._room(), at + max(self._look_at - rows, 0) or size])
            end = min([end, *(row for row in breaks if row > at)])
            parts.append(self._put(records[at:end]))
            rows += end - at
            at = end
            if rows >= self._look_at:
                self._look(rows)
        return Groups.joined(parts)

    def _first_met(self, codes: npt.NDArray[np.int32]) -> list[int]:
        """The rows that bring a value nobody has met before."""
        if not len(codes) or codes.max() < self._met:
            return []
        strange = np.flatnonzero(codes >= self._met)
        _, first = np.unique(codes[strange], return_index=True)
        self._met = int(codes.max()) + 1
        return [int(row) for row in strange[first]]

    def _look(self, rows: int) -> None:
        self._look_at = self._evidence + 2 * rows if rows < _LAST_LOOK else 1 << 62
        if self.policy.stream.epochs == "auto":
            self._renew()

    def _known(self, seen: npt.NDArray[np.uint64]) -> dict[Label, int]:
        """All evidence so far: the past and the stream."""
        past = self.prior.counts if self.prior.source == "past" else {}
        return {label: past.get(label, 0) + int(seen[code]) for code, label in enumerate(self.values.labels)}

    @property
    def metrics(self) -> dict[str, float]:
        """SAU beside its limit and what else an operator watches."""
        return self._figures(self._moment())

    @abstractmethod
    def _moment(self) -> tuple[Any, ...]:
        """How the stream stands now: enough to make its figures later."""

    @abstractmethod
    def _figures(self, moment: tuple[Any, ...]) -> dict[str, float]:
        """The figures of a moment."""

    @abstractmethod
    def _claims(self) -> Guarantee:
        """What every release of this stream claims."""

    @cached_property
    def guarantee(self) -> Guarantee:
        """What every release of this stream claims."""
        return self._claims()

    @property
    def counts(self) -> Counts:
        """Everything that came in has been published."""
        return Counts(self._rows, self._rows, 0, 0)

    def place(self, batch: pa.Table, seqs: npt.NDArray[np.uint64] | None = None) -> Placed:
        """Places records for good; after an error the publisher is of no use any more."""
        records = self._read(batch, seqs)
        # Whatever the journal has not told yet goes into this entry, also what a refused batch has taught.
        if len(self.values) > self._told:
            records = replace(records, labels=tuple(self.values.labels[self._told :]))
            self._told = len(self.values)
        groups = self._settle(records)
        return Placed(records.seqs, groups, self.values.labels, journal=records.to_bytes())

    def _read(self, batch: pa.Table, seqs: npt.NDArray[np.uint64] | None) -> Records:
        if not self._reader.knows(batch.schema):
            batch = check_batch(batch, self.policy)
        if seqs is None:
            seqs = np.arange(self._next, self._next + batch.num_rows, dtype=np.uint64)
        return self._reader.read(batch, seqs)

    def _settle(self, records: Records) -> Groups:
        if self._broken:
            raise StateError("The stream stopped after an error.", hint="Restore it from its last snapshot.")
        self._broken = True
        groups = self._place(records)
        self._broken = False
        size = len(records)
        self._rows += size
        if size:
            self._next = int(records.seqs[-1]) + 1
        return groups

    def replay(self, journal: bytes) -> Iterator[Placed]:
        """Places the records of a journal again."""
        for records in Records.all_from(journal):
            for label in records.labels:
                self.values.code(label)
            self._told = len(self.values)
            yield Placed(records.seqs, self._settle(records), self.values.labels, journal=b"")

    def push(self, batch: pa.Table) -> list[Release]:
        """Releases every record at once."""
        placed = self.place(batch)
        return [self._release(batch, placed)] if len(placed.seqs) else []

    def end(self) -> Placed:
        """Nothing is held, so nothing is left."""
        return Placed(np.empty(0, dtype=np.uint64), journal=b"")

    def close(self) -> list[Release]:
        """Nothing is held, so nothing is left."""
        return []

    def _release(self, batch: pa.Table, placed: Placed) -> Release:
        """A placed batch as a release of two tables, `group` and `tuple`, which are built when they are asked for."""
        size, moment, groups = len(placed.seqs), self._moment(), placed.groups
        assert groups is not None  # noqa: S101 - this kind of engine always has groups

        def tables() -> dict[str, pa.Table]:
            columns = batch.select(self._names)
            return {
                "group": group_table(groups, self.values.array),
                "tuple": tuple_table(columns, placed.seqs, groups),
            }

        return Release(
            kind=self.kind,
            shape="stream",
            method=self.method,
            tables=OnDemand(tables),
            guarantee=self.guarantee,
            counts=Counts(size, size, 0, 0),
            policy_hash=self._hash,
            metrics=OnDemand(lambda: self._figures(moment)),
            seeded=self.rng.seeded,
        )

    def snapshot(self) -> bytes:
        """The whole private state: secret key, values, open groups."""
        if self._broken:
            raise StateError("The stream stopped after an error.", hint="Restore it from its last snapshot.")
        state = {"method": self.method, "shard": self.shard, "next": self._next, "rows": self._rows}
        state |= {"labels": self.values.labels, "look_at": self._look_at, "more": self._more()}
        return pack(self.policy, self.rng, state, blobs={"core": self._core_state()})

    @classmethod
    def restore(cls, policy: Policy, state: bytes) -> Self:
        """Goes on from a snapshot; refuses one of another policy or method."""
        rng, saved, _, blobs = unpack(policy, state)
        if saved.get("method") != cls.method:
            raise StateError("The snapshot was made by another method.", hint="Use the policy it was made with.")
        publisher = cls(policy, rng=rng, shard=saved["shard"])
        for label in saved["labels"]:
            publisher.values.code(label)
        publisher._told = publisher._met = len(publisher.values)
        publisher._next, publisher._rows, publisher._look_at = saved["next"], saved["rows"], saved["look_at"]
        try:
            publisher._load(saved["more"], blobs["core"])
        except ValueError as error:
            raise StateError(f"The snapshot is damaged: {error}.", hint=DAMAGED) from None
        return publisher

    @abstractmethod
    def _more(self) -> dict[str, Any]:
        """What a snapshot needs beside the native state."""

    @abstractmethod
    def _core_state(self) -> bytes:
        """The native state."""

    @abstractmethod
    def _load(self, more: dict[str, Any], core: bytes) -> None:
        """Takes a snapshot's parts in."""


class OnDemand(Mapping[str, T]):
    """Values by name, made when the first is asked for: who only wants the lines never pays for the tables."""

    __slots__ = ("_make", "_values")

    def __init__(self, make: Callable[[], Mapping[str, T]]) -> None:
        self._make = make
        self._values: Mapping[str, T] | None = None

    def _all(self) -> Mapping[str, T]:
        if self._values is None:
            self._values = self._make()
        return self._values

    def __getitem__(self, name: str) -> T:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


def tuple_table(columns: pa.Table, seqs: npt.NDArray[np.uint64], placed: Groups) -> pa.Table:
    """The records of a placed batch, each with its group and position."""
    arrays = [group_names(placed.groups), pa.array(seqs), *columns.columns]
    return pa.Table.from_arrays(arrays, names=["group", "seq", *columns.column_names])


def group_table(placed: Groups, labels: pa.Array) -> pa.Table:
    """The groups that a batch opened, one row per candidate."""
    each = np.repeat(placed.opened, np.diff(placed.offsets))
    return pa.Table.from_arrays(
        [group_names(each), labels.take(pa.array(placed.codes)), pa.array(placed.counts)],
        names=["group", "value", "count"],
    )


def group_names(ids: npt.NDArray[np.uint64]) -> pa.Array:
    """The published names of groups."""
    offsets = np.arange(0, _NAME * len(ids) + 1, _NAME, dtype=np.int32)
    data = _core.stream.group_names(ids)
    return pa.StringArray.from_buffers(len(ids), pa.py_buffer(offsets), pa.py_buffer(data))


def sau_limit(l: int, top: float) -> float:
    """No release with l candidates of equal share can have less counterfeits: 1 - 1/(l * p_max)."""
    return max(0.0, 1 - 1 / (l * top)) if top else 0.0
