"""What the veil does for a batch, whatever the kind of release: persons, rows of the prior, candidates, the release."""

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
"""Beyond this share of truths that are not offered the prior is of another world."""
_HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)
DISCLOSIVE_HINT = "Give it the role identifier, or a coarser level; or make the prior by it (`reticent prior --by`): the weights then say what it tells."
OMISSION_EPSILON = 1.0
"""What the published shares of such truths cost, for each release."""


class VeiledEvents(NamedTuple):
    """What a batch publishes: candidates, row and event of each record; and, private, whether the truth is offered."""

    candidates: UInt16s
    strata: UInt32s
    events: UInt32s
    offered: Bools

    def take(self, which: Int64s) -> VeiledEvents:
        """Some of the records, each as often as it is named."""
        return VeiledEvents(self.candidates[which], self.strata[which], self.events[which], self.offered[which])


def hash_persons(column: pa.ChunkedArray, rng: Rng, name: str) -> UInt64s:
    """Keyed hashes of a column of persons (or units), the same in every publication of the house."""
    rows = pa.RecordBatch.from_arrays([to_native(normalize_names(column))], names=[name])
    hashes = _core.stream.Hasher(rng.veil_key("veil persons")).read(rows.__arrow_c_array__(), [], 0, 0)
    if hashes.missing:
        raise DataError(f"{hashes.missing:,} records have no '{name}'.", hint="Every record needs its person.")
    assert hashes.persons is not None  # noqa: S101 - a column was named
    return hashes.persons


@dataclass(frozen=True, repr=False)
class VeiledBatch:
    """A batch under the veil: its published columns, what is offered for each record, and whose it is, as the ledger says it.

    Private: it tells who is who.
    """

    published: pa.Table
    events: VeiledEvents
    persons: UInt64s
    veil_persons: UInt64s
    """The same persons under the key of the house."""
    true_values: Int32s | None = None
    """Their true values, for totals."""

    def __len__(self) -> int:
        return len(self.persons)

    def repeat(self, published: pa.Table, which: Int64s) -> VeiledBatch:
        """Records that say these facts, some of them several times: the same candidates for the same fact."""
        values = None if self.true_values is None else self.true_values[which]
        return VeiledBatch(published, self.events.take(which), self.persons[which], self.veil_persons[which], values)

    def fact_hashes(self) -> UInt64s:
        """What the shares of truths that are not offered are counted on; where values are not kept, by what is shown of them."""
        values = self._hash_candidates() if self.true_values is None else self.true_values.astype(np.uint64)
        return hash_facts(self.veil_persons, values, self.events.offered)

    def _hash_candidates(self) -> UInt64s:
        seen = self.events
        shown = seen.strata.astype(np.uint64) + np.uint64(1)
        for slot in range(seen.candidates.shape[1]):
            shown = (shown ^ (seen.candidates[:, slot].astype(np.uint64) + np.uint64(1))) * _HASH_FACTOR
            shown ^= shown >> np.uint64(29)
        return shown

    def shown_events(self) -> ShownEvents:
        """What is shown of each person, in whatever order of lines."""
        seen, shown = self.events, self._hash_candidates()
        order = np.lexsort((seen.events, self.veil_persons))
        persons, first = np.unique(self.veil_persons[order], return_index=True)
        last = np.append(first[1:], len(order)) - 1
        begun = seen.events[order[first]] == 0
        return ShownEvents(persons, np.where(begun, shown[order[first]], 0), seen.events[order[last]] > 0)


