"""Records of a table as events of persons: which count, in which order, which say the same fact again, and what followed what."""

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
    """The facts of a table, a person's in the order in which they came.

    Attributes:
        records: records that are published.
        facts: records that stand for the facts, each before those that came later.
        fact_of: per published record, the number of its fact.
    """

    records: Int64s
    facts: Int64s
    fact_of: Int64s


def events_of(table: pa.Table, policy: Policy) -> Events:
    """The events of a table's persons, as the policy's `person` says; without a person every record is a fact.

    Raises:
        DataError: persons have several records in no order that the policy names, or one event with two values.
    """
    every = np.arange(table.num_rows)
    settings = policy.persons
    if settings is None:
        return Events(every, every, every)
    persons = _codes(table.column(settings.column))
    if settings.events is None:
        turns = every
        _refuse_repeats(persons, settings.records)
    else:
        turns = _event_ranks(table, policy, settings.events)
    first, fact_of = _facts(persons, turns)
    if settings.events is not None:
        _refuse_contradictions(table.column(policy.sensitive[0]), first[fact_of])
    if settings.records != "all":
        chosen = _end_facts(persons[first], turns[first], last=settings.records == "last")
        return Events(first[chosen], first[chosen], np.arange(len(chosen)))
    order = np.lexsort((first, turns[first]))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return Events(every, first[order], place[fact_of])


def iter_rounds(keys: UInt64s) -> Iterator[Int64s]:
    """The first records of all keys, then the second ones, and so on, each round in the order of the input."""
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], keys[order][1:] != keys[order][:-1]]))
    turns = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    by_turn = order[np.lexsort((order, turns))]
    yield from np.split(by_turn, np.cumsum(np.bincount(turns))[:-1])


def _codes(column: pa.ChunkedArray) -> Int64s:
    return encode_cells(column.cast(pa.string()))[0].astype(np.int64)


def _event_ranks(table: pa.Table, policy: Policy, name: str) -> Int64s:
    """The rank of each record's time or number."""
    _, turns = np.unique(event_times(table.column(name), name, policy), return_inverse=True)
    return np.asarray(turns, dtype=np.int64)


def _refuse_repeats(persons: Int64s, records: str) -> None:
    further = len(persons) - len(np.unique(persons))
    if further and records == "all":
        raise DataError(
            f"{further:,} records are a further one of a person, in no order that the policy names.",
            hint="Write person: {column: ..., events: COLUMN} with a time or visit number, or {records: first} or "
            "{records: last}; or publish them as a series or a stream.",
        )


def _facts(persons: Int64s, turns: Int64s) -> tuple[Int64s, Int64s]:
    """The first record of every fact, and per record its fact."""
    key = persons * (int(turns.max(initial=0)) + 1) + turns
    _, first, fact_of = np.unique(key, return_index=True, return_inverse=True)
    return first, fact_of.reshape(-1)


def _refuse_contradictions(column: pa.ChunkedArray, first: Int64s) -> None:
    values = _codes(column)
    refuse_value_conflicts(int((values != values[first]).sum()))


def refuse_value_conflicts(others: int) -> None:
    """Refuses records of an event that has another value already."""
    if others:
        raise DataError(
            f"{others:,} records repeat an event of a person with another value.",
            hint="Correct them, or give every event a number of its own.",
        )


def _end_facts(persons: Int64s, turns: Int64s, *, last: bool) -> Int64s:
    """The first or last fact of every person."""
    order = np.lexsort((-turns if last else turns, persons))
    return np.asarray(order[np.unique(persons[order], return_index=True)[1]])


@dataclass(frozen=True, repr=False)
class Trajectories:
    """Records in the order of persons and of their events.

    Attributes:
        order: records, each person's one behind the other.
        starts: per person, where they begin; and the end of all.
    """

    order: Integers
    starts: Integers

    @classmethod
    def of(cls, table: pa.Table, policy: Policy) -> Trajectories:
        """The paths of a table; without a person every record is one, without a column of events the order of the table is theirs."""
        every = np.arange(table.num_rows)
        settings = policy.persons
        if settings is None or settings.column not in table.column_names:
            return cls(every, np.arange(table.num_rows + 1))
        persons, turns = _codes(table.column(settings.column)), every
        if settings.events is not None and settings.events in table.column_names:
            turns = _event_ranks(table, policy, settings.events)
        order, _ = _facts(persons, turns)  # the same event again counts once
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
        """Events of every person."""
        return np.diff(self.starts)

    @property
    def has_several(self) -> Bools:
        """Whether a person has several events."""
        return np.asarray(self.lengths > 1)

    def transitions(self, values: Integers, persons: Integers) -> tuple[Integers, Integers, Integers]:
        """All transitions of some persons, by the code of every record of the table: who, before, after."""
        lengths = self.lengths[persons] - 1
        who = np.repeat(persons, lengths)
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        at = self.starts[who] + within
        return who, values[self.order[at]], values[self.order[at + 1]]

    def sample_step(self, values: Integers, persons: Integers, rng: np.random.Generator) -> tuple[Integers, Integers]:
        """One transition of each of the persons who have any, drawn at random: before, after."""
        several = persons[self.has_several[persons]]
        at = self.starts[several] + (rng.random(len(several)) * (self.lengths[several] - 1)).astype(np.int64)
        return values[self.order[at]], values[self.order[at + 1]]
