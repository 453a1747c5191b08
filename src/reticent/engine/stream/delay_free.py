"""Delay-free anonymization with late validation, as published.

A record joins a random open group that still lacks its value and does not contain its quasi-identifiers. If there is none, the
record opens a group with l candidate values. Both are released at once.

Guarantee: every group offers at least l distinct candidates, none above 1/l of the total (Definition 3), and contains no
    quasi-identifier twice (Definition 5). An attacker who knows a person's quasi-identifiers, but not the algorithm, finds l
    candidates of equal share.
Not covered: an attacker who knows the algorithm: whether a record joins or opens a group discloses something about its value. Persons
    who come back are soon left with one candidate. Use `veil` against such attackers.
Cost: O(1) per record, O(l log domain) per opened group; memory of the open groups.
Reference: S. Kim, M. K. Sung, Y. D. Chung, "A framework to preserve the privacy of electronic health data streams",
    Journal of Biomedical Informatics 50, 2014.
Differences from the paper: candidates are l distinct values of count 1, drawn from a pool (`matched` by default). The counts of the
    paper's generation reveal the true value, and the generation hardly ever ends where a value's share is close to 1/l; it remains as
    `generation: literal`. Candidates are published sorted. Groups older than `retire_after` are closed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from reticent import _core
from reticent.arrays import Int32s, UInt64s
from reticent.engine.base import check_batch
from reticent.engine.rng import Rng
from reticent.engine.snapshot import pack
from reticent.engine.stream.base import Groups, ImmediatePublisher, PlacedBatch
from reticent.engine.stream.records import RecordHasher, Records
from reticent.engine.stream.tables import OnDemand, group_table, tuple_table
from reticent.engine.stream.values import Values, sensitive_column, starting_counts, weights
from reticent.errors import GuaranteeError
from reticent.policy import Policy
from reticent.policy.cells import without_markers
from reticent.release import Guarantee, Release
from reticent.release.wording import AGAINST, DELAY_FREE, exclusions
from reticent.utility.stream import sau_limit

NOT_COVERED = exclusions(*DELAY_FREE)
# The pool is reweighted whenever the number of records behind it has doubled, first after a thousand records, until more records
# no longer matter.
_FIRST_REWEIGHT = 1_000
_LAST_REWEIGHT = 1_000_000


class DelayFree(ImmediatePublisher):
    """The paper's method."""

    method = "delay-free"

    def __init__(self, policy: Policy, *, rng: Rng, shard: int = 0) -> None:
        super().__init__(policy, rng=rng, shard=shard)
        self.l = policy.l_of(self.kind)
        self._initial_counts, past = starting_counts(policy)
        self._past = self._initial_counts if past else {}
        self.values = Values(sorted(self._initial_counts, key=lambda label: label or ""))
        key = rng.key("stream records")
        self._reader = RecordHasher(policy.quasi, policy.person, sensitive_column(policy), key, self.values)
        self._names = [*policy.quasi, *policy.plain]
        self._journal_labels = self._known_values = len(self.values)
        self._hash = policy.hash
        self._evidence = sum(self._past.values())
        self._reweigh_at = max(self._evidence, _FIRST_REWEIGHT)
        self._start()

    def _start(self) -> None:
        settings = self.policy.stream
        self._counts = [self._initial_counts[label] for label in self.values.labels]
        self._core = _core.stream.DelayFree(
            key=self.rng.key("stream choices"),
            shard=self.shard,
            l=self.l,
            pool=settings.pool,
            weights=weights(settings.pool, self._counts, self.l),
            rank=self.values.rank,
            retire_after=settings.retire_after,
            literal=settings.draw_limit if settings.generation == "literal" else 0,
        )
        self._size = len(self.values)

    # Placing

    def place(self, batch: pa.Table, seqs: UInt64s | None = None) -> PlacedBatch:
        """Place records; this cannot be undone."""
        records = self._read(batch, seqs)
        groups = self._place_records(records)
        # The entry has all labels that the journal lacks, also those of a refused batch.
        if len(self.values) > self._journal_labels:
            records = replace(records, labels=tuple(self.values.labels[self._journal_labels :]))
            self._journal_labels = len(self.values)
        return PlacedBatch(records.seqs, groups, labels=self.values.labels, journal=records.to_bytes())

    def _read(self, batch: pa.Table, seqs: UInt64s | None) -> Records:
        if not self._reader.knows(batch.schema):
            check_batch(batch, self.policy)
        return self._reader.read(batch, self._positions(batch, seqs))

    def _place_records(self, records: Records) -> Groups:
        self._begin()
        groups = self._place_pieces(records)
        self._finish(len(records), self._position_after(records.seqs))
        return groups

    def _place_pieces(self, records: Records) -> Groups:
        """Place a batch piece by piece, so that the result does not depend on how the input is cut into batches."""
        at, size, rows = 0, len(records), self._rows
        new_rows = self._new_value_rows(records.codes)
        if not new_rows and size < self._reweigh_at - rows:
            return self._push_records(records)
        parts: list[Groups] = []
        while at < size or not parts:
            end = min([size, at + max(self._reweigh_at - rows, 0) or size])
            end = min([end, *(row for row in new_rows if row > at)])
            parts.append(self._push_records(records[at:end]))
            rows += end - at
            at = end
            if rows >= self._reweigh_at:
                self._reweigh_pool(rows)
        return Groups.join(parts)

    def _new_value_rows(self, codes: Int32s) -> list[int]:
        """Return the rows with a value that occurs for the first time."""
        if self._known_values >= len(self.values) or not len(codes) or codes.max() < self._known_values:
            return []
        unknown = np.flatnonzero(codes >= self._known_values)
        _, first = np.unique(codes[unknown], return_index=True)
        self._known_values = int(codes.max()) + 1
        return [int(row) for row in unknown[first]]

    def _reweigh_pool(self, rows: int) -> None:
        """Reweight the pool to the records seen so far; the paper, too, takes the pool from the stream's past."""
        self._reweigh_at = self._evidence + 2 * rows if rows < _LAST_REWEIGHT else 1 << 62
        counts = self._core.value_counts().tolist()
        self._weigh([self._past.get(label, 0) + counts[code] for code, label in enumerate(self.values.labels)])

    def _push_records(self, records: Records) -> Groups:
        # A value is in the pool from its first record on, in whatever batches the input comes.
        if self._size < len(self.values):
            self._grow(int(records.codes.max(initial=-1)) + 1)
        try:
            return Groups.of(self._core.push(records.seqs, records.quasi, records.codes))
        except RuntimeError:
            raise GuaranteeError(
                f"generation: literal found no l-diverse candidates within {self.policy.stream.draw_limit:,} draws; "
                "nothing of this batch was published.",
                hint="Write generation: distinct, or lower l.",
            ) from None

    def _grow(self, size: int) -> None:
        if size > self._size:
            self._core.grow(self.values.rank_of(size))
            self._size = size

    def _weigh(self, counts: list[int]) -> None:
        self._counts = counts
        self._core.reweigh(weights(self.policy.stream.pool, counts, self.l))

    def replay(self, journal: bytes) -> Iterator[PlacedBatch]:
        """Place the records of a journal again."""
        for records in Records.iter_from(journal):
            for label in records.labels:
                self.values.code(label)
            self._journal_labels = len(self.values)
            yield PlacedBatch(records.seqs, self._place_records(records), labels=self.values.labels, journal=b"")

    # Figures and guarantee

    @cached_property
    def guarantee(self) -> Guarantee:
        """The guarantee of every release of this stream."""
        return Guarantee({"l": {"distinct": self.l, "frequency": self.l}}, AGAINST["delay-free"], NOT_COVERED)

    @property
    def metrics(self) -> dict[str, float]:
        """SAU with its limit, numbers of groups, and the information loss of equations (6) and (7)."""
        return self._figures_of(self._core.totals())

    def _figures_of(self, totals: _core.stream.Totals) -> dict[str, float]:
        tuples = totals.tuples
        figures = {
            "sau": 1 - tuples / totals.offered if totals.offered else 0.0,
            "sau_limit": sau_limit(self.l, totals.top / tuples if tuples else 0.0),
            "groups": totals.groups,
            "open_groups": totals.open,
            "retired_groups": totals.retired,
            "forced_open_rate": totals.groups / tuples if tuples else 0.0,
        }
        if self.policy.stream.generation == "distinct":
            figures["information_loss"] = (self.l - 1) / self.l / (len(self._reader.quasi) + 1)
        return figures

    # The contract of all engines

    def push(self, batch: pa.Table) -> list[Release]:
        """Release every record at once."""
        batch = without_markers(batch, self.policy.missing)
        records = self._read(batch, None)
        groups = self._place_records(records)  # without a journal
        return [self._release(batch, records.seqs, groups)] if len(records) else []

    def _release(self, batch: pa.Table, seqs: UInt64s, groups: Groups) -> Release:
        """Build a release with the tables `group` and `tuple`, which are made on first access."""
        totals = self._core.totals()

        def tables() -> dict[str, pa.Table]:
            columns = batch.select(self._names)
            return {"group": group_table(groups, self.values.array), "tuple": tuple_table(columns, seqs, groups)}

        return Release(
            kind=self.kind,
            shape="stream",
            method=self.method,
            tables=OnDemand(tables),
            guarantee=self.guarantee,
            records=self.counts_of(len(seqs)),
            policy_hash=self._hash,
            metrics=OnDemand(lambda: self._figures_of(totals)),
            seeded=self.rng.seeded,
        )

    def snapshot(self) -> bytes:
        """Return the whole private state: secret key, values, open groups."""
        self._refuse_after_error()
        state = {"method": self.method, "shard": self.shard, "next": self._next, "rows": self._rows}
        state |= {"labels": self.values.labels, "look_at": self._reweigh_at, "counts": self._counts}
        return pack(self.policy, self.rng, state, blobs={"core": self._core.snapshot()})

    def _resume(self, saved: dict[str, Any], _: dict[str, pa.Table], blobs: dict[str, bytes]) -> None:
        for label in saved["labels"]:
            self.values.code(label)
        self._journal_labels = self._known_values = len(self.values)
        self._rows, self._reweigh_at = saved["rows"], saved["look_at"]
        self._load(saved["counts"], blobs["core"])

    def _load(self, counts: list[int], core: bytes) -> None:
        self._grow(len(self.values))
        if len(counts) == self._size:
            self._weigh(counts)
        else:  # values that are newer than the pool's weights have no weight yet
            self._counts = counts
            old_weights = weights(self.policy.stream.pool, counts, self.l)
            self._core.reweigh(np.concatenate([old_weights, np.zeros(self._size - len(counts), dtype=np.uint64)]))
        self._core.restore(core)
