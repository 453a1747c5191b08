"""One stream, or one shard of a stream, in memory: the engine, the verifier of its batches, the writer of its lines.

Every interface uses this: the command line, the service, a Kafka partition and a Spark shard differ only in the source of
the records and in how a step becomes durable.
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

# A journal is cheap to write and slow to replay: it grows to this size, or to the size of the snapshot.
_MAX_JOURNAL = 16 << 20


@dataclass(frozen=True, repr=False)
class ReleasedBatch:
    """The result of releasing a batch.

    Attributes:
        lines: the lines of the batch's own records.
        late_lines: the lines of records that were pending, from this batch or earlier ones.
        journal: the change of the state; None if a snapshot is needed.
        records: the number of accepted records.
        rejected: the rejected records.
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
        rng: its keys; by default those of the state.
        shard: the number of the shard.
        state: the snapshot to resume from.
    """

    def __init__(self, policy: Policy, *, rng: Rng | None = None, shard: int = 0, state: bytes | None = None) -> None:
        self.policy = policy
        kind = stream_class(policy.stream.method)
        engine, verifiers = _split_state(state) if state is not None else (None, [])
        self.engine: StreamPublisher = (
            kind(policy, rng=rng or Rng.fresh(), shard=shard) if engine is None else kind.restore(policy, engine)
        )
        own = self.engine.rng
        if rng is not None and (own.secret, own.veil_secret, self.engine.shard) != (rng.secret, rng.veil_secret, shard):
            raise StateError(
                "The state of the stream was written with another key.",
                hint="Use the store of the stream's first run: a new key would publish the same people a second time.",
            )
        self.reader = RecordReader(policy, self.engine.numbers)
        self._lines = LineWriter(policy)
        self._verifier = _BatchVerifier(policy, self.engine.metadata, verifiers, key=own.key("judge persons"))
        self._next = self._verifier.next_seq
        self._journal, self._whole = 0, len(state or b"")
        self._refuted = False

    @classmethod
    def load(cls, policy: Policy, store: Store, name: str, *, seed: int | None = None) -> Self:
        """Load the named stream from the store, or create it."""
        saved = store.snapshot(name)
        rng = keys_of(policy, store, name, seed=seed)
        if saved is None:
            return cls(policy, rng=rng)
        publication = cls(policy, state=saved.payload)
        for journal in saved.deltas:
            publication.replay(journal)
        return publication

    def codebook(self) -> bytes:
        """Return the codebook of the lines: one JSON object on one line."""
        engine = self.engine
        book = stream_codebook(self.policy, method=engine.method, guarantee=engine.guarantee, metadata=engine.metadata)
        return orjson.dumps(book) + b"\n"

    def take(self, batch: Batch, seqs: UInt64s | None = None) -> ReleasedBatch:
        """Release a batch. `seqs` are the positions of its records; by default it follows the last batch.

        Raises:
            GuaranteeError: the verifier refutes the engine's output; nothing is delivered, and this object cannot be used again.
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
        """Release or suppress the pending records at the end of the input."""
        return self._verify_batch(self.engine.end(), self.reader.empty_batch())

    def _table(self, batch: Batch) -> pa.Table:
        table = batch.table
        for name in self.engine.carried_columns:
            table = table.set_column(table.column_names.index(name), name, batch.token_column(name))
        return table

    def _verify_batch(self, placed: PlacedBatch, batch: Batch) -> ReleasedBatch:
        if self._refuted:
            raise StateError("The stream has stopped after an error.", hint="Start it again from its store.")
        self._refuted = True
        self._verifier.verify_batch(placed)
        self._refuted = False
        lines, late = self._lines.write_batch(batch, placed), self._lines.write_records(placed)
        return ReleasedBatch(lines, late, placed.journal, batch.table.num_rows, batch.rejected)

    # State

    def replay(self, journal: bytes) -> None:
        """Replay a journal of batches that were published before."""
        for placed in self.engine.replay(journal):
            self._verifier.verify_batch(placed)
            self._next = max(self._next, int(placed.seqs[-1]) + 1)
        self._journal += len(journal)

    @property
    def snapshot_due(self) -> bool:
        """Whether the journal since the last snapshot is too long."""
        return self._journal > max(_MAX_JOURNAL, self._whole)

    @property
    def snapshot_cheaper(self) -> bool:
        """Whether the journal is as long as the last snapshot, so that a new snapshot is cheaper."""
        return self._journal >= self._whole

    def snapshot(self) -> bytes:
        """Return the whole private state, and start a new journal."""
        parts = [self.engine.snapshot(), *self._verifier.snapshot(self._next)]
        state = b"".join(part for piece in parts for part in (len(piece).to_bytes(8, "little"), piece))
        self._journal, self._whole = 0, len(state)
        return state


def keys_of(policy: Policy, store: Store, name: str, *, seed: int | None = None) -> Rng:
    """Return the keys of a stream: its own, and the veil key, which belongs to one l and one prior."""
    return Rng(store.key(name), veil_secret=veil_key_of(policy, store)) if seed is None else Rng.from_seed(seed)


def veil_key_of(policy: Policy, store: Store) -> bytes:
    """Return the veil key, empty for other methods. Refuse an l or a prior other than those pinned in the store."""
    digest = stream_class(policy.stream.method).pin_digest(policy)
    return store.veil_key(digest) if digest else b""


def _split_state(state: bytes) -> tuple[bytes, list[bytes]]:
    """Split a snapshot into the parts of the engine and of the verifiers."""
    parts, at = [], 0
    while at < len(state):
        size = int.from_bytes(state[at : at + 8], "little")
        parts.append(state[at + 8 : at + 8 + size])
        at += 8 + size
    if len(parts) != 5 or at != len(state):  # the engine, three verifiers, the position
        raise StateError("The snapshot of the stream is corrupt.", hint=CORRUPT_HINT)
    return parts[0], parts[1:]


class _BatchVerifier:
    """Verifies every batch against the policy, independently of the engine."""

    def __init__(self, policy: Policy, metadata: Mapping[str, Any], state: Sequence[bytes] = (), *, key: bytes) -> None:
        self._quasi, self._sensitive = policy.quasi, policy.sensitive[0]
        asked = policy.privacy.l is not None or policy.stream.l is not None
        self._groups = GroupVerifier(policy.l_of("stream"), policy.stream.retire_after)
        # Only generalized records can be pending; the verifier hashes their persons with its own key.
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
        """Note the persons of records that may be pending."""
        if self._person is not None:
            self._records.add_persons(
                seqs, person_hashes(table.column(self._person).cast("string").to_pylist(), self._key)
            )

    def verify_batch(self, placed: PlacedBatch) -> None:
        """Raise a GuaranteeError if a batch must not be delivered."""
        violations: list[str] = []
        if placed.groups is not None:
            opened = OpenedGroups(*placed.groups[1:])
            violations += self._groups.violations(placed.seqs, placed.groups.groups, opened, placed.labels)
        if placed.veiled is not None:
            violations += ["veiled"] if self._veil is None else self._veil.violations(placed.seqs, placed.veiled)
        if placed.records is not None:
            violations += self._records.violations(placed.records, self._quasi, self._sensitive)
        if violations:
            raise GuaranteeError(
                f"The verifier refuted a batch of the stream ({', '.join(violations)}); nothing of it was delivered.",
                hint="Report this as a bug of the engine, with the method and the settings of the stream.",
            )

    def snapshot(self, next_seq: int) -> list[bytes]:
        veil = b"" if self._veil is None else self._veil.snapshot()
        return [self._groups.snapshot(), self._records.snapshot(), veil, str(next_seq).encode()]
