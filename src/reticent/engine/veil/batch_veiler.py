"""Veil a batch of records of any kind of release: persons, strata of the prior, candidates and the release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from reticent import _core
from reticent.arrays import Bools, Floats, Int32s, Int64s, UInt16s, UInt32s, UInt64s
from reticent.encode.columns import normalize_names, to_native
from reticent.engine.base import Members, ShownEvents
from reticent.engine.disclosive_columns import refuse_disclosive_columns
from reticent.engine.rng import Rng
from reticent.engine.veil.parameters import VeilParameters
from reticent.engine.veil.release import (
    counts_epsilon,
    data_table,
    guarantee,
    hash_facts,
    noisy_counts,
    omission_rates,
    pseudonyms,
    random_order,
    record_weights,
)
from reticent.errors import DataError, GuaranteeError
from reticent.policy import Policy
from reticent.release import Kind, RecordCounts, Release, person_hashes

MAX_OMISSION_RATE = 0.1
"""A larger share of omitted true values means that the prior does not fit the data."""
_HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)
DISCLOSIVE_HINT = "Use the role identifier or a coarser level, or condition the prior on it (`reticent prior --by`)."
OMISSION_EPSILON = 1.0
"""Privacy cost of the published omission rates, per release."""


class VeiledEvents(NamedTuple):
    """The candidates, stratum and event of each record of a batch, and (private) whether the true value is a candidate."""

    candidates: UInt16s
    strata: UInt32s
    events: UInt32s
    offered: Bools

    def take(self, which: Int64s) -> VeiledEvents:
        """Return the records at the given positions, repeated where a position repeats."""
        return VeiledEvents(self.candidates[which], self.strata[which], self.events[which], self.offered[which])


def hash_persons(column: pa.ChunkedArray, rng: Rng, name: str) -> UInt64s:
    """Return keyed hashes of a column of persons or households, the same in every publication under one veil key."""
    rows = pa.RecordBatch.from_arrays([to_native(normalize_names(column))], names=[name])
    hashes = _core.stream.Hasher(rng.veil_key("veil persons")).read(rows.__arrow_c_array__(), [], 0, 0)
    if hashes.missing:
        raise DataError(f"{hashes.missing:,} records have no value in '{name}'.", hint="Fill in the missing values.")
    assert hashes.persons is not None  # noqa: S101 - a column was named
    return hashes.persons


@dataclass(frozen=True, repr=False)
class VeiledBatch:
    """A veiled batch: its published columns, the candidates of each record, and the hash of its person.

    Private: it links records to persons.
    """

    published: pa.Table
    events: VeiledEvents
    persons: UInt64s
    veil_persons: UInt64s
    """The same persons, hashed under the veil key."""
    true_values: Int32s | None = None
    """The true values, for the noisy counts."""

    def __len__(self) -> int:
        return len(self.persons)

    def repeat(self, published: pa.Table, which: Int64s) -> VeiledBatch:
        """Return records that repeat these facts; the same fact has the same candidates."""
        values = None if self.true_values is None else self.true_values[which]
        return VeiledBatch(published, self.events.take(which), self.persons[which], self.veil_persons[which], values)

    def fact_hashes(self) -> UInt64s:
        """Hash each record's fact, the input of the omission rates; candidates replace true values that are not stored."""
        values = self._hash_candidates() if self.true_values is None else self.true_values.astype(np.uint64)
        return hash_facts(self.veil_persons, values, self.events.offered)

    def _hash_candidates(self) -> UInt64s:
        events = self.events
        shown = events.strata.astype(np.uint64) + np.uint64(1)
        for slot in range(events.candidates.shape[1]):
            shown = (shown ^ (events.candidates[:, slot].astype(np.uint64) + np.uint64(1))) * _HASH_FACTOR
            shown ^= shown >> np.uint64(29)
        return shown

    def shown_events(self) -> ShownEvents:
        """Return what is shown of each person, independent of the order of the records."""
        events, shown = self.events, self._hash_candidates()
        order = np.lexsort((events.events, self.veil_persons))
        persons, first = np.unique(self.veil_persons[order], return_index=True)
        last = np.append(first[1:], len(order)) - 1
        begun = events.events[order[first]] == 0
        return ShownEvents(persons, np.where(begun, shown[order[first]], 0), events.events[order[last]] > 0)


