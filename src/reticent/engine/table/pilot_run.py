"""A rehearsal on some of the persons of a large table: which search promises most, how long it takes, and where it should begin.

Guarantee: none of its own; what is published is searched on all records, and judged on all of them.
Not covered: small tables, whose searches end soon anyway.
Cost: the searches on at most `SAMPLE` records, for a quarter of the time that is left.
Reference: none.
Differences from the paper: ours. How large the classes of linked records must be depends on how frequent the values are, hardly on
    the number of records, so that it is found on few of them; the search of all records then begins there, where one run is a minute's work
    and every wrong start costs another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from reticent.arrays import UInt64s
from reticent.engine.table.encoded_table import EncodedTable
from reticent.engine.table.generalized import measure_outcome
from reticent.engine.table.method_selection import SearchMethod
from reticent.engine.table.people import search_classes, suppress_links
from reticent.errors import GuaranteeError

LARGE_TABLE = 400_000
"""Records from which on searches are rehearsed."""
SAMPLE = 100_000
_TIME_SHARE = 4
"""The rehearsal takes one part in so many of the time."""
_LIMIT_MARGIN = 0.9
"""Of the limit of suppression: what is found on some persons should hold for all."""
_PRECISION = 8
"""Numbers of persons that are nearer than one part in so many need no further try."""
_MIX_FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def rank_methods(encoded: EncodedTable, methods: Sequence[SearchMethod]) -> list[SearchMethod]:
    """The parts, the most promising first, each with where to begin and how long it will take; those of a small table as they are."""
    sample = sample_persons(encoded)
    if sample is None:
        return list(methods)
    sample, more = sample.with_time_share(_TIME_SHARE), encoded.rows / sample.rows
    tries = [_run_pilot(sample.with_time_share(len(methods) - place), part) for place, part in enumerate(methods)]
    order = sorted(range(len(methods)), key=lambda at: tries[at].loss)
    told = {at: replace(methods[at], linked_k=tries[at].linked_k, seconds=more * tries[at].seconds) for at in order}
    return [replace(told[at], favorite=at == order[0]) for at in order]


def sample_persons(encoded: EncodedTable) -> EncodedTable | None:
    """All records of some persons, the same ones whatever the order of the rows; none of a small table.

    Where everybody has one record, those who are alike in all quasi-identifiers stay together.
    """
    marks = np.zeros(len(encoded.codes(encoded.quasi[0])), dtype=np.uint64)
    if len(marks) < LARGE_TABLE:
        return None
    for name in encoded.quasi:
        marks = _mix(marks + encoded.codes(name).astype(np.uint64))
    if encoded.people is not None:
        sums = np.zeros(encoded.people.count, dtype=np.uint64)
        np.add.at(sums, encoded.people.persons, marks)
        marks = _mix(sums)[encoded.people.persons]
    bound = np.partition(marks, SAMPLE)[SAMPLE]
    return encoded.take_rows(np.flatnonzero(marks <= bound))


def _mix(numbers: UInt64s) -> UInt64s:
    """Other numbers for the same, spread over all (the last steps of splitmix64)."""
    for factor in _MIX_FACTORS:
        numbers = (numbers ^ (numbers >> np.uint64(30))) * factor
    return numbers ^ (numbers >> np.uint64(31))


@dataclass(frozen=True)
class _PilotResult:
    loss: float
    linked_k: int = 0
    seconds: float = 0.0


def _run_pilot(sample: EncodedTable, method: SearchMethod) -> _PilotResult:
    """What a part loses on the sample, the fewest persons that it can begin with, and how long one run takes."""
    sample = replace(sample, emphasis=method.emphasis)
    begin = sample.cancellation.seconds_left
    try:
        outcome = search_classes(sample, method.find)
    except GuaranteeError:
        return _PilotResult(math.inf)
    loss = measure_outcome(sample, outcome).loss
    seconds = _seconds_since(begin, sample)
    if sample.people is None or method.keeps_persons_whole or outcome.explain.get("stopped"):
        return _PilotResult(loss, 0, seconds)
    begin, low, high, runs = (
        sample.cancellation.seconds_left,
        int(outcome.explain["apart"]) // 4,
        int(outcome.explain["apart"]),
        0,
    )
    while high - low > max(1, high // _PRECISION):
        middle, runs = (low + high) // 2, runs + 1
        fewer = suppress_links(sample, method.find(sample.with_linked_k(middle)))
        if sample.cancellation.stopped:
            break
        if int(fewer.suppressed.sum()) <= _LIMIT_MARGIN * sample.limit:
            outcome, high = fewer, middle
        else:
            low = middle
    return _PilotResult(measure_outcome(sample, outcome).loss, high, _seconds_since(begin, sample) / max(runs, 1))


def _seconds_since(begin: float | None, sample: EncodedTable) -> float:
    """Seconds that have gone; 0 where nobody counts them."""
    left = sample.cancellation.seconds_left
    return 0.0 if begin is None or left is None else begin - left
