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
from reticent.read.estimate.calibration import Calibration, Cells, NoisyCounts
from reticent.read.estimate.channel import Channel, build_channel, normalize_rows
from reticent.read.estimate.interval import LinearVariance, normal_interval, quantile, score_interval
from reticent.read.estimate.persons import KernelStep, Products, pairs, propagate
from reticent.read.estimate.persons import sums as sums_of

_MAX_RELATIVE_ERROR = 0.1
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
    noisy_counts: NoisyCounts | None = None
    excess: Floats | None = None
    stratum_sizes: Floats | None = None
    _channels: dict[int, Channel] = field(default_factory=dict, init=False)

    def channel(self, stratum: int) -> Channel:
        """The channel of a row; made once."""
        if stratum not in self._channels:
            self._channels[stratum] = build_channel(self.segments[stratum], self.permutations)
        return self._channels[stratum]

    def reuse_channels(self, other: Veil) -> None:
        """Takes over the channels that another veil of the same line has made."""
        self._channels.update(other._channels)

    @cached_property
    def shares(self) -> Floats:
        """The prior: rows x values."""
        return np.asarray(self.segments / self.segments.sum(axis=1, keepdims=True, dtype=np.float64))

    @cached_property
    def omitted_shares(self) -> Floats:
        """How the truths that a row does not offer are spread over the values that it does not offer, by guess: rows x values."""
        unseen = self.shares == 0
        sizes = np.ones(len(self.omission_rate)) if self.stratum_sizes is None else self.stratum_sizes
        # A value that few rows offer is more frequent than those rows say: at first all are taken to be missed alike.
        known = ((1 - self.omission_rate) * sizes) @ self.shares + (self.omission_rate * sizes) @ normalize_rows(
            unseen.astype(np.float64)
        )
        least = np.where(unseen, np.inf, self.shares).min(axis=1, keepdims=True)
        return normalize_rows(np.where(unseen, np.minimum(known / max(float(sizes.sum()), 1.0), least), 0.0))


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
    def has_later_events(self) -> bool:
        """Whether there are events after the first."""
        return self.events is not None and bool(self.events.any())


@dataclass(frozen=True)
class Scores:
    """Per record: `value` with mean f(truth); `unseen`, its mean where the truth is not offered."""

    value: Floats
    omitted_mean: Floats


@dataclass(frozen=True)
class Counts:
    """One number per group: the estimate, its variance, the ends of the interval, and the records it is made from."""

    estimate: Floats
    variance: Floats
    low: Floats
    high: Floats
    records: Integers


def scores(veil: Veil, records: Records, target: Floats, *, step: KernelStep | None = None) -> Scores:
    """What each record adds to the estimate of a target.

    Later events need the published kernel, the `step`: h = sum over C_r of f - sum over C_0 of g + HT2_g(C_0) with g = T^r f, where C_0 is
    the person's first set and C_r the present one.
    """
    if not records.has_later_events:
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
        sums = _later_scores(veil, part, target, partial(propagate, step=step, goal=target, events=int(event)))
        value[at], unseen[at] = sums.value, sums.omitted_mean
    return Scores(value, unseen)


def counts(
    veil: Veil,
    records: Records,
    target: Floats,
    *,
    groups: int = 1,
    level: float = 0.95,
    step: KernelStep | None = None,
    whole: Cells | None = None,
) -> Counts:
    """How many records have a value of the target, by group; `whole` are sums over all first sights of the release, to calibrate by its totals."""
    at = np.zeros(len(records.strata), dtype=np.int64) if records.groups is None else records.groups
    number = np.bincount(at, minlength=groups)
    if target.all():  # everybody: nothing is hidden
        every = number.astype(np.float64)
        return Counts(every, np.zeros(groups), every, every, number)
    sums = scores(veil, records, target, step=step)
    if whole is None or veil.noisy_counts is None or records.has_later_events:
        estimates = _estimate_plain(veil, records, at, target, sums, step, groups)
    else:
        estimates = _calibrate(veil, cells(veil, records.strata, sums, at, groups), whole, target)
    estimate, unseen, variance = estimates.estimate, estimates.omission_variance, estimates.variance
    low, high = normal_interval(estimate, variance + unseen, number, quantile(level))
    few = estimates.error > _MAX_RELATIVE_ERROR * variance
    if few.any():
        spread = estimates.linear_variance().at_least(variance, np.clip(estimate, 0, number))
        ends = score_interval(estimate, LinearVariance(spread.base + unseen, spread.slope), number, quantile(level))
        low, high = np.where(few, ends[0], low), np.where(few, ends[1], high)
        variance = np.where(few, spread.variance(np.clip(estimate, 0, number)), variance)
    return Counts(estimate, variance + unseen, low, high, number)


