"""Turn records of a table into events of persons: which are published, in which order, and which repeat a fact."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from reticent.arrays import Bools, Int64s, Integers, UInt64s
from reticent.encode.event_times import event_times
from reticent.errors import DataError
from reticent.policy import Policy
from reticent.policy.cells import encode_cells


@dataclass(frozen=True, repr=False)
class Events:
    """The facts of a table, each person's in order of time.

    Attributes:
        records: positions of the published records.
        facts: position of one record per fact, earlier facts first.
        fact_of: per published record, the index of its fact.
    """

    records: Int64s
    facts: Int64s
    fact_of: Int64s


def events_of(table: pa.Table, policy: Policy) -> Events:
    """Return the events of a table's persons, as `person` in the policy says; without a person every record is a fact.

    Raises:
        DataError: persons have several records and the policy names no order, or one event has two values.
    """
    positions = np.arange(table.num_rows)
    settings = policy.persons
    if settings is None:
        return Events(positions, positions, positions)
    persons = _codes(table.column(settings.column))
    if settings.events is None:
        ranks = positions
        _refuse_repeats(persons, settings.records)
    else:
        ranks = _event_ranks(table, policy, settings.events)
    first, fact_of = _facts(persons, ranks)
    if settings.events is not None:
        _refuse_contradictions(table.column(policy.sensitive[0]), first[fact_of])
    if settings.records != "all":
        chosen = _end_facts(persons[first], ranks[first], last=settings.records == "last")
        return Events(first[chosen], first[chosen], np.arange(len(chosen)))
    order = np.lexsort((first, ranks[first]))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return Events(positions, first[order], place[fact_of])


def iter_rounds(keys: UInt64s) -> Iterator[Int64s]:
    """Yield the first records of all keys, then the second ones, and so on, each round in input order."""
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], keys[order][1:] != keys[order][:-1]]))
    ranks = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    by_round = order[np.lexsort((order, ranks))]
    yield from np.split(by_round, np.cumsum(np.bincount(ranks))[:-1])


def _codes(column: pa.ChunkedArray) -> Int64s:
    return encode_cells(column.cast(pa.string()))[0].astype(np.int64)


def _event_ranks(table: pa.Table, policy: Policy, name: str) -> Int64s:
    """Rank each record by its time or event number."""
    _, ranks = np.unique(event_times(table.column(name), name, policy), return_inverse=True)
    return np.asarray(ranks, dtype=np.int64)


def _refuse_repeats(persons: Int64s, records: str) -> None:
    repeats = len(persons) - len(np.unique(persons))
    if repeats and records == "all":
        raise DataError(
            f"{repeats:,} records are further records of a person, and the policy names no order of events.",
            hint="Write person: {column: ..., events: COLUMN} with a time or visit number, or {records: first} or "
            "{records: last}; or publish a series or a stream.",
        )


def _facts(persons: Int64s, ranks: Int64s) -> tuple[Int64s, Int64s]:
    """Return the first record of every fact, and the fact of every record."""
    key = persons * (int(ranks.max(initial=0)) + 1) + ranks
    _, first, fact_of = np.unique(key, return_index=True, return_inverse=True)
    return first, fact_of.reshape(-1)


def _refuse_contradictions(column: pa.ChunkedArray, first: Int64s) -> None:
    values = _codes(column)
    refuse_value_conflicts(int((values != values[first]).sum()))


def refuse_value_conflicts(conflicts: int) -> None:
    """Refuse records that repeat an event with another sensitive value."""
    if conflicts:
        raise DataError(
            f"{conflicts:,} records repeat an event of a person with another sensitive value.",
            hint="Correct these records, or give every event its own number.",
        )


def _end_facts(persons: Int64s, ranks: Int64s, *, last: bool) -> Int64s:
    """Return the first or last fact of every person."""
    order = np.lexsort((-ranks if last else ranks, persons))
    return np.asarray(order[np.unique(persons[order], return_index=True)[1]])


@dataclass(frozen=True, repr=False)
class Trajectories:
    """The trajectory of every person: records ordered by person and event.

    Attributes:
        order: positions of the records, person by person.
        starts: per person, the first index in `order`; then the total.
    """

    order: Integers
    starts: Integers

    @classmethod
    def of(cls, table: pa.Table, policy: Policy) -> Trajectories:
        """Build trajectories; without a person every record is one, without a column of events the table's order counts."""
        every = np.arange(table.num_rows)
        settings = policy.persons
        if settings is None or settings.column not in table.column_names:
            return cls(every, np.arange(table.num_rows + 1))
        persons, ranks = _codes(table.column(settings.column)), every
        if settings.events is not None and settings.events in table.column_names:
            ranks = _event_ranks(table, policy, settings.events)
        order, _ = _facts(persons, ranks)  # a repeated event counts once
        starts = np.flatnonzero(np.concatenate([[True], np.diff(persons[order]) != 0]))
        return cls(order, np.append(starts, len(order)))

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def firsts(self) -> Integers:
        """The first record of every person."""
        return self.order[self.starts[:-1]]

    @property
    def lengths(self) -> Integers:
        """The number of events of every person."""
        return np.diff(self.starts)

    @property
    def has_several(self) -> Bools:
        """Whether a person has several events."""
        return np.asarray(self.lengths > 1)

    def transitions(self, values: Integers, persons: Integers) -> tuple[Integers, Integers, Integers]:
        """Return all transitions of some persons, given the code of every record: person, value before, value after."""
        lengths = self.lengths[persons] - 1
        who = np.repeat(persons, lengths)
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        at = self.starts[who] + within
        return who, values[self.order[at]], values[self.order[at + 1]]

    def sample_step(self, values: Integers, persons: Integers, rng: np.random.Generator) -> tuple[Integers, Integers]:
        """Draw one transition at random for each person with several events: value before, value after."""
        several = persons[self.has_several[persons]]
        at = self.starts[several] + (rng.random(len(several)) * (self.lengths[several] - 1)).astype(np.int64)
        return values[self.order[at]], values[self.order[at + 1]]
