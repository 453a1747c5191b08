"""Check that values stay from event to event, or between releases of a series, as often as the transition kernel says.

False candidates change by the kernel at every event. If true values stay more often, as in a table published twice, a candidate
that changed is false; if they change more often, a candidate that stayed is false.

Guarantee: against an attacker who compares candidates over events, a table or a release of a series is refused if the number
    of persons who stayed differs from the kernel by more than a tenth of the persons and by more than chance explains.
Not covered: evolving tables and streams; the targets of changes; smaller differences, which are measured with a new kernel.
Cost: one pass over the remembered values.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reticent.arrays import Int32s, Int64s, Integers, UInt8s, UInt32s, UInt64s
from reticent.engine.veil.parameters import VeilParameters
from reticent.errors import GuaranteeError

HEADER_BYTES = 8
"""Bytes of a person's memory before its slots; see `core/src/veil/memory.rs`."""
OMITTED = 255
"""The slot number that says: the true value is omitted."""
# A share of the persons (as MAX_OMISSION_RATE), and standard errors.
_MAX_DEVIATION, _MAX_STANDARD_ERRORS = 0.1, 4.0


class RememberedValues(NamedTuple):
    """Persons whose true value is remembered, as parallel arrays. Private."""

    persons: UInt64s
    clocks: UInt32s
    strata: Int64s
    values: Int32s

    @classmethod
    def of(cls, people: bytes, l: int) -> RememberedValues:
        """Parse the bytes of the core's `People.to_bytes`."""
        size = int.from_bytes(people[:8], "little")
        persons, clocks = np.frombuffer(people, "<u8", size, 8), np.frombuffer(people, "<u4", size, 8 + 8 * size)
        memories: UInt8s = np.frombuffer(people, np.uint8, offset=8 + 12 * size).reshape(size, HEADER_BYTES + 2 * l)
        offered = memories[:, 6] != OMITTED
        offered_memories = memories[offered]
        slots = np.ascontiguousarray(offered_memories[:, HEADER_BYTES:]).view("<u2")
        strata = np.ascontiguousarray(offered_memories[:, :2]).view("<u2").reshape(-1)
        values = slots[np.arange(len(offered_memories)), offered_memories[:, 6]].astype(np.int32)
        return cls(persons[offered], clocks[offered], strata.astype(np.int64), values)

    def transitions(self, persons: UInt64s, values: Int32s, *, now: int) -> Transitions:
        """Return the transitions from the release before `now` to release `now`, of persons in both."""
        _, old, new = np.intersect1d(self.persons, persons, return_indices=True)
        last = self.clocks[old] == now - 1
        return Transitions(self.strata[old[last]], self.values[old[last]], values[new[last]])


class Transitions(NamedTuple):
    """Transitions of persons, as parallel arrays: stratum of the prior, value before, value after. Private."""

    strata: Integers
    before: Int32s
    after: Int32s

    @classmethod
    def from_records(cls, persons: UInt64s, strata: Integers, values: Int32s) -> Transitions:
        """Return the transitions in a table whose records of a person are in order of time."""
        order = np.argsort(persons, kind="stable")
        at = np.flatnonzero((persons[order][1:] == persons[order][:-1]) & (values[order][:-1] >= 0))
        return cls(strata[order[at]], values[order[at]], values[order[at + 1]])


def check_transitions(parameters: VeilParameters, transitions: Transitions) -> None:
    """Refuse transitions that stay or change at another rate than the kernel says.

    Raises:
        GuaranteeError: the false candidates would reveal which candidates are true.
    """
    assert parameters.kernel is not None  # noqa: S101 - without a kernel candidates never change
    stays = parameters.kernel.stay_probabilities(parameters.segments)[transitions.strata, transitions.before]
    size, stayed, expected = len(stays), int((transitions.before == transitions.after).sum()), float(stays.sum())
    gap = abs(stayed - expected)
    if gap > _MAX_DEVIATION * size and gap > _MAX_STANDARD_ERRORS * float(np.sqrt((stays * (1 - stays)).sum())):
        raise GuaranteeError(
            f"{stayed:,} of {size:,} values are unchanged since the person's last event, but the kernel expects {expected:,.0f}: "
            "the false candidates would reveal the true values; nothing was published.",
            hint="Publish at the interval at which the kernel was counted (each event, and each release of a series, is one step), "
            "or start again with a prior and a kernel from data like these.",
        )
