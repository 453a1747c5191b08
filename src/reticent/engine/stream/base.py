"""The contract of engines for streams: `place` takes records in, `replay` does so again after a crash."""

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
    """The group of each record, and the groups that were opened, each before the record at row `at`."""

    groups: UInt64s
    opened: UInt64s
    at: Int64s
    offsets: Int64s
    codes: Int32s
    counts: Int32s

    @classmethod
    def of(cls, core: _core.stream.PlacedRecords) -> Groups:
        """Convert the core's result."""
        return cls(core.groups, core.opened, core.at, core.offsets, core.codes, core.counts)

    @staticmethod
    def join(parts: list[Groups]) -> Groups:
        """Join the results of several pieces of a batch."""
        if len(parts) == 1:
            return parts[0]
        rows = np.cumsum([0] + [len(part.groups) for part in parts])
        codes = np.cumsum([0] + [len(part.codes) for part in parts])
        zero = np.zeros(1, dtype=np.int64)
        return Groups(
            np.concatenate([part.groups for part in parts]),
            np.concatenate([part.opened for part in parts]),
            np.concatenate([part.at + rows[i] for i, part in enumerate(parts)]),
            np.concatenate([zero, *(part.offsets[1:] + codes[i] for i, part in enumerate(parts))]),
            np.concatenate([part.codes for part in parts]),
            np.concatenate([part.counts for part in parts]),
        )


class VeiledRecords(NamedTuple):
    """Records that are released one by one.

    Attributes:
        published: quasi-identifiers whose published values differ from the input.
        strata: the stratum of the prior of each record.
        events: the number of each record among the events of its person.
        candidates: l codes of the domain per record, in canonical order.
        pseudonyms: pseudonyms of persons, where the policy allows linking their records.
        persons: keyed hashes. Private: the verifier follows persons by them.
    """

    published: Mapping[str, PublishedColumn]
    strata: UInt32s
    events: UInt32s
    candidates: UInt16s
    pseudonyms: UInt64s | None
    persons: UInt64s

    def __repr__(self) -> str:
        return f"VeiledRecords({len(self.strata)} records)"


@dataclass(frozen=True, repr=False)
class PlacedBatch:
    """The result of placing a batch.

    Attributes:
        seqs: the positions of the records that were placed.
        groups: the groups of these records; None for an engine without groups.
        veiled: the veiled records; None for an engine without a veil.
        labels: the text of every candidate, by code.
        records: generalized records of this and earlier batches that can now be released.
        journal: the input of `replay`; None where only a snapshot restores the state.
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
    """Columns that are stored with pending records and released unchanged."""
    remembers_persons: ClassVar[bool] = False
    """Whether a person must always come to the same shard."""

    def __init__(self, policy: Policy, *, rng: Rng, shard: int = 0) -> None:
        super().__init__(policy, rng=rng)
        self.shard = shard
        self._next = self._rows = 0

    @property
    def metadata(self) -> Mapping[str, Mapping[str, Any]]:
        """The metadata that a recipient needs before the first record."""
        return {}

    @property
    def numbers(self) -> tuple[str, ...]:
        """The quasi-identifiers that must be numbers."""
        return ()

    @abstractmethod
    def place(self, batch: pa.Table, seqs: UInt64s | None = None) -> PlacedBatch:
        """Take records in, at their positions in the input (by default the next ones); this cannot be undone."""

    @abstractmethod
    def end(self) -> PlacedBatch:
        """Release or suppress the pending records at the end of the input."""

    @abstractmethod
    def replay(self, journal: bytes) -> Iterator[PlacedBatch]:
        """Place the records of journal entries again, with the same choices and so the same groups."""

    def _positions(self, batch: pa.Table, seqs: UInt64s | None) -> UInt64s:
        """Return the given positions of a batch, or the next ones."""
        return np.arange(self._next, self._next + batch.num_rows, dtype=np.uint64) if seqs is None else seqs

    @classmethod
    def restore(cls, policy: Policy, state: bytes) -> Self:
        """Continue from a snapshot; refuses one of another policy or method."""
        rng, saved, tables, blobs = unpack(policy, state)
        if saved.get("method") != cls.method:
            raise StateError("The snapshot was made by another method.", hint="Use the policy of the snapshot.")
        publisher = cls(policy, rng=rng, shard=saved["shard"])
        publisher._next = saved["next"]
        try:
            publisher._resume(saved, tables, blobs)
        except ValueError as error:
            raise StateError(f"The snapshot is corrupt: {error}.", hint=CORRUPT_HINT) from None
        return publisher

    @abstractmethod
    def _resume(self, saved: dict[str, Any], tables: dict[str, pa.Table], blobs: dict[str, bytes]) -> None:
        """Load the contents of a snapshot; raises ValueError if they are corrupt."""


class ImmediatePublisher(StreamPublisher):
    """An engine that releases each record in the call that brings it; after an error it refuses further records."""

    _broken = False
    _last_counts = RecordCounts()

    @property
    def counts(self) -> RecordCounts:
        """All input records are published."""
        return RecordCounts(self._rows, self._rows, 0, 0)

    def end(self) -> PlacedBatch:
        """Return an empty batch: nothing is pending."""
        return PlacedBatch(np.empty(0, dtype=np.uint64), journal=b"")

    def close(self) -> list[Release]:
        """Return no release: nothing is pending."""
        return []

    def counts_of(self, size: int) -> RecordCounts:
        """Return the counts of a fully published batch, cached because most batches have the same size."""
        if self._last_counts.input != size:
            self._last_counts = RecordCounts(size, size, 0, 0)
        return self._last_counts

    def _position_after(self, seqs: UInt64s) -> int:
        """Return the position after the last record of a batch."""
        return int(seqs[-1]) + 1 if len(seqs) else self._next

    # Two methods instead of a context manager, which takes longer than the step of a single record.

    def _begin(self) -> None:
        """Begin a step; the stream is broken unless `_finish` ends the step."""
        self._refuse_after_error()
        self._broken = True

    def _finish(self, size: int, after: int) -> None:
        """End a step that took in `size` records; the next record has the position `after`."""
        self._broken = False
        self._rows += size
        self._next = after

    def _refuse_after_error(self) -> None:
        if self._broken:
            raise StateError("The stream stopped after an error.", hint="Restore the stream from its last snapshot.")


def stream_class(method: str) -> type[StreamPublisher]:
    """Return the engine of a method."""
    return cast("type[StreamPublisher]", publisher_class("stream", method))
