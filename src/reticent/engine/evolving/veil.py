"""The veil over an evolving table: one veil per person, whose candidates stay until its value is corrected.

The first sight of a person fixes the prior's row and the slots. A record that stays as it is, or changes in other columns, shows
the same candidates in every publication. A corrected value moves the slots by the kernel without stay: the true one where the
person went, the others by keyed steps. What is remembered of a person outlives its records; what happens to it between two
publications is one event at most.

Guarantee: given all publications, each slot of a person is the true one with probability exactly 1 / l, for a reader who knows
    the published prior and kernel, every change of the table and any number of other persons' records (docs/veil.md).
Not covered: readers who know better than prior or kernel, by the factor they do; what presence, absence, return or the number of
    corrections says of a value; see `reticent.engine.veil.release`.
Cost: O(l) per changed record, wherever the table is; O(n) per publication; 2 l + 24 bytes per person, live or gone, as much
    again for who has moved, and for each further event that is not published yet.
Reference: docs/veil.md.
Differences from the paper: ours; the paper's methods are `enc`, `encc`, `eac` and `red`.
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
    "Name the column of their order, person: {column: ..., events: ...}, or keep one of them: "
    "person: {column: ..., records: first} or records: last."
)


class Veil(VeilPublisher, EvolvingPublisher):
    """Each record under its person's veil; the default."""

    can_republish = True

    def __init__(self, policy: Policy, *, rng: Rng) -> None:
        self._veiler = BatchVeiler(policy, rng, self.kind)
        house = self._veiler.parameters
        persons = policy.persons
        self._one_record_each = persons is not None and persons.records != "all"
        self.person_states = PersonStates(house.veil(rng.veil_key("veil")), house.l, visits=not self._one_record_each)
        super().__init__(policy, rng=rng)
        self._stratum_lookup = StratumLookup(house.levels, policy, house.by)
        self._person, self._events = str(policy.person), persons.events if persons else None

    def _memory_width(self) -> int:
        return self.person_states.width

    # -- changes -----------------------------------------------------------------------------------------------------

    def insert(self, batch: pa.Table) -> Change:
        """Adds records; of persons with several, those that `person.records` of the policy names."""
        which = self.policy.persons.records if self.policy.persons else "all"
        if which == "all":
            return super().insert(batch)
        batch = check_batch(batch, self.policy)
        batch = batch.take(pa.array(np.argsort(self._event_positions(batch), kind="stable")))
        batch = _keep_one_record(batch, self._person, which)
        here = pa.array(
            [bool(self.records.rows_of_person(person)) for person in self._identities(batch)[0]], pa.bool_()
        )
        change = super().insert(batch.filter(pc.invert(here)))
        return change if which == "first" else change.then(self.update(self._later_records(batch.filter(here))))

    def _later_records(self, batch: pa.Table) -> pa.Table:
        """Records of known persons that do not lie before the last one of theirs."""
        persons = hash_persons(batch.column(self._person), self.rng, self._person)
        return batch.filter(pa.array(~self.person_states.is_early(persons, self._event_positions(batch)), pa.bool_()))

    def _prepare_insert(self, batch: pa.Table) -> Arrivals:
        """Refuses a second record of a person unless the policy says in which order they came."""
        if self._events is None:
            names = self.ids_of(batch).persons
            further = sum(bool(self.records.rows_of_person(name)) for name in names) + len(names) - len(set(names))
            if further:
                raise DataError(
                    f"{further:,} records are a further one of a person, in no order that the policy names; "
                    "nothing was changed.",
                    hint=f"Use update for a record that changed. {_ONE_RECORD_HINT}",
                )
        arrivals = self._arrivals(batch)
        self.person_states.refuse_early(arrivals)
        refuse_value_conflicts(self._count_contradictions(arrivals, self.ids_of(batch).persons))
        return arrivals

    def _prepare_update(self, rows: UInt32s, batch: pa.Table) -> Arrivals:
        """Refuses another value for a record that its person has left behind."""
        arrivals = self._arrivals(batch)
        astray = sum(life is None for life in self._move_events(rows, arrivals).values())
        if astray:
            raise DataError(
                f"{astray:,} persons have a record that would lie before or behind another one of theirs now; nothing was changed.",
                hint="An update keeps the order of a person's records; delete those that are wrong.",
            )
        changed = np.flatnonzero(self._domain_codes(self.records.values(rows)) != arrivals.values)
        refuse_value_conflicts(self._count_conflicts(rows[changed], arrivals.values[changed]))
        persons = arrivals.persons[changed]
        behind = len(changed) - int(
            np.count_nonzero(self.person_states.is_latest(persons, self.records.memories[rows[changed]]))
        )
        if behind:
            raise DataError(
                f"{behind:,} records with another value are not the last ones of their persons; nothing was changed.",
                hint="Correct the last record of a person; delete earlier ones that are wrong.",
            )
        return arrivals

    def _count_contradictions(self, arrivals: Arrivals, names: Sequence[str]) -> int:
        """New records of an event that has another value, with them or in the table: as two values it would show two sets."""
        if self._events is None:
            return 0
        values: dict[tuple[int, int], int] = {}
        others = 0
        for name, person, order, value in zip(
            names, arrivals.persons.tolist(), arrivals.positions.tolist(), arrivals.values.tolist(), strict=True
        ):
            if (person, order) not in values:
                memory, known = self.person_states.last_event_at(person, order)
                live = memory and any(
                    self.records.memories[row].tobytes() == memory for row in self.records.rows_of_person(name)
                )
                values[person, order] = known if live else value
            others += values[person, order] != value
        return others

    def _move_events(self, rows: UInt32s, arrivals: Arrivals) -> dict[int, bytes | None]:
        """By person the life whose events lie where the records of an update say; None where their order would be another."""
        if self._events is None or self._one_record_each:
            return {}
        orders: dict[int, dict[int, int]] = {}
        for row, person, order in zip(
            rows.tolist(), arrivals.persons.tolist(), arrivals.positions.tolist(), strict=True
        ):
            orders.setdefault(person, {})[row] = order
        return {person: self._move_person(person, places) for person, places in orders.items()}

    def _move_person(self, person: int, positions: Mapping[int, int]) -> bytes | None:
        records = self.records.rows_of_person(str(self.records.persons[next(iter(positions))]))
        shown = {row: self.records.memories[row].tobytes() for row in records}
        places = {shown[row]: order for row, order in positions.items()}
        known = self.person_states.event_positions(person)
        # All records of an event move together.
        parted = any(
            positions.get(row, known[memory]) != places[memory]
            for row, memory in shown.items()
            if memory in places and memory in known
        )
        return (
            None if parted else self.person_states.move_events(person, places, alone=set(shown.values()) <= set(known))
        )

    def _count_conflicts(self, rows: UInt32s, values: Int32s) -> int:
        """Records of an event that would not get the value which others of the same event get."""
        now, others = dict(zip(rows.tolist(), values.tolist(), strict=True)), 0
        for row, value in now.items():
            records = self.records.rows_of_person(str(self.records.persons[row]))
            same = (other for other in records if (self.records.memories[other] == self.records.memories[row]).all())
            others += any(now.get(other) != value for other in same) if len(records) > 1 else 0
        return others

    def _arrivals(self, batch: pa.Table) -> Arrivals:
        house = self._veiler.parameters
        persons = hash_persons(batch.column(self._person), self.rng, self._person)
        unit = self.policy.household
        return Arrivals(
            persons,
            persons if unit is None else hash_persons(batch.column(unit), self.rng, unit),
            self._stratum_lookup.strata_of(batch),
            house.domain.encode(batch.column(self.sensitive)),
            self._event_positions(batch),
        )

    def _hash_persons(self, rows: UInt32s, notes: Arrivals) -> None:
        """Persons for the ledger and for the veil, under keys of their own: a veil under a wrong key then shows itself."""
        super()._hash_persons(rows, notes)
        self.records.hashes[rows, 1:] = np.stack([notes.persons, notes.households], axis=1)

    def _insert_rows(self, rows: UInt32s, notes: Arrivals) -> tuple[UInt32s, Change]:
        order = np.argsort(notes.positions, kind="stable")
        self.records.memories[rows[order]] = self.person_states.add_events(notes.take(order), self.publications)
        self.records.classes[rows] = 0
        return rows, Change(persons=np.unique(notes.persons))

    def _delete_rows(self, rows: UInt32s) -> tuple[UInt32s, Change]:
        """What nobody saw did not happen: who comes back goes on from what readers know."""
        again, change = self._rebuild_events(rows, set(rows.tolist()))
        return np.union1d(rows, again), change

    def _rebuild_events(self, rows: UInt32s, gone: Container[int]) -> tuple[UInt32s, Change]:
        """Makes the events of persons of rows that nobody saw once more, from the records that are left; those whose memory is another."""
        persons, first = np.unique(self.records.hashes[rows, 1], return_index=True)
        names = {person: self.records.persons[row] for person, row in zip(persons.tolist(), rows[first], strict=True)}
        hidden, moved = self.person_states.unpublished_persons(persons, self.publications), []
        left = {p: [row for row in self.records.rows_of_person(str(names[p])) if row not in gone] for p in hidden}
        places = self._households_and_strata([row for rows in left.values() for row in rows])
        for person in hidden:
            shown = {row: self.records.memories[row].tobytes() for row in left[person]}
            records = {memory: row for row, memory in reversed(shown.items())}
            made = self.person_states.rebuild_events(person, records, self.publications, places)
            for row in left[person]:
                if (now := made.get(records[shown[row]])) is not None:
                    self.records.memories[row] = np.frombuffer(now, np.uint8)
                    moved.append(row)
        return np.array(moved, dtype=np.uint32), Change(persons=np.array(hidden, dtype=np.uint64))

    def _households_and_strata(self, rows: Sequence[int]) -> dict[int, tuple[int, int]]:
        """By record its unit, and the row of the prior that its fields have."""
        if not rows:
            return {}
        at = np.array(rows, dtype=np.uint32)
        units = np.where(self.records.hashes[at, 2] > 0, self.records.hashes[at, 2], self.records.hashes[at, 1])
        strata = self._stratum_lookup.strata_of(self._published_fields(at))
        return dict(zip(rows, zip(units.tolist(), strata.tolist(), strict=True), strict=True))

    def _published_fields(self, rows: UInt32s) -> pa.Table:
        """The columns of records that are published as they are."""
        records, names = self.records, [*self.policy.quasi, *self.policy.plain]
        return pa.table(
            {name: records.words[name].decode(records.codes[rows, records.columns.index(name)]) for name in names}
        )

    def _update_rows(self, rows: UInt32s, codes: Int32s, notes: Arrivals) -> tuple[UInt32s, Change]:
        """Only another sensitive value is an event; the other columns are shown as they are now."""
        # Of one record each, all say where the last event of their person lies now.
        corrected = np.flatnonzero(
            (self._domain_codes(self.records.values(rows)) != notes.values) | self._one_record_each
        )
        elsewhere = (decode_memories(self.records.memories[rows]).strata != notes.strata) | (
            self.records.hashes[rows, 2] != notes.households
        )
        lives = {person: life for person, life in self._move_events(rows, notes).items() if life is not None}
        self.person_states.load(lives)
        self.records.put(rows, codes)
        self.records.hashes[rows, 2] = notes.households
        some = notes.take(corrected)
        self.records.memories[rows[corrected]] = self.person_states.correct(some, self.publications)
        again, change = self._rebuild_events(rows[elsewhere], ())
        persons = np.concatenate([some.persons, change.persons, np.array(list(lives), dtype=np.uint64)])
        return np.union1d(rows, again), replace(change, persons=np.unique(persons))

    def _domain_codes(self, values: Int32s) -> Int32s:
        """Codes of the records as codes of the domain."""
        words = self.records.words[self.sensitive]
        return self._veiler.parameters.domain.encode(words.decode(values))

    def _event_positions(self, batch: pa.Table) -> Int64s:
        """Each record's place in the life of its person; the same for all where the policy names no order."""
        if self._events is None:
            return np.zeros(batch.num_rows, dtype=np.int64)
        numbers = event_times(batch.column(self._events), self._events, self.policy)
        if numbers.dtype != np.int64:
            raise DataError(
                f"Column '{self._events}' does not say the order of records.",
                hint="Fill it with whole numbers, dates or times: person.events names it.",
            )
        return np.asarray(numbers, dtype=np.int64)

    # -- memory ------------------------------------------------------------------------------------------------------

    def ids_to_load(self, change: pa.Table) -> ChangeIds:
        """The records that the change names, and no others."""
        return self.ids_of(change)

    def keys_to_recall(self, change: pa.Table) -> list[str]:
        """Persons of the change who are not in memory."""
        named = self.ids_of(change)
        rows = [row for name in named.persons for row in self.records.rows_of_person(name)]
        rows += [row for name in named.records if (row := self.records.row_of_record(name)) is not None]
        persons = set(self.records.hashes[rows, 1].tolist())
        if named.persons:
            column = change.column(self._person).drop_null()
            persons |= set(hash_persons(column, self.rng, self._person).tolist())
        return [_person_key(person) for person in sorted(persons) if person not in self.person_states]

    def recall(self, memories: Mapping[str, bytes]) -> None:
        """Takes up what was remembered of persons."""
        self.person_states.load({int(key, 16): life for key, life in memories.items()})

    def memories(self, persons: UInt64s | None = None) -> dict[str, bytes]:
        """The lives of persons, by key."""
        return {_person_key(person): life for person, life in self.person_states.dump(persons).items()}

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

    def _count_withheld(self) -> int:
        return 0


