"""Counts from a veiled release: unbiased, with honest intervals, whatever is true of the prior.

Guarantee (to the recipient): let M be the copies of each value in a set, pi = l p and Pi = E[M M'] over orders and U.
With Pi c = pi o f a record's sum h of c over its candidates has E[h | v] = f(v) for every value v that its row offers:
the prior shapes the sets and need not be true. Sums of h are unbiased; h (h - 1) is unbiased for the variance of one.

Not covered: values that a row does not offer. Their sets are drawn without regard to the truth, so E[h] = p(A); the
published share eta of them is subtracted. Who among them has a value of A stays unknown: they are taken to be spread over the
values that their row does not offer as these are over everybody, up to the smallest share that the row does offer, since a more frequent one
would be offered; but for a value that exceeds its prior elsewhere, which is taken to do so here as well; and the interval is widened by
as much as that adds.

Cost: one inversion per row (`channel`), then l lookups per record.

Reference: D. G. Horvitz and D. J. Thompson, A generalization of sampling without replacement from a finite universe,
Journal of the American Statistical Association, 1952.

Differences from the paper: the inclusion of a value in a set depends on the truth; the second moments undo that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np

from reticent.arrays import Floats, Integers, UInt64s
from reticent.errors import PolicyError
from reticent.read.estimate.channel import Channel, channel, scaled
from reticent.read.estimate.interval import Spread, plain, quantile, score
from reticent.read.estimate.persons import Products, Step, moved, pairs
from reticent.read.estimate.persons import sums as sums_of
from reticent.read.estimate.totals import Calibration, Cells, Totals

_EXACT = 0.1
"""Variance estimates less exact than this give way to the variance that the channel tells."""


@dataclass(frozen=True, repr=False)
class Veil:
    """What a release publishes about its veil.

    Attributes:
        domain: labels of the values, in canonical order.
        stretches: rows x values, whole numbers.
        orders: orders x values, permutations of the codes.
        eta: per row, share of the records whose truth is not offered.
        eta_variance: per row, variance of the noise in it.
        totals: noisy counts by row and value, where the release carries them.
        excess: by how much values exceed their prior, as `excess` estimates it; not at all if left out.
        sizes: records of each row; alike if left out.
    """

    domain: tuple[str, ...]
    segments: UInt64s
    permutations: Integers
    omission_rate: Floats
    omission_rate_variance: Floats
    totals: Totals | None = None
    excess: Floats | None = None
    sizes: Floats | None = None
    _channels: dict[int, Channel] = field(default_factory=dict, init=False)

    def channel(self, stratum: int) -> Channel:
        """The channel of a row; made once."""
        if stratum not in self._channels:
            self._channels[stratum] = channel(self.segments[stratum], self.permutations)
        return self._channels[stratum]

    def borrow(self, other: Veil) -> None:
        """Takes over the channels that another veil of the same line has made."""
        self._channels.update(other._channels)

    @cached_property
    def shares(self) -> Floats:
        """The prior: rows x values."""
        return np.asarray(self.segments / self.segments.sum(axis=1, keepdims=True, dtype=np.float64))

    @cached_property
    def hidden(self) -> Floats:
        """How the truths that a row does not offer are spread over the values that it does not offer, by guess: rows x values."""
        unseen = self.shares == 0
        sizes = np.ones(len(self.omission_rate)) if self.sizes is None else self.sizes
        # A value that few rows offer is more frequent than those rows say: at first all are taken to be missed alike.
        known = ((1 - self.omission_rate) * sizes) @ self.shares + (self.omission_rate * sizes) @ scaled(unseen.astype(np.float64))
        least = np.where(unseen, np.inf, self.shares).min(axis=1, keepdims=True)
        return scaled(np.where(unseen, np.minimum(known / max(float(sizes.sum()), 1.0), least), 0.0))


@dataclass(frozen=True, repr=False)
class Records:
    """Published records, as arrays of one length.

    Attributes:
        rows: row of the prior.
        candidates: records x l codes.
        groups: what to count by, as numbers from 0; all in one group if left out.
        persons: pseudonyms as numbers; several records of a person vary together.
        events: number of the event; 0 if left out.
        first: candidates of the same person's first event, needed where events are above 0.
    """

    strata: Integers
    candidates: Integers
    groups: Integers | None = None
    persons: Integers | None = None
    events: Integers | None = None
    first: Integers | None = None

    @property
    def later(self) -> bool:
        """Whether there are events after the first."""
        return self.events is not None and bool(self.events.any())


@dataclass(frozen=True)
class Scores:
    """Per record: `value` with mean f(truth); `unseen`, its mean where the truth is not offered."""

    value: Floats
    unseen: Floats


@dataclass(frozen=True)
class Counts:
    """One number per group: the estimate, its variance, the ends of the interval, and the records it is made from."""

    estimate: Floats
    variance: Floats
    low: Floats
    high: Floats
    records: Integers


def scores(veil: Veil, records: Records, target: Floats, *, step: Step | None = None) -> Scores:
    """What each record adds to the estimate of a target.

    Later events need the published kernel, the `step`: h = sum over C_r of f - sum over C_0 of g + HT2_g(C_0) with g = T^r f, where C_0 is
    the person's first set and C_r the present one.
    """
    if not records.later:
        return _first_scores(veil, records.strata, records.candidates, target)
    if step is None or records.first is None:
        raise PolicyError(
            "Later events of a person cannot be counted without the kernel and the person's first set.",
            hint="Ask for first events only, or publish with link: true.",
        )
    value, unseen = np.empty(len(records.strata)), np.empty(len(records.strata))
    events = np.asarray(records.events)
    for event in np.unique(events):
        at = np.flatnonzero(events == event)
        part = Records(records.strata[at], records.candidates[at], first=records.first[at])
        sums = _later_scores(veil, part, target, partial(moved, step=step, goal=target, events=int(event)))
        value[at], unseen[at] = sums.value, sums.unseen
    return Scores(value, unseen)


def counts(
    veil: Veil,
    records: Records,
    target: Floats,
    *,
    groups: int = 1,
    level: float = 0.95,
    step: Step | None = None,
    whole: Cells | None = None,
) -> Counts:
    """How many records have a value of the target, by group; `whole` are sums over all first sights of the release, to calibrate by its totals."""
    at = np.zeros(len(records.strata), dtype=np.int64) if records.groups is None else records.groups
    number = np.bincount(at, minlength=groups)
    if target.all():  # everybody: nothing is hidden
        every = number.astype(np.float64)
        return Counts(every, np.zeros(groups), every, every, number)
    sums = scores(veil, records, target, step=step)
    if whole is None or veil.totals is None or records.later:
        estimates = _plainly(veil, records, at, target, sums, step, groups)
    else:
        estimates = _calibrated(veil, cells(veil, records.strata, sums, at, groups), whole, target)
    estimate, unseen, variance = estimates.estimate, estimates.unseen, estimates.variance
    low, high = plain(estimate, variance + unseen, number, quantile(level))
    few = estimates.error > _EXACT * variance
    if few.any():
        spread = estimates.spread().at_least(variance, np.clip(estimate, 0, number))
        ends = score(estimate, Spread(spread.base + unseen, spread.slope), number, quantile(level))
        low, high = np.where(few, ends[0], low), np.where(few, ends[1], high)
        variance = np.where(few, spread.variance(np.clip(estimate, 0, number)), variance)
    return Counts(estimate, variance + unseen, low, high, number)


@dataclass(frozen=True)
class _Estimates:
    """Estimates, their variance and how exact that is, what the unseen add, and the variance as the channel knows it."""

    estimate: Floats
    variance: Floats
    error: Floats
    unseen: Floats
    spread: Callable[[], Spread]


def excess(veil: Veil, strata: Integers, candidates: Integers) -> Floats:
    """Per value, the share of first sights by which it exceeds its prior in the rows that offer it: an outbreak; 0 within chance."""
    size, number = len(veil.domain), np.bincount(strata, minlength=len(veil.omission_rate))
    total = np.zeros(size)
    for row in np.flatnonzero(number):
        copies = np.bincount(candidates[strata == row].ravel(), minlength=size)
        total += veil.channel(int(row)).estimates(copies)
    expected = number @ veil.shares
    chance = np.sqrt(2 * candidates.shape[1] * np.maximum(total, expected))
    return np.asarray(np.maximum(total - expected - chance, 0) / np.maximum(number @ (veil.shares > 0), 1))


def _plainly(
    veil: Veil, records: Records, at: Integers, target: Floats, sums: Scores, step: Step | None, groups: int
) -> _Estimates:
    estimate = _total(at, sums.value - veil.omission_rate[records.strata] * sums.unseen, groups)
    variance, error = _variance(veil, records, at, sums.value, target, step, groups)
    missed = _total(at, _missed(veil, target)[records.strata], groups)
    unseen = _unseen_variance(veil, records.strata, at, sums.unseen, groups) + missed**2
    return _Estimates(
        estimate + missed, variance, error, unseen, lambda: _known_spread(veil, records, at, target, variance)
    )


def _calibrated(veil: Veil, parts: Cells, whole: Cells, target: Floats) -> _Estimates:
    assert veil.totals is not None  # noqa: S101 - the caller has looked
    offered = np.where(veil.shares > 0, target, 0.0)
    inside, outside = _variance_by_stratum(veil, np.flatnonzero(whole.number[0]), target)
    total = (veil.totals.counts * offered).sum(axis=1)
    noise = veil.totals.variance * (offered**2).sum(axis=1)
    drawn = Calibration(parts, whole, total, noise, inside, outside)
    # Values that a row does not offer stand in the totals, too: their part of a group is that of all its row's records.
    hidden, share = target - offered, parts.number / np.maximum(whole.number, 1)
    missed = share * (veil.totals.counts * hidden).sum(axis=1)
    doubt = (missed * (1 - share)).sum(axis=1) ** 2 + share**2 @ (veil.totals.variance * (hidden**2).sum(axis=1))
    return _Estimates(
        drawn.estimate + missed.sum(axis=1),
        *drawn.variance,
        drawn.unseen(veil.omission_rate_variance) + doubt,
        lambda: drawn.spread(veil.shares @ target),
    )


def cells(veil: Veil, strata: Integers, sums: Scores, at: Integers, groups: int) -> Cells:
    """Sums by group and row of the prior, of first sights."""
    eta, each = veil.omission_rate[strata], sums.value * (sums.value - 1)
    parts = [
        np.ones(len(strata)),
        sums.value - eta * sums.unseen,
        each,
        each**2,
        _own(eta, sums.unseen),
        sums.unseen,
    ]
    shape = (groups, len(veil.omission_rate))
    flat = at.astype(np.int64) * shape[1] + strata
    return Cells(*(_total(flat, part, shape[0] * shape[1]).reshape(shape) for part in parts))


def _first_scores(veil: Veil, strata: Integers, candidates: Integers, target: Floats) -> Scores:
    table = _table(veil, strata, lambda _: target)
    return Scores(sums_of(table, strata, candidates), (veil.shares @ target)[strata])


def _later_scores(veil: Veil, records: Records, target: Floats, ahead: Callable[[int], Floats]) -> Scores:
    goals = {int(row): ahead(int(row)) for row in np.unique(records.strata)}
    table = _table(veil, records.strata, goals.__getitem__)
    unseen = np.zeros(len(table))
    for row, goal in goals.items():
        table[row] -= goal
        unseen[row] = veil.shares[row] @ goal
    assert records.first is not None  # noqa: S101 - `scores` has looked
    value = sums_of(table, records.strata, records.first) + target[records.candidates].sum(axis=1)
    return Scores(value, unseen[records.strata])


def _table(veil: Veil, strata: Integers, goal: Callable[[int], Floats]) -> Floats:
    """Coefficients: rows x values; zero in rows without records."""
    used = [int(row) for row in np.unique(strata)]
    silent = sum(not veil.channel(row).is_estimable(goal(row)) for row in used)
    if silent:
        raise PolicyError(
            f"In {silent} of {len(used)} rows of the prior this count cannot be told from the release: a value stands in "
            "every set equally often (l times its share is a whole number), so the sets do not say how many have it.",
            hint="Ask about all values together, leave those rows out, or publish with another l or more orders.",
        )
    table = np.zeros(veil.segments.shape)
    for row in used:
        table[row] = veil.channel(row).coefficients(goal(row))
    return table


def _total(groups: Integers, values: Floats, size: int) -> Floats:
    return np.bincount(groups, values, minlength=size).astype(np.float64)


def _variance(
    veil: Veil, records: Records, at: Integers, values: Floats, target: Floats, step: Step | None, size: int
) -> tuple[Floats, Floats]:
    """The variance of the sums, and how exact it is (one standard error of it); a person's records vary together."""
    persons = records.persons
    each = values * (values - 1)
    if persons is not None:
        keys = at.astype(np.int64) * (int(persons.max(initial=0)) + 1) + persons
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        inverse = inverse.reshape(-1)
        if len(first) < len(keys):
            squares = _total(inverse, values, len(first)) ** 2 - _total(inverse, values, len(first))
            each = squares - 2 * _products(veil, records, keys, inverse, values, target, step)
            at = at[first]
    return _total(at, each, size), np.sqrt(_total(at, each**2, size))


