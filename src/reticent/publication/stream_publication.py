"""One stream, or one shard of a stream, in memory: the engine, the judge of its batches, the writer of its lines.

Every door uses this: the command line and the service, a Kafka partition and a shard of Spark differ in where records come
from and in how a step becomes durable, and in nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import orjson
import pyarrow as pa

from reticent import _core
from reticent.arrays import UInt64s
from reticent.engine.rng import Rng
from reticent.engine.stream.base import PlacedBatch, StreamPublisher, stream_class
from reticent.errors import CORRUPT_HINT, GuaranteeError, StateError
from reticent.policy import Policy
from reticent.publication.lines import LineWriter
from reticent.publication.records import Batch, RecordReader, RejectedRecord
from reticent.release import person_hashes
from reticent.release.codebook import stream_codebook
from reticent.store import Store
from reticent.verify.stream.incremental import GroupVerifier, OpenedGroups, RecordVerifier
from reticent.verify.veil.incremental import VeilVerifier

# A journal is cheap to write and slow to replay: at most this much, or as much as the snapshot itself.
_MAX_JOURNAL = 16 << 20


@dataclass(frozen=True, repr=False)
class ReleasedBatch:
    """What came of a batch.

    Attributes:
        lines: the lines of the batch's own records.
        late: lines of records that were held, of this batch or of earlier ones.
        journal: the change of the state; None where the state has to be kept whole.
        records: how many records were taken in.
        bad: the records that were set aside.
    """

    lines: bytes = b""
    late_lines: bytes = b""
    journal: bytes | None = b""
    records: int = 0
    rejected: Sequence[RejectedRecord] = ()


class StreamPublication:
    """One stream, or one shard of a stream, in memory.

    Args:
        policy: the policy of the stream.
        rng: its key; by default that of the state.
        shard: its number, where a stream has several.
        state: a snapshot to go on from.
    """

    def __init__(self, policy: Policy, *, rng: Rng | None = None, shard: int = 0, state: bytes | None = None) -> None:
        self.policy = policy
        kind = stream_class(policy.stream.method)
        engine, judges = _split_state(state) if state is not None else (None, [])
        self.engine: StreamPublisher = (
            kind(policy, rng=rng or Rng.fresh(), shard=shard) if engine is None else kind.restore(policy, engine)
        )
        own = self.engine.rng
        if rng is not None and (own.secret, own.veil_secret, self.engine.shard) != (rng.secret, rng.veil_secret, shard):
            raise StateError(
                "The state of the stream was made under another key.",
                hint="Start with the store that the stream was begun with: a new key would publish persons anew.",
            )
        self.reader = RecordReader(policy, self.engine.numbers)
        self._lines = LineWriter(policy)
        self._verifier = _BatchVerifier(policy, self.engine.metadata, judges, key=own.key("judge persons"))
        self._next = self._verifier.next_seq
        self._journal, self._whole = 0, len(state or b"")
        self._refuted = False

    @classmethod
    def load(cls, policy: Policy, store: Store, name: str, *, seed: int | None = None) -> Self:
        """The stream of a name as the store has it, or a new one."""
        saved = store.snapshot(name)
        rng = keys_of(policy, store, name, seed=seed)
        if saved is None:
            return cls(policy, rng=rng)
        publication = cls(policy, state=saved.payload)
        for journal in saved.deltas:
            publication.replay(journal)
        return publication

    def codebook(self) -> bytes:
        """What recipients need to read the lines: one JSON object on one line."""
        engine = self.engine
        book = stream_codebook(self.policy, method=engine.method, guarantee=engine.guarantee, metadata=engine.metadata)
        return orjson.dumps(book) + b"\n"

    def take(self, batch: Batch, seqs: UInt64s | None = None) -> ReleasedBatch:
        """Releases a batch, records at their positions in the input; by default it follows the last one.

        Raises:
            GuaranteeError: the judge refutes what the engine has done; nothing may be delivered, and the publication is
                of no use any more.
        """
        if seqs is None:
            seqs = (batch.rows + self._next).astype(np.uint64)
            self._next += batch.total
        if not batch.table.num_rows:
            return ReleasedBatch(rejected=batch.rejected)
        self._verifier.note_persons(batch.table, seqs)
        released = self._verify_batch(self.engine.place(self._table(batch), seqs), batch)
        self._journal += len(released.journal or b"")
        return released

    def close(self) -> ReleasedBatch:
        """The input has ended: what is held is released or suppressed."""
        return self._verify_batch(self.engine.end(), self.reader.empty_batch())

    def _table(self, batch: Batch) -> pa.Table:
        table = batch.table
        for name in self.engine.carried_columns:
            table = table.set_column(table.column_names.index(name), name, batch.token_column(name))
        return table

    def _verify_batch(self, placed: PlacedBatch, batch: Batch) -> ReleasedBatch:
        if self._refuted:
            raise StateError("The stream stopped after an error.", hint="Start it again from its store.")
        self._refuted = True
        self._verifier.verify_batch(placed)
        self._refuted = False
        lines, late = self._lines.write_batch(batch, placed), self._lines.write_records(placed)
        return ReleasedBatch(lines, late, placed.journal, batch.table.num_rows, batch.rejected)

    # State

    def replay(self, journal: bytes) -> None:
        """Takes in again what was published before."""
        for placed in self.engine.replay(journal):
            self._verifier.verify_batch(placed)
            self._next = max(self._next, int(placed.seqs[-1]) + 1)
        self._journal += len(journal)

    @property
    def snapshot_due(self) -> bool:
        """Whether the journal since the last snapshot is longer than the state is worth."""
        return self._journal > max(_MAX_JOURNAL, self._whole)

    @property
    def snapshot_cheaper(self) -> bool:
        """Whether the journal since the last snapshot is as long as the state: then it is cheaper to write the state."""
        return self._journal >= self._whole

    def snapshot(self) -> bytes:
        """The whole private state; the journal begins anew behind it."""
        parts = [self.engine.snapshot(), *self._verifier.snapshot(self._next)]
        state = b"".join(part for piece in parts for part in (len(piece).to_bytes(8, "little"), piece))
        self._journal, self._whole = 0, len(state)
        return state


def keys_of(policy: Policy, store: Store, name: str, *, seed: int | None = None) -> Rng:
    """The keys of a stream: its own, and that of the house, which belongs to one l and one prior for life."""
    return Rng(store.key(name), veil_secret=veil_key_of(policy, store)) if seed is None else Rng.from_seed(seed)


def veil_key_of(policy: Policy, store: Store) -> bytes:
    """The key of the house; none for methods without. Refuses another l or prior than the house has."""
    digest = stream_class(policy.stream.method).pin_digest(policy)
    return store.veil_key(digest) if digest else b""


def _split_state(state: bytes) -> tuple[bytes, list[bytes]]:
    """The parts of a snapshot: the engine's, and the judge's."""
    parts, at = [], 0
    while at < len(state):
        size = int.from_bytes(state[at : at + 8], "little")
        parts.append(state[at + 8 : at + 8 + size])
        at += 8 + size
    if len(parts) != 5 or at != len(state):  # the engine, three judges, the position
        raise StateError("The snapshot is damaged.", hint=CORRUPT_HINT)
    return parts[0], parts[1:]


class _BatchVerifier:
    """Asks the judge about every batch, in the policy's terms and not in those of the engine."""

    def __init__(self, policy: Policy, metadata: Mapping[str, Any], state: Sequence[bytes] = (), *, key: bytes) -> None:
        self._quasi, self._sensitive = policy.quasi, policy.sensitive[0]
        asked = policy.privacy.l is not None or policy.stream.l is not None
        self._groups = GroupVerifier(policy.l_of("stream"), policy.stream.retire_after)
        # Only generalised records wait; their persons are known under a key of the judge's own.
        self._person, self._key = (policy.person if policy.stream.method == "castle" else None), key
        waiting = policy.stream.delta + 1 if self._person is not None else 0
        self._records = RecordVerifier(policy.privacy.k or 1, policy.l_of("stream") if asked else 1, waiting)
        self._veil = (
            VeilVerifier(policy, metadata["veil"], _core.verify.TrajectoryVerifier) if "veil" in metadata else None
        )
        self.next_seq = 0
        if state:
            self._groups.restore(state[0])
            self._records.restore(state[1])
            if self._veil is not None:
                self._veil.restore(state[2])
            self.next_seq = int(state[3])

    def note_persons(self, table: pa.Table, seqs: UInt64s) -> None:
        """Learns whose records come, where that matters later."""
        if self._person is not None:
            self._records.add_persons(
                seqs, person_hashes(table.column(self._person).cast("string").to_pylist(), self._key)
            )

    def verify_batch(self, placed: PlacedBatch) -> None:
        """Raises when something of a batch must not be delivered."""
        offences: list[str] = []
        if placed.groups is not None:
            opened = OpenedGroups(*placed.groups[1:])
            offences += self._groups.violations(placed.seqs, placed.groups.groups, opened, placed.labels)
        if placed.veiled is not None:
            offences += ["veiled"] if self._veil is None else self._veil.violations(placed.seqs, placed.veiled)
        if placed.records is not None:
            offences += self._records.violations(placed.records, self._quasi, self._sensitive)
        if offences:
            raise GuaranteeError(
                f"The judge refuted a batch of the stream ({', '.join(offences)}); nothing of it was delivered.",
                hint="This is a bug of the engine: report it, with the method and the settings of the stream.",
            )

    def snapshot(self, next_seq: int) -> list[bytes]:
        veil = b"" if self._veil is None else self._veil.snapshot()
        return [self._groups.snapshot(), self._records.snapshot(), veil, str(next_seq).encode()]
