"""All worlds that are consistent with a short transcript, each with its exact probability."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from bench.join_or_open.rules import Rules
from reticent.arrays import Floats, Int64s
from reticent.audit.attack.transcript import Transcript


class TooManyWorldsError(Exception):
    """Too many worlds fit the transcript to enumerate all of them."""


class Enumeration:
    """Depth-first search over the slots that each tuple may fill; probabilities are rational numbers.

    Cost: exponential in the tuples; raises TooManyWorldsError beyond `limit` worlds.
    """

    def __init__(self, transcript: Transcript, rules: Rules, barred: dict[int, Int64s], limit: int) -> None:
        self._group = transcript.group.tolist()
        self._opens = transcript.opens.tolist()
        self._slots = [[code for code in row if code >= 0] for row in transcript.slots.tolist()]
        self._prior = [Fraction(p).limit_denominator(10**6) for p in rules.prior.tolist()]
        self._opening = [Fraction(p).limit_denominator(10**6) for p in rules.opening.tolist()]
        self._barred = {time: set(groups.tolist()) for time, groups in barred.items()}
        self._free: list[tuple[int, int]] = []
        self._left = limit
        self._chosen: list[int] = []
        self._sums = [[Fraction(0)] * transcript.slots.shape[1] for _ in self._group]

    def posterior(self) -> Floats | None:
        """Return the exact probability per tuple and slot given the transcript; None if no world fits."""
        self._walk(0, Fraction(1))
        total = sum(self._sums[0], Fraction(0)) if self._sums else Fraction(0)
        if not total:
            return None
        return np.array([[float(share / total) for share in row] for row in self._sums])

    def _walk(self, time: int, weight: Fraction) -> None:
        if time == len(self._group):
            self._left -= 1
            if self._left < 0:
                raise TooManyWorldsError
            for at, slot in enumerate(self._chosen):
                self._sums[at][slot] += weight
            return
        group, bar = self._group[time], self._barred.get(time, set())
        if self._opens[time]:
            self._free += [(group, slot) for slot in range(len(self._slots[group]))]
        for slot, code in enumerate(self._slots[group]):
            if (group, slot) in self._free:
                self._fill(time, slot, weight * self._chance(time, code, bar))
        if self._opens[time]:
            self._free = [entry for entry in self._free if entry[0] != group]

    def _chance(self, time: int, code: int, bar: set[int]) -> Fraction:
        group = self._group[time]
        opens = self._opens[time]
        others = sum(self._slots[g][s] == code and g not in bar and not (opens and g == group) for g, s in self._free)
        if opens:
            return Fraction(0) if others else self._prior[code] * self._opening[code]
        return Fraction(self._prior[code] / others)

    def _fill(self, time: int, slot: int, weight: Fraction) -> None:
        if not weight:
            return
        entry = (self._group[time], slot)
        at = self._free.index(entry)
        self._free.pop(at)
        self._chosen.append(slot)
        self._walk(time + 1, weight)
        self._chosen.pop()
        self._free.insert(at, entry)
