"""Markov chains over the worlds behind a transcript: swap what two slots of a group hold, keep the likely worlds.

The chance of a world factors over the values: value v's part depends only on when its slots were opened and filled.
A swap within a group touches two values, so a step costs only the slots of these two; all chains step together.

Cost: sweeps x groups x slots / 2 steps, each linear in chains x groups that offer a value.
Reference: N. Metropolis et al., J. Chem. Phys. 21 (1953).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from reticent.audit.attack.rules import MISFIT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reticent.audit.attack.rules import Rules
    from reticent.audit.attack.transcript import Transcript

_NEVER = math.log(MISFIT)


class _Value:
    """The slots of one value: a row per slot, a column per chain."""

    def __init__(self, opened: NDArray[np.int32], groups: NDArray[np.int64], filled: NDArray[np.int32]) -> None:
        self.opened = opened[:, None]
        self.groups = groups
        self.filled = filled
        self.free = np.zeros_like(filled)  # slots a tuple could choose from when it filled this one; 0 if it opened


class _Change(NamedTuple):
    gain: NDArray[np.float64]
    touched: NDArray[np.bool_]
    step: NDArray[np.int32]
    free: NDArray[np.int32]


class Chains:
    """Worlds that walk side by side."""

    def __init__(
        self,
        transcript: Transcript,
        rules: Rules,
        barred: dict[int, NDArray[np.int64]],
        worlds: NDArray[np.int16],
    ) -> None:
        self._transcript = transcript
        self._end = len(transcript)
        self._prior, self._opening = np.log(rules.prior), np.log(rules.opening)
        self._logs = np.log(np.maximum(np.arange(len(transcript.slots) * transcript.slots.shape[1] + 3), 1))
        self._barred = self._matrix(barred)
        self._row = np.zeros(transcript.slots.shape, dtype=np.int64)
        self._values = self._split(worlds)
        for value in self._values:
            for row in range(len(value.groups)):
                value.free[row] = self._choices(value, row, value.filled[row])

    def sweep(self, rng: np.random.Generator) -> None:
        """Offer every group a random pairing of its slots for swapping."""
        for group in rng.permutation(len(self._transcript.slots)):
            used = np.flatnonzero(self._transcript.slots[group] >= 0)
            order = rng.permutation(used)
            for one, other in zip(order[0::2], order[1::2], strict=False):
                self._swap(int(group), int(one), int(other), rng)

    def tally(self, counts: NDArray[np.int64], chains: slice) -> None:
        """Add, per tuple and slot, in how many of the chains it fills that slot now."""
        for group, slots in enumerate(self._transcript.slots):
            for slot, code in enumerate(slots):
                if code >= 0:
                    times = self._values[code].filled[self._row[group, slot], chains]
                    counts[:, slot] += np.bincount(times, minlength=self._end + 1)[: self._end]

    def _matrix(self, barred: dict[int, NDArray[np.int64]]) -> NDArray[np.bool_] | None:
        if not barred:
            return None
        out = np.zeros((self._end + 1, len(self._transcript.slots)), dtype=np.bool_)
        for time, groups in barred.items():
            out[time, groups] = True
        return out

    def _split(self, worlds: NDArray[np.int16]) -> list[_Value]:
        slots, many = self._transcript.slots, len(worlds)
        filled = np.full((many, *slots.shape), self._end, dtype=np.int32)
        for time, group in enumerate(self._transcript.group):
            filled[np.arange(many), group, worlds[:, time]] = time
        opened = np.flatnonzero(self._transcript.opens).astype(np.int32)
        values = []
        for code in range(len(self._prior)):
            groups, places = np.nonzero(slots == code)
            self._row[groups, places] = np.arange(len(groups))
            values.append(_Value(opened[groups], groups, np.ascontiguousarray(filled[:, groups, places].T)))
        return values

    def _choices(self, value: _Value, row: int, time: NDArray[np.int32]) -> NDArray[np.int32]:
        """How many free slots a tuple with this value had at `time` if it fills this one; 0 or misfits if it opens."""
        free = (value.opened < time) & (time <= value.filled)
        if self._barred is not None:
            free &= ~self._barred[time][:, value.groups].T
        free[row] = False
        others = free.sum(axis=0, dtype=np.int32)
        return np.where(time == self._end, 0, np.where(time == value.opened[row], others, others + 1)).astype(np.int32)

    def _term(self, code: int, row: int, time: NDArray[np.int32], free: NDArray[np.int32]) -> NDArray[np.float64]:
        opens = time == self._values[code].opened[row]
        open_term = self._opening[code] + np.where(free > 0, _NEVER, 0.0)
        filled = self._prior[code] + np.where(opens, open_term, -self._logs[free])
        return np.where(time == self._end, 0.0, filled)

    def _move(self, code: int, row: int, new: NDArray[np.int32]) -> _Change:
        """What it does to a value when one of its slots is filled at another time."""
        value = self._values[code]
        old = value.filled[row]
        later = new > old
        step = np.where(later, 1, -1).astype(np.int32)
        touched = (value.filled > np.minimum(old, new)) & (value.filled <= np.maximum(old, new))
        touched &= value.filled < self._end
        if self._barred is not None:
            touched &= ~self._barred[value.filled, value.groups[row]]
        touched[row] = False
        opener = value.filled == value.opened
        before, after = value.free, value.free + step
        joins = self._logs[before] - self._logs[np.maximum(after, 0)]
        opens = _NEVER * ((after > 0).astype(np.int8) - (before > 0).astype(np.int8))
        gain = (touched * np.where(opener, opens, joins)).sum(axis=0)
        free = self._choices(value, row, new)
        gain += self._term(code, row, new, free) - self._term(code, row, old, before[row])
        return _Change(gain, touched, step, free)

    def _swap(self, group: int, one: int, other: int, rng: np.random.Generator) -> None:
        codes = int(self._transcript.slots[group, one]), int(self._transcript.slots[group, other])
        if codes[0] == codes[1]:
            return
        rows = int(self._row[group, one]), int(self._row[group, other])
        times = self._values[codes[0]].filled[rows[0]].copy(), self._values[codes[1]].filled[rows[1]].copy()
        changes = [self._move(codes[i], rows[i], times[1 - i]) for i in (0, 1)]
        chance = changes[0].gain + changes[1].gain
        taken = (np.log(rng.random(len(chance))) < chance) & (times[0] != times[1])
        if not taken.any():
            return
        for i, change in enumerate(changes):
            value = self._values[codes[i]]
            value.filled[rows[i]] = np.where(taken, times[1 - i], times[i])
            value.free += np.where(change.touched & taken, change.step, 0)
            value.free[rows[i]] = np.where(taken, change.free, value.free[rows[i]])
