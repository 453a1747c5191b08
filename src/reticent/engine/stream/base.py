"""What every engine for streams adds to the contract: `place`, from which lines are written, and `replay` after a crash."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, cast

import numpy as np
import pyarrow as pa

from reticent.arrays import Int32s, Int64s, UInt16s, UInt32s, UInt64s
from reticent.engine import publisher_class
from reticent.engine.base import Publisher
from reticent.engine.rng import Rng
from reticent.engine.snapshot import unpack
from reticent.errors import CORRUPT_HINT, StateError
from reticent.policy import Policy
from reticent.release import RecordCounts, Release

if TYPE_CHECKING:
    from reticent import _core
    from reticent.engine.stream.records import PublishedColumn
    from reticent.engine.stream.values import Label


class Groups(NamedTuple):
    """Where records went: the group of each, and the groups opened, each before the record at row `at`."""

    groups: UInt64s
    opened: UInt64s
    at: Int64s
    offsets: Int64s
    codes: Int32s
    counts: Int32s

    @classmethod
    def of(cls, core: _core.stream.PlacedRecords) -> Groups:
        """What the core placed."""
        return cls(core.groups, core.opened, core.at, core.offsets, core.codes, core.counts)

    @staticmethod
    def join(parts: list[Groups]) -> Groups:
        """Several pieces of a batch as one."""
        if len(parts) == 1:
            return parts[0]
        rows = np.cumsum([0] + [len(part.groups) for part in parts])
        listed = np.cumsum([0] + [len(part.codes) for part in parts])
        zero = np.zeros(1, dtype=np.int64)
        return Groups(
            np.concatenate([part.groups for part in parts]),
            np.concatenate([part.opened for part in parts]),
            np.concatenate([part.at + rows[i] for i, part in enumerate(parts)]),
            np.concatenate([zero, *(part.offsets[1:] + listed[i] for i, part in enumerate(parts))]),
            np.concatenate([part.codes for part in parts]),
            np.concatenate([part.counts for part in parts]),
        )


class VeiledRecords(NamedTuple):
    """Records that are released each for itself.

    Attributes:
        published: quasi-identifiers that are released otherwise than they came.
        rows: of the prior.
        events: the number of each among the events of its person.
        candidates: l codes of the domain per record, in canonical order.
        names: pseudonyms, where the records of a person may be followed.
        persons: keyed hashes. Private: the judge follows persons by them.
    """

    published: Mapping[str, PublishedColumn]
    strata: UInt32s
    events: UInt32s
    candidates: UInt16s
    pseudonyms: UInt64s | None
    persons: UInt64s

    def __repr__(self) -> str:
        return f"Veiled({len(self.strata)} records)"


@dataclass(frozen=True, repr=False)
class PlacedBatch:
    """What came of a batch.

    Attributes:
        seqs: the positions of the records that were placed in groups.
        groups: where these records went; None for an engine that has no groups.
        veiled: what became of these records under a veil; None for an engine without.
        labels: the text of every candidate, by code.
        records: generalised records that are now safe, of this batch and of earlier ones.
        journal: what `replay` needs to do the same again; None where only a snapshot can tell.
    """

    seqs: UInt64s
    groups: Groups | None = None
    veiled: VeiledRecords | None = None
    labels: Sequence[Label] = ()
    records: pa.Table | None = None
    journal: bytes | None = None


class StreamPublisher(Publisher):
    """An engine for streams."""

    kind = "stream"
    carried_columns: tuple[str, ...] = ()
    """Columns that are held and given back as they came."""
    remembers_persons: ClassVar[bool] = False
    """Whether a person has to come back to the shard that saw her first."""

    def __init__(self, policy: Policy, *, rng: Rng, shard: int = 0) -> None:
        super().__init__(policy, rng=rng)
        self.shard = shard
        self._next = self._rows = 0

    @property
    def metadata(self) -> Mapping[str, Mapping[str, Any]]:
        """What a recipient needs to know before the first record."""
        return {}

    @property
    def numbers(self) -> tuple[str, ...]:
        """Quasi-identifiers whose cells have to be numbers."""
        return ()

    @abstractmethod
    def place(self, batch: pa.Table, seqs: UInt64s | None = None) -> PlacedBatch:
        """Takes records in for good, at their positions in the input (by default the next ones)."""

    @abstractmethod
    def end(self) -> PlacedBatch:
        """The input has ended: what is held is released or suppressed."""

    @abstractmethod
    def replay(self, journal: bytes) -> Iterator[PlacedBatch]:
        """Takes in again what journals tell, one behind the other: the same choices, hence the same groups."""

    def _positions(self, batch: pa.Table, seqs: UInt64s | None) -> UInt64s:
        """Those of a batch in the input: the next ones, unless they are told."""
        return np.arange(self._next, self._next + batch.num_rows, dtype=np.uint64) if seqs is None else seqs

    @classmethod
    def restore(cls, policy: Policy, state: bytes) -> Self:
        """Goes on from a snapshot; refuses one of another policy or method."""
        rng, saved, tables, blobs = unpack(policy, state)
        if saved.get("method") != cls.method:
            raise StateError("The snapshot was made by another method.", hint="Use the policy it was made with.")
        publisher = cls(policy, rng=rng, shard=saved["shard"])
        publisher._next = saved["next"]
        try:
            publisher._resume(saved, tables, blobs)
        except ValueError as error:
            raise StateError(f"The snapshot is damaged: {error}.", hint=CORRUPT_HINT) from None
        return publisher

    @abstractmethod
    def _resume(self, saved: dict[str, Any], tables: dict[str, pa.Table], blobs: dict[str, bytes]) -> None:
        """Takes what a snapshot holds; a ValueError says that it is damaged."""


class ImmediatePublisher(StreamPublisher):
    """An engine that releases each record in the call that brings it; after an error it is of no use any more."""

    _broken = False
    _last_counts = RecordCounts()

    @property
    def counts(self) -> RecordCounts:
        """Everything that came in has been published."""
        return RecordCounts(self._rows, self._rows, 0, 0)

    def end(self) -> PlacedBatch:
        """Nothing is held, so nothing is left."""
        return PlacedBatch(np.empty(0, dtype=np.uint64), journal=b"")

    def close(self) -> list[Release]:
        """Nothing is held, so nothing is left."""
        return []

    def counts_of(self, size: int) -> RecordCounts:
        """Those of a batch that is published as a whole; most batches are as large as the one before."""
        if self._last_counts.input != size:
            self._last_counts = RecordCounts(size, size, 0, 0)
        return self._last_counts

    def _position_after(self, seqs: UInt64s) -> int:
        """The position behind the last one of a batch."""
        return int(seqs[-1]) + 1 if len(seqs) else self._next

    # Not one context: making it takes longer than the step of a single record.

    def _begin(self) -> None:
        """A step begins; whatever ends it but `_done` ends the stream."""
        self._refuse_after_error()
        self._broken = True

    def _finish(self, size: int, after: int) -> None:
        """So many records are taken in, and the next one stands at `after`."""
        self._broken = False
        self._rows += size
        self._next = after

    def _refuse_after_error(self) -> None:
        if self._broken:
            raise StateError("The stream stopped after an error.", hint="Restore it from its last snapshot.")


def stream_class(method: str) -> type[StreamPublisher]:
    """The engine of a method."""
    return cast("type[StreamPublisher]", publisher_class("stream", method))