@dataclass(frozen=True)
class _Estimates:
    """Estimates, their variance and how exact that is, what the unseen add, and the variance as the channel knows it."""

    estimate: Floats
    variance: Floats
    error: Floats
    omission_variance: Floats
    linear_variance: Callable[[], LinearVariance]


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


def _estimate_plain(
    veil: Veil, records: Records, at: Integers, target: Floats, sums: Scores, step: KernelStep | None, groups: int
) -> _Estimates:
    estimate = _sum_by_group(at, sums.value - veil.omission_rate[records.strata] * sums.omitted_mean, groups)
    variance, error = _variance(veil, records, at, sums.value, target, step, groups)
    missed = _sum_by_group(at, _omitted_share(veil, target)[records.strata], groups)
    unseen = _omission_variance(veil, records.strata, at, sums.omitted_mean, groups) + missed**2
    return _Estimates(
        estimate + missed, variance, error, unseen, lambda: _first_event_variance(veil, records, at, target, variance)
    )


def _calibrate(veil: Veil, parts: Cells, whole: Cells, target: Floats) -> _Estimates:
    assert veil.noisy_counts is not None  # noqa: S101 - the caller has looked
    offered = np.where(veil.shares > 0, target, 0.0)
    inside, outside = _variance_by_stratum(veil, np.flatnonzero(whole.number[0]), target)
    total = (veil.noisy_counts.counts * offered).sum(axis=1)
    noise = veil.noisy_counts.variance * (offered**2).sum(axis=1)
    drawn = Calibration(parts, whole, total, noise, inside, outside)
    # Values that a row does not offer stand in the totals, too: their part of a group is that of all its row's records.
    hidden, share = target - offered, parts.number / np.maximum(whole.number, 1)
    missed = share * (veil.noisy_counts.counts * hidden).sum(axis=1)
    doubt = (missed * (1 - share)).sum(axis=1) ** 2 + share**2 @ (veil.noisy_counts.variance * (hidden**2).sum(axis=1))
    return _Estimates(
        drawn.estimate + missed.sum(axis=1),
        *drawn.variance,
        drawn.omission_variance(veil.omission_rate_variance) + doubt,
        lambda: drawn.linear_variance(veil.shares @ target),
    )


def cells(veil: Veil, strata: Integers, sums: Scores, at: Integers, groups: int) -> Cells:
    """Sums by group and row of the prior, of first sights."""
    eta, each = veil.omission_rate[strata], sums.value * (sums.value - 1)
    parts = [
        np.ones(len(strata)),
        sums.value - eta * sums.omitted_mean,
        each,
        each**2,
        _omitted_variance(eta, sums.omitted_mean),
        sums.omitted_mean,
    ]
    shape = (groups, len(veil.omission_rate))
    flat = at.astype(np.int64) * shape[1] + strata
    return Cells(*(_sum_by_group(flat, part, shape[0] * shape[1]).reshape(shape) for part in parts))


def _first_scores(veil: Veil, strata: Integers, candidates: Integers, target: Floats) -> Scores:
    table = _coefficient_table(veil, strata, lambda _: target)
    return Scores(sums_of(table, strata, candidates), (veil.shares @ target)[strata])


def _later_scores(veil: Veil, records: Records, target: Floats, ahead: Callable[[int], Floats]) -> Scores:
    goals = {int(row): ahead(int(row)) for row in np.unique(records.strata)}
    table = _coefficient_table(veil, records.strata, goals.__getitem__)
    unseen = np.zeros(len(table))
    for row, goal in goals.items():
        table[row] -= goal
        unseen[row] = veil.shares[row] @ goal
    assert records.first is not None  # noqa: S101 - `scores` has looked
    value = sums_of(table, records.strata, records.first) + target[records.candidates].sum(axis=1)
    return Scores(value, unseen[records.strata])


def _coefficient_table(veil: Veil, strata: Integers, goal: Callable[[int], Floats]) -> Floats:
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


def _sum_by_group(groups: Integers, values: Floats, size: int) -> Floats:
    return np.bincount(groups, values, minlength=size).astype(np.float64)


