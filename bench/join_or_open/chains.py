"""Markov chains over the worlds behind a transcript: swap two slots of a group, and keep likely worlds.

The chance of a world factors over the values: the factor of a value depends only on when its slots were opened and
filled. A swap within a group changes two values, so a step costs only the slots of these two; all chains step together.

At most 32,000 tuples: times are 16-bit integers, for speed.

Cost: sweeps x groups x slots / 2 steps, each linear in chains x groups that offer a value.
Reference: N. Metropolis et al., J. Chem. Phys. 21 (1953).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.join_or_open.rules import MISFIT, Rules
from reticent.arrays import Bools, Floats, Int64s
from reticent.audit.attack.transcript import Transcript


class _Value:
    """The slots of one value, as slots x chains."""

    def __init__(self, opened: NDArray[np.int16], groups: Int64s, filled: NDArray[np.int16]) -> None:
        self.opened = opened[:, None]
        self.groups = groups
        self.filled = filled
        self.free = np.zeros_like(filled)  # see Chains._choices


class _Change(NamedTuple):
    gain: Floats
    touched: Bools
    step: NDArray[np.int16]
    free: NDArray[np.int16]


class Chains:
    """Many worlds that step in parallel."""

    def __init__(
        self,
        transcript: Transcript,
        rules: Rules,
        barred: dict[int, Int64s],
        worlds: NDArray[np.int16],
    ) -> None:
        self._transcript = transcript
        self._end = len(transcript)
        self._prior, self._opening = np.log(rules.prior), np.log(rules.opening)
        self._most = int((transcript.slots >= 0).sum()) + 3
        self._terms, self._steps = self._tables()
        self._barred = self._matrix(barred)
        self._row = np.zeros(transcript.slots.shape, dtype=np.int64)
        self._values = self._split(worlds)
        for value in self._values:
            for row in range(len(value.groups)):
                value.free[row] = self._choices(value, row, value.filled[row])

    def sweep(self, rng: np.random.Generator) -> None:
        """Try to swap random pairs of slots in every group."""
        for group in rng.permutation(len(self._transcript.slots)):
            used = np.flatnonzero(self._transcript.slots[group] >= 0)
            order = rng.permutation(used)
            for one, other in zip(order[0::2], order[1::2], strict=False):
                self._swap(int(group), int(one), int(other), rng)

    def tally(self, counts: Floats, chains: slice) -> None:
        """Add, per tuple and slot, the number of chains in which the tuple now fills that slot."""
        for group, slots in enumerate(self._transcript.slots):
            for slot, code in enumerate(slots):
                if code >= 0:
                    times = self._values[code].filled[self._row[group, slot], chains]
                    counts[:, slot] += np.bincount(times, minlength=self._end + 1)[: self._end]

    def _matrix(self, barred: dict[int, Int64s]) -> Bools | None:
        if not barred:
            return None
        out = np.zeros((self._end + 1, len(self._transcript.slots)), dtype=np.bool_)
        for time, groups in barred.items():
            out[time, groups] = True
        return out

    def _split(self, worlds: NDArray[np.int16]) -> list[_Value]:
        slots, many = self._transcript.slots, len(worlds)
        filled = np.full((many, *slots.shape), self._end, dtype=np.int16)
        for time, group in enumerate(self._transcript.group):
            filled[np.arange(many), group, worlds[:, time]] = time
        opened = np.flatnonzero(self._transcript.opens).astype(np.int16)
        values = []
        for code in range(len(self._prior)):
            groups, places = np.nonzero(slots == code)
            self._row[groups, places] = np.arange(len(groups))
            values.append(_Value(opened[groups], groups, np.ascontiguousarray(filled[:, groups, places].T)))
        return values

    def _tables(self) -> tuple[Floats, Floats]:
        """Return, per entry of `free`, its log chance, and the change with one free slot less or more."""
        free = np.arange(-self._most, self._most + 1)
        terms = np.where(free > 0, -np.log(np.maximum(free, 1)), np.where(free < -1, math.log(MISFIT), 0.0))
        outward = np.zeros_like(terms)  # away from zero: one free slot more
        outward[1:-1] = np.where(free[1:-1] < 0, terms[:-2], terms[2:]) - terms[1:-1]
        inward = np.zeros_like(terms)
        inward[1:-1] = np.where(free[1:-1] < 0, terms[2:], terms[:-2]) - terms[1:-1]
        return terms, np.concatenate([inward, outward])

    def _choices(self, value: _Value, row: int, time: NDArray[np.int16]) -> NDArray[np.int16]:
        """Count the free slots that a tuple could choose from if it fills this one at `time`.

        For a tuple that opens a group the count goes down from -1: -1 if no slot was free, as the rule requires. 0 if
        no tuple fills the slot.
        """
        free = (value.opened < time) & (time <= value.filled)
        if self._barred is not None:
            free &= ~self._barred[time][:, value.groups].T
        free[row] = False
        others = np.count_nonzero(free, axis=0).astype(np.int16)
        filled = np.where(time == value.opened[row], -1 - others, others + 1)
        return np.where(time == self._end, 0, filled).astype(np.int16)

    def _term(self, code: int, free: NDArray[np.int16]) -> Floats:
        chance = self._prior[code] + self._terms[free + self._most] + (free < 0) * self._opening[code]
        return np.where(free == 0, 0.0, chance)

    def _move(self, code: int, row: int, new: NDArray[np.int16]) -> _Change:
        """Compute the change of a value's log chance if one of its slots is filled at another time."""
        value = self._values[code]
        old = value.filled[row]
        later = new > old
        low, high = np.minimum(old, new), np.minimum(np.maximum(old, new), self._end - 1)
        touched = (value.filled > low) & (value.filled <= high)
        if self._barred is not None:
            touched &= ~self._barred[value.filled, value.groups[row]]
        touched[row] = False
        base = np.where(later, 3 * self._most + 1, self._most).astype(np.int32)
        gain = (self._steps[value.free + base] * touched).sum(axis=0)
        free = self._choices(value, row, new)
        gain += self._term(code, free) - self._term(code, value.free[row])
        return _Change(gain, touched, np.where(later, 1, -1).astype(np.int16), free)

    def _swap(self, group: int, one: int, other: int, rng: np.random.Generator) -> None:
        codes = int(self._transcript.slots[group, one]), int(self._transcript.slots[group, other])
        if codes[0] == codes[1]:
            return
        rows = int(self._row[group, one]), int(self._row[group, other])
        times = self._values[codes[0]].filled[rows[0]].copy(), self._values[codes[1]].filled[rows[1]].copy()
        changes = [self._move(codes[i], rows[i], times[1 - i]) for i in (0, 1)]
        chance = changes[0].gain + changes[1].gain
        accepted = (np.log(rng.random(len(chance))) < chance) & (times[0] != times[1])
        if not accepted.any():
            return
        for i, change in enumerate(changes):
            value = self._values[codes[i]]
            value.filled[rows[i]] = np.where(accepted, times[1 - i], times[i])
            moved = change.touched & accepted
            value.free += moved * np.where(value.free < 0, -change.step, change.step)
            value.free[rows[i]] = np.where(accepted, change.free, value.free[rows[i]])