def _person_key(person: int) -> str:
    return f"{person:016x}"


def _keep_one_record(batch: pa.Table, person: str, which: str) -> pa.Table:
    """The first or the last record of every person, in the order of the batch."""
    persons = batch.column(person).cast(pa.string()).to_pylist()
    places = range(len(persons))
    chosen = {persons[at]: at for at in (places if which == "last" else reversed(places))}
    return batch.take(pa.array(sorted(chosen.values()), pa.int64()))


_SMALL_BATCH = 8


class StratumLookup:
    """Climbs the hierarchies as `PublishedLevels` does, and remembers which values fit them and where small batches led."""

    def __init__(self, levels: PublishedLevels, policy: Policy, by: Sequence[str]) -> None:
        self._levels, self._by = levels, tuple(by)
        self._valid_values: dict[str, set[Any]] = {
            name: set() for name in policy.quasi if policy.columns[name].hierarchy is not None
        }
        self._strata: dict[tuple[Any, ...], int] = {}

    def strata_of(self, batch: pa.Table) -> UInt32s:
        """The rows of a batch; a value outside its hierarchy is refused, whether or not the prior asks for it."""
        if batch.num_rows > _SMALL_BATCH:
            return self._levels.publish(batch)[1]
        keys = self._keys(batch)
        cells = {name: set(batch.column(name).to_pylist()) for name in self._valid_values}
        if not all(key in self._strata for key in keys) or any(
            cells[name] - fits for name, fits in self._valid_values.items()
        ):
            rows = self._levels.publish(batch)[1]
            self._strata.update(zip(keys, rows.tolist(), strict=True))
            for name, fits in self._valid_values.items():
                fits.update(cells[name])
        return np.array([self._strata[key] for key in keys], dtype=np.uint32)

    def _keys(self, batch: pa.Table) -> list[tuple[Any, ...]]:
        if not self._by:
            return [()] * batch.num_rows
        return list(zip(*(batch.column(name).to_pylist() for name in self._by), strict=True))
