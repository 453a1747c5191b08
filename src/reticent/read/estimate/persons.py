"""Unbiased estimates of the covariance between several records of one person.

Guarantee (to the recipient): the variance of a person's sum H of scores is E[H^2] - F^2, where F is the number of the
person's records that count. F^2 needs the products f(v) f(w) of the values v and w at two events. With C the set at the
earlier event, D the set at the later one, T the kernel over the events between and h the score of the earlier event,

    h (sum over D of f - sum over C of T f) + the score of f T f at the earlier event

has the mean f(v) f(w) for all true values: given C, false candidates change by T only.

Not covered: pairs of distant or late events. Their products, which are never negative, are taken as 0, so the variance is
too large rather than too small.

Cost: one inversion per stratum, event and distance.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reticent.arrays import Floats, Integers
from reticent.read.estimate.channel import Channel

KernelStep = Callable[[int, Floats], Floats]
"""The kernel T: maps a stratum and a function of the value to the function's mean one event later."""

_MAX_GAP = 6
"""Largest distance, in records of a person, between the records of a pair."""
_MAX_EVENT = 12
"""Last event for which products are estimated."""


def sums(table: Floats, strata: Integers, candidates: Integers) -> Floats:
    """Sum, for each record, the entries of its candidates in a table of strata x values."""
    # Column by column: all lookups at once would need l times the memory of the data.
    flat, base = table.ravel(), strata.astype(np.int64) * table.shape[1]
    out = np.zeros(len(strata))
    for column in candidates.T:
        out += flat[base + column]
    return out


def propagate(stratum: int, step: KernelStep, goal: Floats, events: int) -> Floats:
    """Return the mean of a goal `events` events later."""
    for _ in range(events):
        goal = step(stratum, goal)
    return goal


def pairs(keys: Integers, events: Integers) -> tuple[Integers, Integers]:
    """Return the earlier and later records of pairs with the same key; each record is paired with the next few."""
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
    """Estimates f(v) f(w) for pairs of records of one person, where f is the target; first events need no `step`."""

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
        """Return the estimate of each pair; 0 for pairs that cannot be estimated.

        `earlier` has the score and the candidates of the earlier record, and the candidates of the person's first event;
        `later` has the candidates of the later record.
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
        assert self._step is not None  # noqa: S101 - checked in `of`
        ahead, joint, start = (np.zeros(self._shape) for _ in range(3))
        not_estimable = np.zeros(self._shape[0], dtype=bool)
        for stratum in np.unique(strata):
            ahead[stratum] = propagate(int(stratum), self._step, self._target, distance)
            joint[stratum] = self._target * ahead[stratum]
            begin = propagate(int(stratum), self._step, joint[stratum], event)
            channel = self._channel(int(stratum))
            not_estimable[stratum] = not channel.is_estimable(begin)
            start[stratum] = channel.coefficients(begin) - (begin if event else 0.0)
        product = score * (self._target[later].sum(axis=1) - sums(ahead, strata, sets)) + sums(start, strata, first)
        if event:
            product += sums(joint, strata, sets)
        return np.where(not_estimable[strata], 0.0, product)
