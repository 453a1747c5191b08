"""Pilot run on a sample of persons of a large table: which search is best, how long it takes, and where it begins.

Guarantee: none of its own; the published release is searched and checked on all records.
Not covered: small tables, whose searches end soon.
Cost: the searches on about `SAMPLE` records, in a quarter of the remaining time.
Reference: none.
Differences from the paper: none; this is our own method. The size of linked classes depends on how frequent the values
    are, and hardly on the number of records, so a sample is enough to find it. The search of all records begins there:
    one run can take a minute, and every wrong start costs another run.
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
"""Rows from which on a pilot run is made."""
SAMPLE = 100_000
_TIME_SHARE = 4
"""The pilot run takes the remaining time divided by this number."""
_LIMIT_MARGIN = 0.9
"""Share of the suppression limit that the sample may use, so that the result holds for all persons."""
_PRECISION = 8
"""The search for the number of persons stops at a relative precision of 1 in this number."""
_MIX_FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def rank_methods(encoded: EncodedTable, methods: Sequence[SearchMethod]) -> list[SearchMethod]:
    """Return the methods, best first, with their first `linked_k` and expected time; unchanged for a small table."""
    sample = sample_persons(encoded)
    if sample is None:
        return list(methods)
    sample, factor = sample.with_time_share(_TIME_SHARE), encoded.rows / sample.rows
    pilots = [_run_pilot(sample.with_time_share(len(methods) - place), method) for place, method in enumerate(methods)]
    ranking = sorted(range(len(methods)), key=lambda at: pilots[at].loss)
    return [
        replace(
            methods[at], linked_k=pilots[at].linked_k, seconds=factor * pilots[at].seconds, favorite=at == ranking[0]
        )
        for at in ranking
    ]


def sample_persons(encoded: EncodedTable) -> EncodedTable | None:
    """Return all records of a sample of persons, independent of the row order; None for a small table.

    If every person has one record, records with equal quasi-identifiers stay together.
    """
    hashes = np.zeros(len(encoded.codes(encoded.quasi[0])), dtype=np.uint64)
    if len(hashes) < LARGE_TABLE:
        return None
    for name in encoded.quasi:
        hashes = _mix(hashes + encoded.codes(name).astype(np.uint64))
    if encoded.people is not None:
        sums = np.zeros(encoded.people.count, dtype=np.uint64)
        np.add.at(sums, encoded.people.persons, hashes)
        hashes = _mix(sums)[encoded.people.persons]
    bound = np.partition(hashes, SAMPLE)[SAMPLE]
    return encoded.take_rows(np.flatnonzero(hashes <= bound))


def _mix(numbers: UInt64s) -> UInt64s:
    """Hash numbers uniformly (the last steps of splitmix64)."""
    for factor in _MIX_FACTORS:
        numbers = (numbers ^ (numbers >> np.uint64(30))) * factor
    return numbers ^ (numbers >> np.uint64(31))


@dataclass(frozen=True)
class _PilotResult:
    loss: float
    linked_k: int = 0
    seconds: float = 0.0


def _run_pilot(sample: EncodedTable, method: SearchMethod) -> _PilotResult:
    """Return a method's loss on the sample, the smallest `linked_k` it can begin with, and the time of one run."""
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
    """Return the seconds since `begin`; 0 if there is no time limit."""
    left = sample.cancellation.seconds_left
    return 0.0 if begin is None or left is None else begin - left