class BatchVeiler:
    """A house with its key and what it remembers of persons."""

    def __init__(self, policy: Policy, rng: Rng, kind: Kind) -> None:
        self._policy, self._rng, self._kind = policy, rng, kind
        self.parameters = VeilParameters.of(policy, kind)
        self.people = _core.veil.People(self.parameters.veil(rng.veil_key("veil")))

    def veil(self, table: pa.Table, *, now: int | None = None) -> VeiledBatch:
        """The next event of the person of every record; `now` is the number of a series' release: those that a person missed count, too."""
        persons, units = self._persons(table)
        published, rows = self.parameters.levels.publish(table)
        values = self.parameters.domain.encode(table.column(self.parameters.sensitive))
        seen = self.people.add_events(persons, units, rows, values, now=now)
        shown = VeiledEvents(seen.candidates, seen.strata, seen.events, seen.offered)
        return VeiledBatch(published, shown, self._ledger_hashes(table, persons), persons, values)

    def members(self, veiled: VeiledBatch, *, number: int) -> Members:
        """Whose record stands in which line of a release, for the ledger."""
        order = self.row_order(len(veiled), number=number)
        return Members(veiled.persons[order], np.arange(len(order), dtype=np.int64))

    def row_order(self, size: int, *, number: int) -> Int64s:
        """Of the records of a release; it tells nothing, and no two releases have the same."""
        return random_order(size, self._rng, f"veil rows {number}")

    def release(
        self, veiled: VeiledBatch, *, number: int, suppressed: int = 0, values: Int32s | None = None
    ) -> Release:
        """A veiled batch as the publication of a number, from 1; refuses one whose values the prior does not know, or other columns tell.

        The true `values` are those of the batch where it keeps them.
        """
        house, seen, size = self.parameters, veiled.events, len(veiled)
        _refuse_omissions(seen, record_weights(veiled.veil_persons), has_kernel=house.kernel is not None)
        truth, published = veiled.true_values if values is None else values, veiled.published
        assert truth is not None  # noqa: S101 - whoever keeps none gives them
        columns = {name: published.column(name) for name in published.column_names}
        refuse_disclosive_columns(columns, truth, strata=seen.strata, persons=veiled.veil_persons, hint=DISCLOSIVE_HINT)
        shares = omission_rates(house, seen, veiled.veil_persons, veiled.fact_hashes(), self._rng, OMISSION_EPSILON)
        document = house.to_metadata() | {
            "omission_rate": shares,
            "omission_rate_epsilon": OMISSION_EPSILON,
            "parameters_digest": house.digest,
        }
        if counts_epsilon(self._policy) is not None:
            document["counts"] = self._noisy_counts(veiled)
        names = pseudonyms(veiled.persons, self._rng.key("veil link")) if self._has_pseudonyms else None
        order = self.row_order(size, number=number)
        return Release(
            kind=self._kind,
            shape="veil",
            method="veil",
            tables={"data": data_table(house, veiled.published, seen, order, names)},
            guarantee=guarantee(house),
            records=RecordCounts(size + suppressed, size, 0, suppressed),
            policy_hash=self._policy.hash,
            explain={"strata": len(house.strata), "values": len(house.domain), "publication": number},
            metadata={"veil": document},
            seeded=self._rng.seeded or house.seeded,
        )

    def _noisy_counts(self, veiled: VeiledBatch) -> dict[str, Any]:
        first, epsilon = veiled.events.events == 0, counts_epsilon(self._policy)
        assert epsilon is not None  # noqa: S101 - the policy asks for them
        assert veiled.true_values is not None  # noqa: S101 - kinds that do not keep the values refuse totals
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
        """Persons as the ledger lists them: under another key than the veil's, so that a veil under a wrong key shows itself."""
        if self._policy.person is None:
            return persons
        return person_hashes(table.column(self._policy.person).cast(pa.string()).to_pylist(), self._rng.key("person"))

    @property
    def _has_pseudonyms(self) -> bool:
        """Whether records carry a pseudonym; recipients of a series need it to follow persons."""
        link = self._policy.prior.link if self._policy.prior is not None else None
        return self._policy.person is not None and (self._kind == "series" if link is None else link)

    def _persons(self, table: pa.Table) -> tuple[UInt64s, UInt64s]:
        """Persons, and the units that the veil is keyed by; without a person every record is somebody else."""
        name = self._policy.person
        if name is None:
            order = random_order(table.num_rows, self._rng, "veil nobody").astype(np.uint64)
            persons = order ^ np.frombuffer(self._rng.key("veil nobody")[:8], dtype="<u8")[0]
        else:
            persons = hash_persons(table.column(name), self._rng, name)
        unit = self._policy.household
        return persons, persons if unit is None else hash_persons(table.column(unit), self._rng, unit)


def _refuse_omissions(events: VeiledEvents, weights: Floats, *, has_kernel: bool) -> None:
    """Refuses records of which too many truths are not offered, by records or by persons, and says what is to blame."""
    unseen = float(np.mean(~events.offered)) if len(events.offered) else 0.0
    unseen = max(unseen, float(weights[~events.offered].sum() / max(1.0, weights.sum())))
    if unseen <= MAX_OMISSION_RATE:
        return
    if np.mean(~events.offered & (events.events > 0)) > unseen / 2:
        raise GuaranteeError(
            f"{unseen:.0%} of the sensitive values are not offered, most of them changed since their person was first shown; "
            "nothing was published.",
            hint="Some steps lead where the kernel does not: who took one is not offered any more. Make prior and kernel again from data "
            "like these, with a coarser domain, or publish fewer records of a person (person.records)."
            if has_kernel
            else "Values that change need a kernel (prior.kernel, which reticent prior makes) from the first publication on. "
            "Without one, delete some of the persons whose values changed.",
        )
    raise GuaranteeError(
        f"{unseen:.0%} of the sensitive values are not offered by the prior; nothing was published.",
        hint="Make the prior again from data like these, or with a coarser domain.",
    )
