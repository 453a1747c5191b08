"""Sequential Monte Carlo over the worlds behind a transcript: a first set of consistent worlds.

Each particle is a world up to now: which slot each tuple filled. A tuple's slot is drawn from its exact conditional
chances; particles that explain the transcript badly are dropped. The particles that remain share their early history,
so `chains` mixes them afterwards.

Cost: tuples x particles x slots.
Reference: A. Doucet, A. Johansen, "A tutorial on particle filtering and smoothing", 2009.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bench.join_or_open.rules import MISFIT, Rules
from reticent.arrays import Floats, Int32s, Int64s
from reticent.audit.attack.transcript import Transcript


class Particles:
    """Many worlds that are sampled in parallel."""

    def __init__(self, transcript: Transcript, rules: Rules, barred: dict[int, Int64s], many: int) -> None:
        groups, width = transcript.slots.shape
        self._transcript, self._barred = transcript, barred
        self._codes = np.maximum(transcript.slots, 0)
        used = transcript.slots >= 0
        self._join = np.where(used, rules.prior[self._codes], 0.0)
        self._start = self._join * rules.opening[self._codes]
        self._free = np.zeros((many, groups, width), dtype=np.bool_)
        self._count = np.zeros((many, len(rules.prior)), dtype=np.int32)
        self._history = np.zeros((many, len(transcript)), dtype=np.int16)
        self._log = np.zeros(many)

    def worlds(self, rng: np.random.Generator, many: int) -> NDArray[np.int16]:
        """Sample worlds: per world and tuple the slot that the tuple filled."""
        for time in range(len(self._transcript)):
            self._step(time, rng)
        return self._history[rng.choice(len(self._log), many, p=self._shares())]

    def _step(self, time: int, rng: np.random.Generator) -> None:
        group, opens = int(self._transcript.group[time]), bool(self._transcript.opens[time])
        free_elsewhere = self._eligible(time, group)
        if opens:
            weight = self._start[group] * np.where(free_elsewhere == 0, 1.0, MISFIT)
        else:
            weight = self._free[:, group] * self._join[group] / np.maximum(free_elsewhere, 1)
        running = weight.cumsum(axis=1)
        total = running[:, -1]
        self._log += np.log(np.maximum(total, 1e-300))
        slot = (running < (rng.random(len(total)) * total)[:, None]).sum(axis=1).clip(max=weight.shape[1] - 1)
        self._fill(time, group, slot, opens=opens)
        shares = self._shares()
        if 1 / (shares**2).sum() < len(shares) / 2:
            self._resample(shares, rng)

    def _eligible(self, time: int, group: int) -> Int32s:
        """Count, per world and slot of the group, the free slots of the same value that the tuple may fill."""
        codes = self._codes[group]
        count = self._count[:, codes]
        for other in self._barred.get(time, ()):
            same = self._transcript.slots[other][:, None] == codes[None, :]
            count = count - self._free[:, other] @ same.astype(np.int32)
        return count

    def _fill(self, time: int, group: int, slot: Int64s, *, opens: bool) -> None:
        rows = np.arange(len(slot))
        if opens:
            used = np.flatnonzero(self._transcript.slots[group] >= 0)
            self._free[:, group, used] = True
            for at in used:
                self._count[:, self._codes[group, at]] += 1
        self._free[rows, group, slot] = False
        self._count[rows, self._codes[group][slot]] -= 1
        self._history[:, time] = slot

    def _shares(self) -> Floats:
        weight = np.exp(self._log - self._log.max())
        return np.asarray(weight / weight.sum())

    def _resample(self, shares: Floats, rng: np.random.Generator) -> None:
        many = len(shares)
        survivors = np.searchsorted(shares.cumsum(), (rng.random() + np.arange(many)) / many).clip(max=many - 1)
        self._free, self._count, self._history = self._free[survivors], self._count[survivors], self._history[survivors]
        self._log = np.zeros(many)