def _variance(
    veil: Veil, records: Records, at: Integers, values: Floats, target: Floats, step: KernelStep | None, size: int
) -> tuple[Floats, Floats]:
    """The variance of the sums, and how exact it is (one standard error of it); a person's records vary together."""
    persons = records.persons
    each = values * (values - 1)
    if persons is not None:
        keys = at.astype(np.int64) * (int(persons.max(initial=0)) + 1) + persons
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        inverse = inverse.reshape(-1)
        if len(first) < len(keys):
            squares = _sum_by_group(inverse, values, len(first)) ** 2 - _sum_by_group(inverse, values, len(first))
            each = squares - 2 * _products(veil, records, keys, inverse, values, target, step)
            at = at[first]
    return _sum_by_group(at, each, size), np.sqrt(_sum_by_group(at, each**2, size))


def _products(
    veil: Veil,
    records: Records,
    keys: Integers,
    inverse: Integers,
    values: Floats,
    target: Floats,
    step: KernelStep | None,
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
    return _sum_by_group(inverse[left], products, int(inverse.max(initial=-1)) + 1)


def _omitted_share(veil: Veil, target: Floats) -> Floats:
    """Per row and record, how often its truth is a value of the target that the row does not offer."""
    hidden = veil.omitted_shares
    if (
        veil.excess is not None
    ):  # what is missed in every row is missed as always; what an outbreak adds is the outbreak's
        hidden = float(np.median(veil.omission_rate)) * hidden + np.where(veil.shares == 0, veil.excess, 0.0)
    return np.asarray(veil.omission_rate * (hidden @ target) / np.maximum(hidden.sum(axis=1), np.finfo(float).tiny))


def _omission_variance(veil: Veil, strata: Integers, groups: Integers, omitted_mean: Floats, size: int) -> Floats:
    """What records add whose truth is not offered: their own spread, their number, the noise in eta."""
    eta = veil.omission_rate[strata]
    shape = (size, len(veil.omission_rate))
    moved = np.bincount(groups * shape[1] + strata, omitted_mean, minlength=size * shape[1]).reshape(shape)
    return _sum_by_group(groups, _omitted_variance(eta, omitted_mean), size) + moved**2 @ veil.omission_rate_variance


def _omitted_variance(omission_rate: Floats, omitted_mean: Floats) -> Floats:
    """Per record: whether its truth is not offered, and what its set adds then."""
    return np.asarray(
        omission_rate * omitted_mean * (1 - omitted_mean) + omitted_mean**2 * omission_rate * (1 - omission_rate)
    )


def _first_event_variance(
    veil: Veil, records: Records, groups: Integers, target: Floats, variance: Floats
) -> LinearVariance:
    """The channel's spread for first sights; later events have their part of the variance that was seen."""
    if not records.has_later_events:
        return _channel_variance(veil, records.strata, groups, target, len(variance))
    first = np.flatnonzero(np.asarray(records.events) == 0)
    spread = _channel_variance(veil, records.strata[first], groups[first], target, len(variance))
    number, sights = (np.bincount(part, minlength=len(variance)) for part in (groups, groups[first]))
    return LinearVariance(spread.base + variance * (1 - sights / np.maximum(number, 1)), spread.slope)


def _channel_variance(veil: Veil, strata: Integers, groups: Integers, target: Floats, size: int) -> LinearVariance:
    """Variance as a function of the count, from the channel: V1 per record of the target, V0 per other record."""
    inside, outside = _variance_by_stratum(veil, np.unique(strata), target)
    shape = (size, len(veil.omission_rate))
    number = np.bincount(groups * shape[1] + strata, minlength=size * shape[1]).reshape(shape)
    return LinearVariance(number @ outside, normalize_rows(number * (veil.shares @ target)) @ (inside - outside))


def _variance_by_stratum(veil: Veil, strata: Integers, target: Floats) -> tuple[Floats, Floats]:
    """Variance of one record of the target and of one other, by row; 0 in rows that are not asked for."""
    inside, outside = np.zeros(len(veil.omission_rate)), np.zeros(len(veil.omission_rate))
    for row in strata:
        inside[row], outside[row] = _variance_of_one(veil.channel(int(row)), target)
    return inside, outside


def _variance_of_one(channel: Channel, target: Floats) -> tuple[float, float]:
    variance = channel.squares(channel.coefficients(target)) - target**2
    parts = [channel.shares * target, channel.shares * (1 - target)]
    return tuple(float(part @ variance / max(part.sum(), np.finfo(float).tiny)) for part in parts)  # type: ignore[return-value]
