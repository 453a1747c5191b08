"""The pace of persons: whether values stay from event to event, or from release to release of a series, as often as the kernel says.

Decoys step by the kernel with every event. Where the truths rest more often than that, as in a table that is published twice, what has
moved is no truth; where they move more often, what rests is none.

Guarantee: a table, or a release of a series, is refused whose persons stayed more often, or more seldom, than the kernel says, by a tenth of them and by more
    than chance explains.
Not covered: evolving tables and streams, whose events come one by one; where those go who move, and smaller differences; they are measured when a kernel is made, on persons of the past.
Cost: one pass over what is remembered.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reticent.arrays import Int32s, Int64s, Integers, UInt8s, UInt32s, UInt64s
from reticent.engine.veil.parameters import VeilParameters
from reticent.errors import GuaranteeError

HEADER_BYTES = 8
"""Bytes of a memory before its slots; see `core/src/veil/memory.rs`."""
OMITTED = 255
"""In the place of a true slot: the truth is not offered."""
# Of the persons, as with truths that are not offered; and standard deviations of what chance does.
_MAX_DEVIATION, _MAX_STANDARD_ERRORS = 0.1, 4.0


class RememberedValues(NamedTuple):
    """Persons of whom a true value is remembered, side by side. Private."""

    persons: UInt64s
    clocks: UInt32s
    strata: Int64s
    values: Int32s

    @classmethod
    def of(cls, people: bytes, l: int) -> RememberedValues:
        """What the core's `People.to_bytes` holds."""
        size = int.from_bytes(people[:8], "little")
        persons, clocks = np.frombuffer(people, "<u8", size, 8), np.frombuffer(people, "<u4", size, 8 + 8 * size)
        memories: UInt8s = np.frombuffer(people, np.uint8, offset=8 + 12 * size).reshape(size, HEADER_BYTES + 2 * l)
        offered = memories[:, 6] != OMITTED
        some = memories[offered]
        slots = np.ascontiguousarray(some[:, HEADER_BYTES:]).view("<u2")
        rows = np.ascontiguousarray(some[:, :2]).view("<u2").reshape(-1)
        values = slots[np.arange(len(some)), some[:, 6]].astype(np.int32)
        return cls(persons[offered], clocks[offered], rows.astype(np.int64), values)

    def transitions(self, persons: UInt64s, values: Int32s, *, now: int) -> Transitions:
        """From the last release to the one of a number, of those who stand in both."""
        _, old, new = np.intersect1d(self.persons, persons, return_indices=True)
        last = self.clocks[old] == now - 1
        return Transitions(self.strata[old[last]], self.values[old[last]], values[new[last]])


class Transitions(NamedTuple):
    """Steps of persons, side by side: row of the prior, value before and after. Private."""

    strata: Integers
    before: Int32s
    after: Int32s

    @classmethod
    def from_records(cls, persons: UInt64s, strata: Integers, values: Int32s) -> Transitions:
        """Of the records of a table, those of a person in their order."""
        order = np.argsort(persons, kind="stable")
        at = np.flatnonzero((persons[order][1:] == persons[order][:-1]) & (values[order][:-1] >= 0))
        return cls(strata[order[at]], values[order[at]], values[order[at + 1]])


def check_transitions(parameters: VeilParameters, transitions: Transitions) -> None:
    """Refuses steps that rest or move otherwise than the kernel says.

    Raises:
        GuaranteeError: decoys would show which candidates are true.
    """
    assert parameters.kernel is not None  # noqa: S101 - without a kernel nothing moves
    stays = parameters.kernel.stay_probabilities(parameters.segments)[transitions.strata, transitions.before]
    size, stayed, expected = len(stays), int((transitions.before == transitions.after).sum()), float(stays.sum())
    astray = abs(stayed - expected)
    if astray > _MAX_DEVIATION * size and astray > _MAX_STANDARD_ERRORS * float(np.sqrt((stays * (1 - stays)).sum())):
        raise GuaranteeError(
            f"{stayed:,} of {size:,} values are those of their persons' last event still, and the kernel lets {expected:,.0f} stay: "
            "decoys that move otherwise than the truths would show which they are; nothing was published.",
            hint="Each event, and each release of a series, is a step of the kernel. Where little has changed the last release still serves: "
            "publish as often as the persons were seen whom the kernel was counted on, or begin anew with prior and kernel from data like these.",
        )
