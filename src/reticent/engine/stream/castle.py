"""CASTLE: clusters of pending records, released with generalized quasi-identifiers within a delay of delta records.

Guarantee: against an attacker who knows everyone's quasi-identifiers, but not the order of arrival, at least k persons (not records)
    share every published combination of quasi-identifiers, with l different values where l is set. No delay exceeds delta records.
Not covered: an attacker who knows the order of arrival or the algorithm; attribute disclosure without l; persons who come
    back in another cluster (their clusters can be intersected).
Cost: O(beta) per record and O(n^2) in the size n of a cluster that is split; memory of delta records.
Reference: J. Cao, B. Carminati, E. Ferrari, K.-L. Tan, "CASTLE: continuously anonymizing data streams", IEEE Transactions
    on Dependable and Secure Computing 8(3), 2011.
Differences from the paper: suppressed records are not published, not even as `*`; at most `reuse` published clusters are reused;
    one splitting rule serves k and l: a random record takes its nearest neighbors that add a missing value or a new person,
    until the part is large enough; the range of a number is the range seen so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reticent import _core
from reticent.arrays import Bools, Floats, UInt32s, UInt64s
from reticent.encode import Dictionary
from reticent.encode.columns import to_native
from reticent.engine.base import check_batch
from reticent.engine.rng import Rng
from reticent.engine.snapshot import pack
from reticent.engine.stream.base import PlacedBatch, StreamPublisher
from reticent.engine.stream.records import RecordHasher
from reticent.engine.stream.values import Values, sensitive_column
from reticent.errors import DataError, PolicyError, StateError
from reticent.policy import Policy
from reticent.policy.hierarchy import HierarchyLevels, build_levels
from reticent.release import Guarantee, RecordCounts, Release
from reticent.release.wording import AGAINST, CASTLE, exclusions

NOT_COVERED = exclusions(*CASTLE)
_NONE: UInt64s = np.empty(0, dtype=np.uint64)


class Castle(StreamPublisher):
    """The accumulation-based method."""

    method = "castle"

    def __init__(self, policy: Policy, *, rng: Rng, shard: int = 0) -> None:
        super().__init__(policy, rng=rng, shard=shard)
        self.carried_columns = policy.plain
        self.k, self.l = _requirement(policy)
        self._sensitive = sensitive_column(policy)
        self._values = Values([])
        self._reader = RecordHasher(
            policy.quasi, policy.person, self._sensitive, rng.key("stream records"), self._values
        )
        self._numeric: tuple[str, ...] | None = None
        self._words: dict[str, Dictionary] = {}
        self._hierarchies: dict[str, HierarchyLevels] = {}
        self._pending: pa.Table | None = None
        self._published = self._suppressed = 0

    @property
    def counts(self) -> RecordCounts:
        """The numbers of input, published, pending and suppressed records."""
        pending = self._rows - self._published - self._suppressed
        return RecordCounts(self._rows, self._published, pending, self._suppressed)

    @property
    def numbers(self) -> tuple[str, ...]:
        """The quasi-identifiers with intervals, which a record cannot lack."""
        specs = {name: self.policy.columns[name].hierarchy for name in self.policy.quasi}
        return tuple(name for name, spec in specs.items() if spec is not None and spec.kind == "intervals")

    def place(self, batch: pa.Table, seqs: UInt64s | None = None) -> PlacedBatch:
        """Take records in; return the records whose cluster is ready or whose delay has ended."""
        batch = check_batch(batch, self.policy)
        self._open(batch)
        seqs = self._positions(batch, seqs)
        records = self._reader.read(batch, seqs)
        leaves, numbers = self._leaves(batch), self._numbers(batch)
        released = self._core.push(records.seqs, records.persons, records.codes.astype(np.uint32), leaves, numbers)
        self._next = int(seqs[-1]) + 1
        self._rows += batch.num_rows
        labels = self._values.array.take(pa.array(records.codes))
        new_records = (
            batch.select(self.policy.plain).append_column(self._sensitive, labels).append_column("seq", pa.array(seqs))
        )
        self._pending = new_records if self._pending is None else pa.concat_tables([self._pending, new_records])
        return self._to_batch(released)

    def replay(self, journal: bytes) -> Iterator[PlacedBatch]:
        """Accept only an empty journal: the snapshot has the whole state."""
        if journal:
            raise StateError("The journal is of another method.", hint="Use the policy with which the stream began.")
        yield from ()

    def end(self) -> PlacedBatch:
        """Release the pending records that can be released and suppress the rest."""
        return self._to_batch(self._core.close()) if self._numeric is not None else PlacedBatch(_NONE)

    def push(self, batch: pa.Table) -> list[Release]:
        """Take records in; return the records whose cluster is ready or whose delay has ended."""
        return self._releases(lambda: self.place(batch)) if batch.num_rows else []

    def close(self) -> list[Release]:
        """Release the pending records that can be released and suppress the rest."""
        return self._releases(self.end)

    def _releases(self, step: Callable[[], PlacedBatch]) -> list[Release]:
        before = self.counts
        records = step().records
        if records is None:
            return []
        suppressed = self.counts.suppressed - before.suppressed
        return [
            Release(
                kind=self.kind,
                shape="stream",
                method=self.method,
                tables={"record": records},
                guarantee=self.guarantee,
                records=RecordCounts(records.num_rows + suppressed, records.num_rows, 0, suppressed),
                policy_hash=self.policy.hash,
                metrics=self.metrics,
                seeded=self.rng.seeded,
            )
        ]

    def _open(self, batch: pa.Table) -> None:
        """Find out from the first batch which quasi-identifiers are numbers."""
        if self._numeric is None:
            self._build(
                tuple(name for name in self.policy.quasi if self._is_number(name, batch.schema.field(name).type))
            )

    def _is_number(self, name: str, kind: pa.DataType) -> bool:
        spec = self.policy.columns[name].hierarchy
        if spec is not None:
            return bool(spec.kind == "intervals")
        return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))

    def _build(self, numeric: tuple[str, ...]) -> None:
        settings = self.policy.stream
        self._numeric = numeric
        self._categories = tuple(name for name in self.policy.quasi if name not in numeric)
        self._words = {name: Dictionary() for name in self._categories}
        self._core = _core.stream.Castle(
            key=self.rng.key("stream choices"),
            shard=self.shard,
            k=self.k,
            l=self.l,
            delta=settings.delta,
            beta=settings.beta,
            mu=settings.mu,
            reuse=settings.reuse,
            categories=len(self._categories),
            numbers=len(numeric),
        )

    def _leaves(self, batch: pa.Table) -> UInt32s:
        columns = []
        for attribute, name in enumerate(self._categories):
            dictionary = self._words[name]
            known = len(dictionary)
            columns.append(dictionary.encode(batch.column(name)).astype(np.uint32))
            if len(dictionary) > known:
                self._set_hierarchy(attribute, name)
        return np.ascontiguousarray(np.stack(columns, axis=1)) if columns else np.empty((batch.num_rows, 0), np.uint32)

    def _set_hierarchy(self, attribute: int, name: str) -> None:
        """Build the hierarchy over the values seen so far."""
        spec = self.policy.columns[name].hierarchy
        hierarchy = build_levels(spec, self._words[name].values, column=name, base=self.policy.base)
        size = max(hierarchy.size - 1, 1)
        losses = [((leaves - 1) / size).tolist() for leaves in hierarchy.leaves]
        self._core.set_hierarchy(attribute, [table.tolist() for table in hierarchy.node_ids], losses)
        self._hierarchies[name] = hierarchy

    def _numbers(self, batch: pa.Table) -> Floats:
        columns = []
        for name in self._numeric or ():
            try:
                column = to_native(batch.column(name)).cast(pa.float64())
            except pa.ArrowInvalid:
                raise DataError(f"Column '{name}' has a value that is not a number.", hint="Correct it.") from None
            if column.null_count:
                raise DataError(f"Column '{name}' has {column.null_count:,} missing numbers.", hint="Fill them in.")
            columns.append(column.to_numpy())
        return np.ascontiguousarray(np.stack(columns, axis=1)) if columns else np.empty((batch.num_rows, 0), np.float64)

    def _to_batch(self, released: _core.stream.ReleasedRecords) -> PlacedBatch:
        seqs, safe = released.seqs, released.published
        if not len(seqs) or self._pending is None:
            return PlacedBatch(_NONE)
        records = self._table(released, safe)
        gone = pc.is_in(self._pending.column("seq"), value_set=pa.array(seqs))
        self._pending = self._pending.filter(pc.invert(gone)).combine_chunks()
        self._published += records.num_rows
        self._suppressed += len(seqs) - records.num_rows
        return PlacedBatch(_NONE, records=records if records.num_rows else None)

    def _table(self, released: _core.stream.ReleasedRecords, safe: Bools) -> pa.Table:
        assert self._pending is not None  # noqa: S101 - records are pending before they are released
        seqs, leaves, levels = released.seqs[safe], released.leaves[safe], released.levels[safe]
        low, high = released.low[safe], released.high[safe]
        rows = np.searchsorted(self._pending.column("seq").to_numpy(), seqs)
        rest = self._pending.take(pa.array(rows))
        columns: dict[str, Any] = {"seq": pa.array(seqs)}
        for name in self.policy.quasi:
            if name in self._words:
                at = self._categories.index(name)
                columns[name] = self._labels(name, leaves[:, at], levels[:, at])
            else:
                at = (self._numeric or ()).index(name)
                columns[name] = _intervals(low[:, at], high[:, at])
        columns |= {name: rest.column(name) for name in (self._sensitive, *self.policy.plain)}
        return pa.table(columns)

    def _labels(self, name: str, leaves: UInt32s, levels: UInt32s) -> pa.Array:
        hierarchy = self._hierarchies[name]
        out = np.empty(len(leaves), dtype=object)
        for level in np.unique(levels):
            here = levels == level
            labels = np.array(hierarchy.labels[level].cast(pa.string()).to_pylist(), dtype=object)
            out[here] = labels[hierarchy.node_ids[level][leaves[here]]]
        return pa.array(out, pa.string())

    @property
    def metrics(self) -> dict[str, float]:
        """Information loss by equations (5) and (7), pending records and live clusters."""
        if self._numeric is None:
            return {}
        sums, totals = self._core.losses(), self._core.totals()
        n, tuples = len(self.policy.quasi), sums.tuples
        figures: dict[str, float] = {
            "pending": totals.pending,
            "clusters": totals.clusters,
            "reusable_clusters": totals.reusable,
        }
        if tuples:
            figures["loss"] = sums.loss / tuples
            figures["information_loss"] = (sums.loss * n + sums.spread) / tuples / (n + 1)
            figures["average_wait"] = sums.waited / tuples
        return figures

    @property
    def guarantee(self) -> Guarantee:
        """At least k persons, and l values where the policy asks for l."""
        claims: dict[str, Any] = {"k": self.k}
        if self.l > 1:
            claims["l"] = {"distinct": self.l}
        if self.policy.person is not None:
            claims = {word: {"persons": number} for word, number in claims.items()}
        return Guarantee(claims, AGAINST["castle"], NOT_COVERED)

    def snapshot(self) -> bytes:
        """Return the whole private state, with the pending records."""
        state: dict[str, Any] = {"method": self.method, "shard": self.shard, "numeric": self._numeric}
        state |= {"next": self._next, "counts": [self._rows, self._published, self._suppressed]}
        state["labels"] = self._values.labels
        tables = {f"words {name}": pa.table({"value": words.values}) for name, words in self._words.items()}
        if self._pending is not None:
            tables["pending"] = self._pending
        blobs = {"core": self._core.snapshot()} if self._numeric is not None else {}
        return pack(self.policy, self.rng, state, tables, blobs)

    def _resume(self, saved: dict[str, Any], tables: dict[str, pa.Table], blobs: dict[str, bytes]) -> None:
        self._rows, self._published, self._suppressed = saved["counts"]
        self._pending = tables.get("pending")
        for label in saved["labels"]:
            self._values.code(label)
        if saved["numeric"] is not None:
            self._build(tuple(saved["numeric"]))
            for attribute, name in enumerate(self._categories):
                self._words[name] = Dictionary(tables[f"words {name}"].column("value"))
                if len(self._words[name]):
                    self._set_hierarchy(attribute, name)
            self._core.restore(blobs["core"])


def _requirement(policy: Policy) -> tuple[int, int]:
    if "seq" in policy.released:
        raise PolicyError("The released column 'seq' has the name of a column that CASTLE adds.", hint="Rename it.")
    if policy.privacy.k is None:
        raise PolicyError("privacy.k: CASTLE needs k.", hint="Write privacy: {k: 5}.")
    if not policy.quasi:
        raise PolicyError("CASTLE needs quasi-identifiers.", hint="Give the identifying columns the role quasi.")
    diversity = policy.privacy.l
    if diversity is not None and diversity.kind != "distinct":
        raise PolicyError("CASTLE supports distinct l-diversity only.", hint="Write privacy: {l: {distinct: 3}}.")
    l = int(np.ceil(diversity.l)) if diversity is not None else 1
    if policy.privacy.t is not None:
        raise PolicyError("privacy.t: CASTLE does not support t-closeness.", hint="Remove t from the policy.")
    return policy.privacy.k, max(l, policy.stream.l or 1)


def _intervals(low: Floats, high: Floats) -> pa.Array:
    def text(x: float) -> str:
        return str(int(x)) if x.is_integer() else repr(x)

    pairs = zip(low.tolist(), high.tolist(), strict=True)
    return pa.array([text(a) if a == b else f"[{text(a)}, {text(b)}]" for a, b in pairs], pa.string())