def _products(
    veil: Veil, records: Records, keys: Integers, inverse: Integers, values: Floats, target: Floats, step: Step | None
) -> Floats:
    """Per person and group, the sum over pairs of records of the chance that both count."""
    none = np.zeros(len(keys), dtype=np.int64)
    events = none if records.events is None else np.asarray(records.events)
    first = records.candidates if records.first is None else records.first
    left, right = pairs(keys, events)
    products = Products(veil.channel, veil.segments.shape, target, step).of(
        records.strata[left],
        (values[left], records.candidates[left], first[left]),
        records.candidates[right],
        (events[left], events[right]),
    )
    return _total(inverse[left], products, int(inverse.max(initial=-1)) + 1)


def _missed(veil: Veil, target: Floats) -> Floats:
    """Per row and record, how often its truth is a value of the target that the row does not offer."""
    hidden = veil.hidden
    if (
        veil.excess is not None
    ):  # what is missed in every row is missed as always; what an outbreak adds is the outbreak's
        hidden = float(np.median(veil.omission_rate)) * hidden + np.where(veil.shares == 0, veil.excess, 0.0)
    return np.asarray(veil.omission_rate * (hidden @ target) / np.maximum(hidden.sum(axis=1), np.finfo(float).tiny))


def _unseen_variance(veil: Veil, strata: Integers, groups: Integers, unseen: Floats, size: int) -> Floats:
    """What records add whose truth is not offered: their own spread, their number, the noise in eta."""
    eta = veil.omission_rate[strata]
    shape = (size, len(veil.omission_rate))
    moved = np.bincount(groups * shape[1] + strata, unseen, minlength=size * shape[1]).reshape(shape)
    return _total(groups, _own(eta, unseen), size) + moved**2 @ veil.omission_rate_variance


