"""Several records of one person: how far their scores vary together, estimated without bias.

Guarantee (to the recipient): the variance of a person's sum H of scores is E[H^2] - F^2, F being how many of her records count. F^2 needs
the products f(v) f(w) of her values v and w at two events. With C the set at the earlier event, D the one at the later, T the
kernel over the events between and h the score of the earlier one,

    h (sum over D of f - sum over C of T f) + the score of f T f at the earlier event

has the mean f(v) f(w), whatever is true of the person: given C, decoys move by T and nothing else.

Not covered: pairs of events far apart, or late in a life: their products, which are never negative, are taken as 0, so that the
variance is too large rather than too small.

Cost: one inversion per row, event and distance.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reticent.arrays import Floats, Integers
from reticent.read.estimate.channel import Channel

KernelStep = Callable[[int, Floats], Floats]
"""The kernel T: a row of the prior and a function of the value -> its mean one event later."""

_MAX_GAP = 6
"""Records of a person between which products are looked at."""
_MAX_EVENT = 12
"""Events after which they are not."""


def sums(table: Floats, strata: Integers, candidates: Integers) -> Floats:
    """Per record the sum of its candidates' numbers in a table of rows x values."""
    # Column by column: a table of all lookups at once would be l times as large as the data.
    flat, base = table.ravel(), strata.astype(np.int64) * table.shape[1]
    out = np.zeros(len(strata))
    for column in candidates.T:
        out += flat[base + column]
    return out


def propagate(stratum: int, step: KernelStep, goal: Floats, events: int) -> Floats:
    """The mean of a goal so many events later."""
    for _ in range(events):
        goal = step(stratum, goal)
    return goal


def pairs(keys: Integers, events: Integers) -> tuple[Integers, Integers]:
    """Records of the same key, each with the next few: the earlier and the later ones."""
    order = np.lexsort((events, keys))
    earlier, later = [], []
    for gap in range(1, min(_MAX_GAP, len(order) - 1) + 1):
        left, right = order[:-gap], order[gap:]
        same = (keys[left] == keys[right]) & ((events[right] <= _MAX_EVENT) | (events[left] == events[right]))
        earlier.append(left[same])
        later.append(right[same])
    if not earlier:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    return np.concatenate(earlier), np.concatenate(later)


class Products:
    """Estimates of f(v) f(w) for pairs of records of one person, f being the target; no `step` where there are first events only."""

    def __init__(
        self, channel: Callable[[int], Channel], shape: tuple[int, int], target: Floats, step: KernelStep | None
    ) -> None:
        self._channel, self._shape, self._target, self._step = channel, shape, target, step

    def of(
        self,
        strata: Integers,
        earlier: tuple[Floats, Integers, Integers],
        later: Integers,
        events: tuple[Integers, Integers],
    ) -> Floats:
        """One number per pair; 0 where nothing can be said.

        `earlier` is the score of the earlier record, its candidates, and those of the person's first event; `later` the candidates of the later.
        """
        score, sets, first = earlier
        out = np.where(events[0] == events[1], score, 0.0)
        if self._step is None:
            return out
        kinds = np.stack([events[0], events[1] - events[0]], axis=1)
        for event, distance in np.unique(kinds[kinds[:, 1] > 0], axis=0):
            at = np.flatnonzero((kinds == (event, distance)).all(axis=1))
            out[at] = self._product(strata[at], score[at], sets[at], first[at], later[at], (int(event), int(distance)))
        return out

    def _product(
        self, strata: Integers, score: Floats, sets: Integers, first: Integers, later: Integers, when: tuple[int, int]
    ) -> Floats:
        event, distance = when
        assert self._step is not None  # noqa: S101 - `of` has looked
        ahead, joint, start = (np.zeros(self._shape) for _ in range(3))
        silent = np.zeros(self._shape[0], dtype=bool)
        for row in np.unique(strata):
            ahead[row] = propagate(int(row), self._step, self._target, distance)
            joint[row] = self._target * ahead[row]
            begin = propagate(int(row), self._step, joint[row], event)
            channel = self._channel(int(row))
            silent[row] = not channel.is_estimable(begin)
            start[row] = channel.coefficients(begin) - (begin if event else 0.0)
        product = score * (self._target[later].sum(axis=1) - sums(ahead, strata, sets)) + sums(start, strata, first)
        if event:
            product += sums(joint, strata, sets)
        return np.where(silent[strata], 0.0, product)