class BatchVeiler:
    """Veils batches with the parameter set of a policy, the veil key, and what is remembered of persons."""

    def __init__(self, policy: Policy, rng: Rng, kind: Kind) -> None:
        self._policy, self._rng, self._kind = policy, rng, kind
        self.parameters = VeilParameters.of(policy, kind)
        self.people = _core.veil.People(self.parameters.veil(rng.veil_key("veil")))

    def veil(self, table: pa.Table, *, now: int | None = None) -> VeiledBatch:
        """Draw the next event of every record's person; `now` is the number of a release of a series, missed ones count."""
        persons, households = self._persons(table)
        published, strata = self.parameters.levels.publish(table)
        values = self.parameters.domain.encode(table.column(self.parameters.sensitive))
        drawn = self.people.add_events(persons, households, strata, values, now=now)
        shown = VeiledEvents(drawn.candidates, drawn.strata, drawn.events, drawn.offered)
        return VeiledBatch(published, shown, self._ledger_hashes(table, persons), persons, values)

    def members(self, veiled: VeiledBatch, *, number: int) -> Members:
        """Return which person has which row of a release, for the ledger."""
        order = self.row_order(len(veiled), number=number)
        return Members(veiled.persons[order], np.arange(len(order), dtype=np.int64))

    def row_order(self, size: int, *, number: int) -> Int64s:
        """Return the random order of a release's rows; it depends on the number of the release and on the key only."""
        return random_order(size, self._rng, f"veil rows {number}")

    def release(
        self, veiled: VeiledBatch, *, number: int, suppressed: int = 0, values: Int32s | None = None
    ) -> Release:
        """Build the publication with this number (from 1).

        `values` are the true values, where the batch lacks them. Refuses too many omitted values, and disclosive columns.
        """
        params, events, size = self.parameters, veiled.events, len(veiled)
        _refuse_omissions(events, record_weights(veiled.veil_persons), has_kernel=params.kernel is not None)
        true_values, published = veiled.true_values if values is None else values, veiled.published
        assert true_values is not None  # noqa: S101 - a batch without true values comes with `values`
        columns = {name: published.column(name) for name in published.column_names}
        persons = veiled.veil_persons
        refuse_disclosive_columns(columns, true_values, strata=events.strata, persons=persons, hint=DISCLOSIVE_HINT)
        shares = omission_rates(params, events, persons, veiled.fact_hashes(), self._rng, OMISSION_EPSILON)
        document = params.to_metadata() | {
            "omission_rate": shares,
            "omission_rate_epsilon": OMISSION_EPSILON,
            "parameters_digest": params.digest,
        }
        if counts_epsilon(self._policy) is not None:
            document["counts"] = self._noisy_counts(veiled)
        names = pseudonyms(veiled.persons, self._rng.key("veil link")) if self._has_pseudonyms else None
        order = self.row_order(size, number=number)
        return Release(
            kind=self._kind,
            shape="veil",
            method="veil",
            tables={"data": data_table(params, veiled.published, events, order, names)},
            guarantee=guarantee(params),
            records=RecordCounts(size + suppressed, size, 0, suppressed),
            policy_hash=self._policy.hash,
            explain={"strata": len(params.strata), "values": len(params.domain), "publication": number},
            metadata={"veil": document},
            seeded=self._rng.seeded or params.seeded,
        )

    def _noisy_counts(self, veiled: VeiledBatch) -> dict[str, Any]:
        first, epsilon = veiled.events.events == 0, counts_epsilon(self._policy)
        assert epsilon is not None  # noqa: S101 - the policy asks for noisy counts
        assert veiled.true_values is not None  # noqa: S101 - kinds that do not store true values refuse noisy counts
        key = self._rng.key("veil totals")
        return noisy_counts(
            self.parameters,
            veiled.veil_persons[first],
            veiled.events.strata[first],
            veiled.true_values[first],
            key,
            epsilon,
        )

    def _ledger_hashes(self, table: pa.Table, persons: UInt64s) -> UInt64s:
        """Hash persons for the ledger, under another key than the veil's, so that a wrong veil key is noticed."""
        if self._policy.person is None:
            return persons
        return person_hashes(table.column(self._policy.person).cast(pa.string()).to_pylist(), self._rng.key("person"))

    @property
    def _has_pseudonyms(self) -> bool:
        """Whether records have a pseudonym; the recipient of a series needs one to follow a person."""
        link = self._policy.prior.link if self._policy.prior is not None else None
        return self._policy.person is not None and (self._kind == "series" if link is None else link)

    def _persons(self, table: pa.Table) -> tuple[UInt64s, UInt64s]:
        """Return the hashes of persons and of households (which key the veil); without a person each record is its own."""
        name = self._policy.person
        if name is None:
            order = random_order(table.num_rows, self._rng, "veil nobody").astype(np.uint64)
            persons = order ^ np.frombuffer(self._rng.key("veil nobody")[:8], dtype="<u8")[0]
        else:
            persons = hash_persons(table.column(name), self._rng, name)
        household = self._policy.household
        return persons, persons if household is None else hash_persons(table.column(household), self._rng, household)


def _refuse_omissions(events: VeiledEvents, weights: Floats, *, has_kernel: bool) -> None:
    """Refuse a batch with too many omitted true values, by records or by persons, and name the likely cause."""
    omitted = float(np.mean(~events.offered)) if len(events.offered) else 0.0
    omitted = max(omitted, float(weights[~events.offered].sum() / max(1.0, weights.sum())))
    if omitted <= MAX_OMISSION_RATE:
        return
    if np.mean(~events.offered & (events.events > 0)) > omitted / 2:
        raise GuaranteeError(
            f"{omitted:.0%} of the true values are not among their candidates, mostly values that changed since the person's first event; "
            "nothing was published.",
            hint="Make the prior and the kernel again from data like these, use a coarser domain, or publish fewer records of a "
            "person (person.records). The kernel excludes some of the changes in these data."
            if has_kernel
            else "Use a transition kernel (prior.kernel, made by `reticent prior`) from the first publication on, or remove some of the "
            "persons whose values changed.",
        )
    raise GuaranteeError(
        f"{omitted:.0%} of the true values are not among their candidates; nothing was published.",
        hint="Make the prior again from data like these, or use a coarser domain.",
    )
