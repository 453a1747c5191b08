"""The veil over a stream: each record is released in the call that brings it, its sensitive value among l candidates.

Each record is an event of its person. The first event fixes the stratum of the prior and l slots. With every later event the true
slot takes the person's new value, and the other slots change by the published kernel. Without a kernel no slot changes.

Guarantee: given all records of a person, each slot is the true one with probability exactly 1 / l, against an attacker who knows
    the published prior, the published kernel, the order of arrival and any number of other persons' records (docs/veil.md).
Not covered: attackers who know more than prior or kernel, by that factor; what presence, return or absence discloses; see
    `reticent.engine.veil.release`. Omitted true values are monitored, and do not stop the stream (`OmissionMonitor`).
Cost: linear; 2 l + 12 bytes and a hash per person, never deleted. 12 bytes of journal per record.
Reference: docs/veil.md.
Differences from the paper: ours; `delay-free` is the paper's method.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from reticent import _core
from reticent.arrays import UInt64s
from reticent.engine.base import check_batch
from reticent.engine.disclosive_columns import refuse_disclosive_columns
from reticent.engine.rng import Rng
from reticent.engine.snapshot import pack
from reticent.engine.stream.base import ImmediatePublisher, PlacedBatch, VeiledRecords
from reticent.engine.stream.records import (
    FieldReader,
    PublishedColumn,
    ShownColumns,
    iter_entries,
    journal_entry,
    published_columns,
)
from reticent.engine.stream.tables import OnDemand
from reticent.engine.veil.batch_veiler import DISCLOSIVE_HINT, MAX_OMISSION_RATE, OMISSION_EPSILON
from reticent.engine.veil.parameters import VeilParameters, VeilPublisher
from reticent.engine.veil.prior.noise import two_sided_geometric
from reticent.engine.veil.release import data_table, guarantee
from reticent.errors import PolicyError
from reticent.policy import Policy
from reticent.policy.cells import without_markers
from reticent.release import Guarantee, Release

# Columns of a journal: persons, strata, values. Both codes are below 65,535; -1, a value outside the domain, becomes 65,535.
_JOURNAL_TYPES = (np.uint64, np.uint16, np.uint16)
_OUTSIDE = 65_535
# Fewest records of a batch to check for disclosive columns.
_LARGE_BATCH = 1_000

LOG = logging.getLogger(__name__)
_FIRST_WINDOW, _MAX_WINDOW = 1_000, 1_000_000
"""Records of the first window of the monitor, and of the longest."""


class Veil(VeilPublisher, ImmediatePublisher):
    """The default method for streams."""

    remembers_persons = True

    def __init__(self, policy: Policy, *, rng: Rng, shard: int = 0) -> None:
        super().__init__(policy, rng=rng, shard=shard)
        if policy.person is None:
            raise PolicyError(
                "A stream under the veil needs the person of every record.",
                hint="Write person: with the identifier column, or stream: {method: delay-free}.",
            )
        self.parameters = VeilParameters.of(policy, self.kind)
        self._people = _core.veil.People(self.parameters.veil(rng.veil_key("veil")))
        settings = policy.prior
        self._link = rng.key("veil link") if settings is not None and settings.link else None
        self._household = policy.household
        self._fields = FieldReader(policy, self.parameters, rng.veil_key("veil persons"), household=self._household)
        self._monitor = OmissionMonitor(rng.key("veil eta"), OMISSION_EPSILON)
        self._hash = policy.hash
        self._columns_checked = False

    @cached_property
    def guarantee(self) -> Guarantee:
        """The guarantee of every record."""
        return guarantee(self.parameters)

    @property
    def metrics(self) -> dict[str, float]:
        """The number of persons so far, and the omission rate of the last window."""
        return {"persons": len(self._people), **self._monitor.figures}

    @cached_property
    def metadata(self) -> Mapping[str, Mapping[str, Any]]:
        """The parameter set; the omission rate is unknown before the stream has run."""
        return {
            "veil": self.parameters.to_metadata()
            | {"omission_rate": None, "omission_rate_epsilon": None, "parameters_digest": self.parameters.digest}
        }

    # Placing

    def place(self, batch: pa.Table, seqs: UInt64s | None = None) -> PlacedBatch:
        """Veil records, whose persons are in canonical form already; this cannot be undone."""
        coded, shown = self._read(batch, normalized=True)
        self._check_columns(batch, coded, shown)
        seqs = self._positions(batch, seqs)
        self._begin()
        events = self._finish_batch(self._people.add_batch(coded), self._position_after(seqs))
        persons, households = coded.persons, coded.households
        columns = (persons, coded.strata.astype(np.uint16), coded.values.astype(np.uint16))
        journal = journal_entry({}, seqs, columns if households is None else (*columns, households))
        return self._to_batch(seqs, published_columns(coded, shown), events, persons, journal)

    def _read(self, batch: pa.Table, *, normalized: bool) -> tuple[_core.stream.CodedBatch, ShownColumns]:
        if not self._fields.knows(batch.schema):
            check_batch(batch, self.policy)
        return self._fields.read(batch, normalized=normalized)

    def _check_columns(self, batch: pa.Table, coded: _core.stream.CodedBatch, shown: ShownColumns) -> None:
        """Refuse disclosive columns, by the first large batch of a run only, because the check takes time."""
        if self._columns_checked or batch.num_rows < _LARGE_BATCH:
            return
        refuse_disclosive_columns(
            self._published_columns(batch, coded, shown),
            coded.values,
            strata=coded.strata,
            persons=coded.persons,
            hint=DISCLOSIVE_HINT,
        )
        self._columns_checked = True

    def _published_columns(
        self, batch: pa.Table, coded: _core.stream.CodedBatch, shown: ShownColumns
    ) -> dict[str, Any]:
        """Return the published columns of a batch without the candidates."""
        published = {name: column.array() for name, column in published_columns(coded, shown).items()}
        names = (*self.policy.quasi, *self.policy.plain)
        return {name: published.get(name, batch.column(name)) for name in names}

    def _finish_batch(self, events: _core.veil.VeiledEvents, after: int) -> _core.veil.VeiledEvents:
        """Finish a veiled batch; the next one begins at position `after`."""
        self._monitor.count_events(events)
        self._finish(len(events), after)
        return events

    def _to_batch(
        self,
        seqs: UInt64s,
        published: Mapping[str, PublishedColumn],
        events: _core.veil.VeiledEvents,
        persons: UInt64s,
        journal: bytes,
    ) -> PlacedBatch:
        names = None if self._link is None else _core.veil.pseudonyms(persons, key=self._link)
        veiled = VeiledRecords(published, events.strata, events.events, events.candidates, names, persons)
        return PlacedBatch(seqs, veiled=veiled, labels=self.parameters.domain.labels, journal=journal)

    def replay(self, journal: bytes) -> Iterator[PlacedBatch]:
        """Veil the records of a journal again."""
        kinds = _JOURNAL_TYPES if self._household is None else (*_JOURNAL_TYPES, np.uint64)
        for _, seqs, (persons, strata, codes, *households) in iter_entries(journal, kinds):
            values = np.where(codes == _OUTSIDE, -1, codes.astype(np.int32)).astype(np.int32)
            self._begin()
            keys = households[0] if households else persons
            events = self._people.add_events(persons, keys, strata.astype(np.uint32), values)
            yield self._to_batch(seqs, {}, self._finish_batch(events, self._position_after(seqs)), persons, b"")

    # The contract of all engines

    def push(self, batch: pa.Table) -> list[Release]:
        """Release every record at once."""
        batch = without_markers(batch, self.policy.missing)
        coded, shown = self._read(batch, normalized=False)
        self._check_columns(batch, coded, shown)
        self._begin()
        events = self._people.add_batch(coded)
        self._finish_batch(events, self._next + len(events))  # without a journal
        return [self._release(batch, coded, shown, events)] if len(events) else []

    def _release(
        self, batch: pa.Table, coded: _core.stream.CodedBatch, shown: ShownColumns, events: _core.veil.VeiledEvents
    ) -> Release:
        def tables() -> dict[str, pa.Table]:
            columns = pa.table(self._published_columns(batch, coded, shown))
            return {"data": data_table(self.parameters, columns, events, np.arange(len(events)))}

        return Release(
            kind=self.kind,
            shape="veil",
            method=self.method,
            tables=OnDemand(tables),
            guarantee=self.guarantee,
            records=self.counts_of(len(events)),
            policy_hash=self._hash,
            metrics=self.metrics,
            metadata=self.metadata,
            seeded=self.rng.seeded or self.parameters.seeded,
        )

    def snapshot(self) -> bytes:
        """Return the whole private state: the keys, and the memory of every person."""
        self._refuse_after_error()
        state = {"method": self.method, "shard": self.shard, "next": self._next, "rows": self._rows}
        state |= {"watch": self._monitor.state()}
        return pack(self.policy, self.rng, state, blobs={"people": self._people.to_bytes()})

    def _resume(self, saved: dict[str, Any], _: dict[str, pa.Table], blobs: dict[str, bytes]) -> None:
        self._rows = saved["rows"]
        self._monitor.load(saved["watch"])
        self._people.load(blobs["people"])


class OmissionMonitor:
    """Shows the operator the omission rate, with noise under a key, and logs a warning when it is large.

    Each record is counted in one window only, so that all windows together cost `epsilon` once. The first window has a thousand
    records, every further one as many as all before, up to a million.
    """

    def __init__(self, key: bytes, epsilon: float) -> None:
        self._key, self._epsilon = key, epsilon
        self._omitted = self._size = self._windows = 0
        self._window_size = _FIRST_WINDOW
        self._omission_rate: float | None = None

    @property
    def figures(self) -> dict[str, float]:
        """The omission rate of the last window, and whether it is too large; empty before the first window ends."""
        return (
            {}
            if self._omission_rate is None
            else {"omission_rate": self._omission_rate, "alarm": float(self._omission_rate > MAX_OMISSION_RATE)}
        )

    def count_events(self, events: _core.veil.VeiledEvents) -> None:
        """Count records in order of arrival, independent of how they are cut into batches."""
        size, omitted = len(events), events.omitted
        while self._size + size >= self._window_size:
            size -= self._window_size - self._size
            before = omitted
            omitted = int(np.count_nonzero(~events.offered[len(events) - size :]))
            self._omitted += before - omitted
            self._close_window()
        self._omitted += omitted
        self._size += size

    def _close_window(self) -> None:
        seed = hashlib.blake2b(str(self._windows).encode(), key=self._key, digest_size=32).digest()
        # One record changes the count by one: noise of scale 1 / epsilon.
        noise = int(two_sided_geometric(seed, 1, self._epsilon)[0])
        self._omission_rate = round(min(max((self._omitted + noise) / self._window_size, 0.0), 1.0), 6)
        if self._omission_rate > MAX_OMISSION_RATE:
            LOG.warning(
                "the stream drifts: %.1f %% of the true values are not among their candidates; the prior lacks them, or persons came "
                "back with values that the kernel excludes (without a kernel: with any other value)",
                100 * self._omission_rate,
            )
        self._windows += 1
        self._omitted = self._size = 0
        self._window_size = min(_FIRST_WINDOW << (self._windows - 1), _MAX_WINDOW)

    def state(self) -> dict[str, Any]:
        """Return the state for a snapshot."""
        return {
            "lost": self._omitted,
            "size": self._size,
            "looks": self._windows,
            "until": self._window_size,
            "omission_rate": self._omission_rate,
        }

    def load(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self._omitted, self._size, self._windows = state["lost"], state["size"], state["looks"]
        self._window_size, self._omission_rate = state["until"], state["omission_rate"]