def _own(omission_rate: Floats, unseen: Floats) -> Floats:
    """Per record: whether its truth is not offered, and what its set adds then."""
    return np.asarray(omission_rate * unseen * (1 - unseen) + unseen**2 * omission_rate * (1 - omission_rate))


def _known_spread(veil: Veil, records: Records, groups: Integers, target: Floats, variance: Floats) -> Spread:
    """The channel's spread for first sights; later events have their part of the variance that was seen."""
    if not records.later:
        return _spread(veil, records.strata, groups, target, len(variance))
    first = np.flatnonzero(np.asarray(records.events) == 0)
    spread = _spread(veil, records.strata[first], groups[first], target, len(variance))
    number, sights = (np.bincount(part, minlength=len(variance)) for part in (groups, groups[first]))
    return Spread(spread.base + variance * (1 - sights / np.maximum(number, 1)), spread.slope)


def _spread(veil: Veil, strata: Integers, groups: Integers, target: Floats, size: int) -> Spread:
    """Variance as a function of the count, from the channel: V1 per record of the target, V0 per other record."""
    inside, outside = _variance_by_stratum(veil, np.unique(strata), target)
    shape = (size, len(veil.omission_rate))
    number = np.bincount(groups * shape[1] + strata, minlength=size * shape[1]).reshape(shape)
    return Spread(number @ outside, scaled(number * (veil.shares @ target)) @ (inside - outside))


def _variance_by_stratum(veil: Veil, strata: Integers, target: Floats) -> tuple[Floats, Floats]:
    """Variance of one record of the target and of one other, by row; 0 in rows that are not asked for."""
    inside, outside = np.zeros(len(veil.omission_rate)), np.zeros(len(veil.omission_rate))
    for row in strata:
        inside[row], outside[row] = _within(veil.channel(int(row)), target)
    return inside, outside


def _within(channel: Channel, target: Floats) -> tuple[float, float]:
    variance = channel.squares(channel.coefficients(target)) - target**2
    parts = [channel.shares * target, channel.shares * (1 - target)]
    return tuple(float(part @ variance / max(part.sum(), np.finfo(float).tiny)) for part in parts)  # type: ignore[return-value]
