"""The veil over an evolving table: one veil per person, whose candidates stay until the value is corrected.

The first event of a person fixes the stratum of the prior and the slots. A record that does not change, or changes only
in other columns, shows the same candidates in every publication. A corrected value moves the slots by the kernel
without stay: the true slot to the new value, the others by keyed steps. The memory of a person outlives its records.
Between two publications, a correction is at most one event.

Guarantee: given all publications, each slot of a person is the true one with probability exactly 1 / l, for an attacker
    who knows the published prior and kernel, every change of the table and any number of other persons' records
    (docs/veil.md).
Not covered: an attacker whose prior or kernel is better than the published one gains at most that advantage; what
    presence, absence, return or the number of corrections discloses; see `reticent.engine.veil.release`.
Cost: O(l) per changed record, for any table size; O(n) per publication; 2 l + 24 bytes per person, also without
    records, and as much again for a changed value and for each further unpublished event.
Reference: docs/veil.md.
Differences from the paper: none; this is our own method. The paper's methods are `enc`, `encc`, `eac` and `red`.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reticent.arrays import Int32s, Int64s, UInt32s, UInt64s
from reticent.encode.event_times import event_times
from reticent.engine.base import check_batch
from reticent.engine.evolving.base import ChangeIds, EvolvingPublisher
from reticent.engine.evolving.change import Change
from reticent.engine.evolving.person_state import Arrivals, PersonStates, decode_memories
from reticent.engine.rng import Rng
from reticent.engine.veil.batch_veiler import BatchVeiler, VeiledBatch, hash_persons
from reticent.engine.veil.events import refuse_value_conflicts
from reticent.engine.veil.parameters import VeilPublisher
from reticent.engine.veil.published_levels import PublishedLevels
from reticent.engine.veil.release import guarantee
from reticent.errors import DataError
from reticent.policy import Policy
from reticent.release import Guarantee, Release

_ONE_RECORD_HINT = (
    "Name the column with their order: person: {column: ..., events: ...}; or keep one record per person: "
    "person: {column: ..., records: first} or records: last."
)


class Veil(VeilPublisher, EvolvingPublisher):
    """The veil of an evolving table; the default method."""

    can_republish = True

    def __init__(self, policy: Policy, *, rng: Rng) -> None:
        self._veiler = BatchVeiler(policy, rng, self.kind)
        parameters, persons = self._veiler.parameters, policy.persons
        self._one_record_each = persons is not None and persons.records != "all"
        self.person_states = PersonStates(
            parameters.veil(rng.veil_key("veil")), parameters.l, visits=not self._one_record_each
        )
        super().__init__(policy, rng=rng)
        self._stratum_lookup = StratumLookup(parameters.levels, policy, parameters.by)
        self._person, self._events = str(policy.person), persons.events if persons else None

    def _memory_width(self) -> int:
        return self.person_states.width

    # -- changes -----------------------------------------------------------------------------------------------------

    def insert(self, batch: pa.Table) -> Change:
        """Insert records; for a person with several, only those that the policy's `person.records` names."""
        which = self.policy.persons.records if self.policy.persons else "all"
        if which == "all":
            return super().insert(batch)
        batch = check_batch(batch, self.policy)
        batch = batch.take(pa.array(np.argsort(self._event_positions(batch), kind="stable")))
        batch = _keep_one_record(batch, self._person, which)
        known = pa.array(
            [bool(self.records.rows_of_person(person)) for person in self._identities(batch)[0]], pa.bool_()
        )
        change = super().insert(batch.filter(pc.invert(known)))
        return change if which == "first" else change.then(self.update(self._later_records(batch.filter(known))))

    def _later_records(self, batch: pa.Table) -> pa.Table:
        """Return the records that are not before the last known event of their person."""
        persons = hash_persons(batch.column(self._person), self.rng, self._person)
        return batch.filter(pa.array(~self.person_states.is_early(persons, self._event_positions(batch)), pa.bool_()))

    def _prepare_insert(self, batch: pa.Table) -> Arrivals:
        """Refuse a second record of a person unless the policy names the column with their order."""
        if self._events is None:
            names = self.ids_of(batch).persons
            further = sum(bool(self.records.rows_of_person(name)) for name in names) + len(names) - len(set(names))
            if further:
                raise DataError(
                    f"{further:,} records belong to persons who already have a record, and the policy names no column "
                    "with their order; nothing was changed.",
                    hint=f"Use update for a record that changed. {_ONE_RECORD_HINT}",
                )
        arrivals = self._arrivals(batch)
        self.person_states.refuse_early(arrivals)
        refuse_value_conflicts(self._count_contradictions(arrivals, self.ids_of(batch).persons))
        return arrivals

    def _prepare_update(self, rows: UInt32s, batch: pa.Table) -> Arrivals:
        """Refuse a changed order of a person's records, or a new value for a record that is not the last."""
        arrivals = self._arrivals(batch)
        reordered = sum(state is None for state in self._move_events(rows, arrivals).values())
        if reordered:
            raise DataError(
                f"The update changes the order of the records of {reordered:,} persons; nothing was changed.",
                hint="Keep the order of a person's records, or delete the records that are wrong.",
            )
        changed = np.flatnonzero(self._domain_codes(self.records.values(rows)) != arrivals.values)
        refuse_value_conflicts(self._count_conflicts(rows[changed], arrivals.values[changed]))
        persons = arrivals.persons[changed]
        latest = self.person_states.is_latest(persons, self.records.memories[rows[changed]])
        if earlier := len(changed) - int(np.count_nonzero(latest)):
            raise DataError(
                f"{earlier:,} records with a new value are not the last records of their persons; nothing was changed.",
                hint="Correct only the last record of a person; delete earlier records that are wrong.",
            )
        return arrivals

    def _count_contradictions(self, arrivals: Arrivals, names: Sequence[str]) -> int:
        """Count new records whose event has another value in the batch or the table: it would show two sets."""
        if self._events is None:
            return 0
        values: dict[tuple[int, int], int] = {}
        contradictions = 0
        for name, person, position, value in zip(
            names, arrivals.persons.tolist(), arrivals.positions.tolist(), arrivals.values.tolist(), strict=True
        ):
            if (person, position) not in values:
                memory, known = self.person_states.last_event_at(person, position)
                live = memory and any(
                    self.records.memories[row].tobytes() == memory for row in self.records.rows_of_person(name)
                )
                values[person, position] = known if live else value
            contradictions += values[person, position] != value
        return contradictions

    def _move_events(self, rows: UInt32s, arrivals: Arrivals) -> dict[int, bytes | None]:
        """Return by person the state with events at the positions of an update; None if their order would change."""
        if self._events is None or self._one_record_each:
            return {}
        positions: dict[int, dict[int, int]] = {}
        for row, person, position in zip(
            rows.tolist(), arrivals.persons.tolist(), arrivals.positions.tolist(), strict=True
        ):
            positions.setdefault(person, {})[row] = position
        return {person: self._move_person(person, places) for person, places in positions.items()}

    def _move_person(self, person: int, positions: Mapping[int, int]) -> bytes | None:
        records = self.records.rows_of_person(str(self.records.persons[next(iter(positions))]))
        memories = {row: self.records.memories[row].tobytes() for row in records}
        places = {memories[row]: position for row, position in positions.items()}
        known = self.person_states.event_positions(person)
        # All records of an event must move together.
        if any(
            positions.get(row, known[memory]) != places[memory]
            for row, memory in memories.items()
            if memory in places and memory in known
        ):
            return None
        return self.person_states.move_events(person, places, alone=set(memories.values()) <= set(known))

    def _count_conflicts(self, rows: UInt32s, values: Int32s) -> int:
        """Count records that would get another value than the other records of the same event."""
        updates, conflicts = dict(zip(rows.tolist(), values.tolist(), strict=True)), 0
        for row, value in updates.items():
            records = self.records.rows_of_person(str(self.records.persons[row]))
            same = (other for other in records if (self.records.memories[other] == self.records.memories[row]).all())
            conflicts += any(updates.get(other) != value for other in same) if len(records) > 1 else 0
        return conflicts

    def _arrivals(self, batch: pa.Table) -> Arrivals:
        persons = hash_persons(batch.column(self._person), self.rng, self._person)
        household = self.policy.household
        return Arrivals(
            persons,
            persons if household is None else hash_persons(batch.column(household), self.rng, household),
            self._stratum_lookup.strata_of(batch),
            self._veiler.parameters.domain.encode(batch.column(self.sensitive)),
            self._event_positions(batch),
        )

    def _hash_persons(self, rows: UInt32s, notes: Arrivals) -> None:
        """Hash persons under the ledger's key and under the veil key; a wrong veil key is then detected."""
        super()._hash_persons(rows, notes)
        self.records.hashes[rows, 1:] = np.stack([notes.persons, notes.households], axis=1)

    def _insert_rows(self, rows: UInt32s, notes: Arrivals) -> tuple[UInt32s, Change]:
        order = np.argsort(notes.positions, kind="stable")
        self.records.memories[rows[order]] = self.person_states.add_events(notes.take(order), self.publications)
        self.records.classes[rows] = 0
        return rows, Change(persons=np.unique(notes.persons))

    def _delete_rows(self, rows: UInt32s) -> tuple[UInt32s, Change]:
        """Remove unpublished events with their records: a person who comes back continues from the published state."""
        rebuilt, change = self._rebuild_events(rows, set(rows.tolist()))
        return np.union1d(rows, rebuilt), change

    def _rebuild_events(self, rows: UInt32s, removed: Container[int]) -> tuple[UInt32s, Change]:
        """Draw the unpublished events of the rows' persons again from the remaining records; return the changed rows."""
        persons, first = np.unique(self.records.hashes[rows, 1], return_index=True)
        names = {person: self.records.persons[row] for person, row in zip(persons.tolist(), rows[first], strict=True)}
        unpublished, changed = self.person_states.unpublished_persons(persons, self.publications), []
        rest = {
            person: [row for row in self.records.rows_of_person(str(names[person])) if row not in removed]
            for person in unpublished
        }
        places = self._households_and_strata([row for rows in rest.values() for row in rows])
        for person in unpublished:
            old = {row: self.records.memories[row].tobytes() for row in rest[person]}
            records = {memory: row for row, memory in reversed(old.items())}
            memories = self.person_states.rebuild_events(person, records, self.publications, places)
            for row in rest[person]:
                if (memory := memories.get(records[old[row]])) is not None:
                    self.records.memories[row] = np.frombuffer(memory, np.uint8)
                    changed.append(row)
        return np.array(changed, dtype=np.uint32), Change(persons=np.array(unpublished, dtype=np.uint64))

    def _households_and_strata(self, rows: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Return by record its household and its stratum of the prior."""
        if not rows:
            return {}
        at = np.array(rows, dtype=np.uint32)
        households = np.where(self.records.hashes[at, 2] > 0, self.records.hashes[at, 2], self.records.hashes[at, 1])
        strata = self._stratum_lookup.strata_of(self._published_fields(at))
        return dict(zip(rows, zip(households.tolist(), strata.tolist(), strict=True), strict=True))

    def _published_fields(self, rows: UInt32s) -> pa.Table:
        """Return the quasi-identifiers and plain columns of records."""
        records, names = self.records, [*self.policy.quasi, *self.policy.plain]
        return pa.table(
            {name: records.words[name].decode(records.codes[rows, records.columns.index(name)]) for name in names}
        )

    def _update_rows(self, rows: UInt32s, codes: Int32s, notes: Arrivals) -> tuple[UInt32s, Change]:
        """Update records; only a new sensitive value is an event, the other columns show their current values."""
        # With one record per person, every record sets the position of the person's last event.
        corrected = np.flatnonzero(
            (self._domain_codes(self.records.values(rows)) != notes.values) | self._one_record_each
        )
        moved = (decode_memories(self.records.memories[rows]).strata != notes.strata) | (
            self.records.hashes[rows, 2] != notes.households
        )
        states = {person: state for person, state in self._move_events(rows, notes).items() if state is not None}
        self.person_states.load(states)
        self.records.put(rows, codes)
        self.records.hashes[rows, 2] = notes.households
        corrections = notes.take(corrected)
        self.records.memories[rows[corrected]] = self.person_states.correct(corrections, self.publications)
        rebuilt, change = self._rebuild_events(rows[moved], ())
        persons = np.concatenate([corrections.persons, change.persons, np.array(list(states), dtype=np.uint64)])
        return np.union1d(rows, rebuilt), replace(change, persons=np.unique(persons))

    def _domain_codes(self, values: Int32s) -> Int32s:
        """Convert sensitive codes of the records to codes of the value domain."""
        words = self.records.words[self.sensitive]
        return self._veiler.parameters.domain.encode(words.decode(values))

    def _event_positions(self, batch: pa.Table) -> Int64s:
        """Return the position of each record among its person's events; 0 if the policy names no event column."""
        if self._events is None:
            return np.zeros(batch.num_rows, dtype=np.int64)
        numbers = event_times(batch.column(self._events), self._events, self.policy)
        if numbers.dtype != np.int64:
            raise DataError(
                f"Column '{self._events}' (person.events) does not give the order of records.",
                hint="Fill it with whole numbers, dates or times.",
            )
        return np.asarray(numbers, dtype=np.int64)

    # -- memory ------------------------------------------------------------------------------------------------------

    def ids_to_load(self, change: pa.Table) -> ChangeIds:
        """Return the ids in the change: no other records are needed."""
        return self.ids_of(change)

    def keys_to_recall(self, change: pa.Table) -> list[str]:
        """Return the keys of the persons of a change who are not in memory."""
        ids = self.ids_of(change)
        rows = [row for name in ids.persons for row in self.records.rows_of_person(name)]
        rows += [row for name in ids.records if (row := self.records.row_of_record(name)) is not None]
        persons = set(self.records.hashes[rows, 1].tolist())
        if ids.persons:
            column = change.column(self._person).drop_null()
            persons |= set(hash_persons(column, self.rng, self._person).tolist())
        return [_person_key(person) for person in sorted(persons) if person not in self.person_states]

    def recall(self, memories: Mapping[str, bytes]) -> None:
        """Load the states of persons, by key."""
        self.person_states.load({int(key, 16): state for key, state in memories.items()})

    def memories(self, persons: UInt64s | None = None) -> dict[str, bytes]:
        """Return the states of persons, by key."""
        return {_person_key(person): state for person, state in self.person_states.dump(persons).items()}

    # -- publication -------------------------------------------------------------------------------------------------

    def _publish(self, rows: UInt32s) -> Release:
        records, number = self.records, self.publications + 1
        published, _ = self._veiler.parameters.levels.publish(self._published_fields(rows))
        veiled = VeiledBatch(
            published, decode_memories(records.memories[rows]), records.hashes[rows, 0], records.hashes[rows, 1]
        )
        self._members, self._shown_events = self._veiler.members(veiled, number=number), veiled.shown_events()
        release = self._veiler.release(veiled, number=number, values=self._domain_codes(records.values(rows)))
        return replace(release, guarantee=self.guarantee)

    def _method_guarantee(self) -> Guarantee:
        return guarantee(self._veiler.parameters)

    def _count_withheld_records(self) -> int:
        return 0


def _person_key(person: int) -> str:
    return f"{person:016x}"


def _keep_one_record(batch: pa.Table, person: str, which: str) -> pa.Table:
    """Keep the first or the last record of every person, in the order of the batch."""
    persons = batch.column(person).cast(pa.string()).to_pylist()
    places = range(len(persons))
    chosen = {persons[at]: at for at in (places if which == "last" else reversed(places))}
    return batch.take(pa.array(sorted(chosen.values()), pa.int64()))


_SMALL_BATCH = 8


class StratumLookup:
    """Finds strata like `PublishedLevels`, and caches the valid values and the strata of small batches."""

    def __init__(self, levels: PublishedLevels, policy: Policy, by: Sequence[str]) -> None:
        self._levels, self._by = levels, tuple(by)
        self._valid_values: dict[str, set[Any]] = {
            name: set() for name in policy.quasi if policy.columns[name].hierarchy is not None
        }
        self._strata: dict[tuple[Any, ...], int] = {}

    def strata_of(self, batch: pa.Table) -> UInt32s:
        """Return the strata of a batch, or refuse a value outside its hierarchy, even if the prior does not use it."""
        if batch.num_rows > _SMALL_BATCH:
            return self._levels.publish(batch)[1]
        keys = self._keys(batch)
        cells = {name: set(batch.column(name).to_pylist()) for name in self._valid_values}
        if not all(key in self._strata for key in keys) or any(
            cells[name] - valid for name, valid in self._valid_values.items()
        ):
            strata = self._levels.publish(batch)[1]
            self._strata.update(zip(keys, strata.tolist(), strict=True))
            for name, valid in self._valid_values.items():
                valid.update(cells[name])
        return np.array([self._strata[key] for key in keys], dtype=np.uint32)

    def _keys(self, batch: pa.Table) -> list[tuple[Any, ...]]:
        if not self._by:
            return [()] * batch.num_rows
        return list(zip(*(batch.column(name).to_pylist() for name in self._by), strict=True))
