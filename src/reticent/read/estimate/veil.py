"""Unbiased counts from a veiled release, with valid intervals even if the prior is wrong.

Guarantee (to the recipient): let M be the copies of each value in a set, pi = l p and Pi = E[M M'] over value orders and
U. With Pi c = pi o f, a record's sum h of c over its candidates has E[h | v] = f(v) for every value v that its stratum
does not omit: the prior shapes the sets and need not be true. Sums of h are unbiased; h (h - 1) is unbiased for the
variance of one.

Not covered: values that a stratum omits. Their sets are drawn independently of the true value, so E[h] = p(A); this is
subtracted at the published omission rate. How many of these records have a value of A is unknown. They are assumed to be
distributed over the stratum's omitted values as in the whole population, each at most as frequent as the rarest value
that is not omitted. A value that exceeds its prior in other strata is assumed to do so here, too. The interval is widened
by the same amount.

Cost: one inversion per stratum (`channel`), then l lookups per record.

Reference: D. G. Horvitz and D. J. Thompson, A generalization of sampling without replacement from a finite universe,
Journal of the American Statistical Association, 1952.

Differences from the paper: the inclusion of a value depends on the true value; the second moments correct for this.
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
"""Relative error of a variance estimate above which the channel's variance is used instead."""


@dataclass(frozen=True, repr=False)
class Veil:
    """The published parameters of a veil.

    Attributes:
        domain: labels of the values, in canonical order.
        segments: strata x values, integers.
        permutations: value orders x values, permutations of the codes.
        omission_rate: per stratum, share of the records whose true value is omitted.
        omission_rate_variance: per stratum, variance of the noise in the omission rate.
        noisy_counts: noisy counts by stratum and value, if the release has them.
        excess: by how much values exceed their prior, estimated by `excess`; default: not at all.
        stratum_sizes: number of records of each stratum; default: all equal.
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
        """Return the channel of a stratum; it is built once."""
        if stratum not in self._channels:
            self._channels[stratum] = build_channel(self.segments[stratum], self.permutations)
        return self._channels[stratum]

    def reuse_channels(self, other: Veil) -> None:
        """Reuse the channels that another veil with the same segments has built."""
        self._channels.update(other._channels)

    @cached_property
    def shares(self) -> Floats:
        """The prior: strata x values."""
        return np.asarray(self.segments / self.segments.sum(axis=1, keepdims=True, dtype=np.float64))

    @cached_property
    def omitted_shares(self) -> Floats:
        """Assumed distribution of omitted true values over the omitted values of each stratum: strata x values."""
        omitted = self.shares == 0
        sizes = np.ones(len(self.omission_rate)) if self.stratum_sizes is None else self.stratum_sizes
        # The prior of a value that few strata contain is too low, so first assume equal shares of omitted values.
        known = ((1 - self.omission_rate) * sizes) @ self.shares + (self.omission_rate * sizes) @ normalize_rows(
            omitted.astype(np.float64)
        )
        least = np.where(omitted, np.inf, self.shares).min(axis=1, keepdims=True)
        return normalize_rows(np.where(omitted, np.minimum(known / max(float(sizes.sum()), 1.0), least), 0.0))


@dataclass(frozen=True, repr=False)
class Records:
    """Published records, as arrays of equal length.

    Attributes:
        strata: stratum of the prior.
        candidates: records x l codes.
        groups: groups to count by, as numbers from 0; default: one group.
        persons: pseudonyms as numbers; several records of a person are correlated.
        events: number of the event; default: 0.
        first: candidates of the same person's first event, required for later events.
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
    """Per record: `value` with mean f(true value), and `omitted_mean`, its mean if the true value is omitted."""

    value: Floats
    omitted_mean: Floats


@dataclass(frozen=True)
class Counts:
    """Per group: the estimate, its variance, the ends of the interval, and the number of records used."""

    estimate: Floats
    variance: Floats
    low: Floats
    high: Floats
    records: Integers


def scores(veil: Veil, records: Records, target: Floats, *, step: KernelStep | None = None) -> Scores:
    """Return the contribution of each record to the estimate of a target.

    Later events need the published kernel (`step`): h = sum over C_r of f - sum over C_0 of g + HT2_g(C_0) with g = T^r f,
    where C_0 is the person's first set and C_r the current one.
    """
    if not records.has_later_events:
        return _first_scores(veil, records.strata, records.candidates, target)
    if step is None or records.first is None:
        raise PolicyError(
            "Later events cannot be counted without the kernel and the person's first event.",
            hint="Ask for first events only, or publish with link: true.",
        )
    value, omitted_mean = np.empty(len(records.strata)), np.empty(len(records.strata))
    events = np.asarray(records.events)
    for event in np.unique(events):
        at = np.flatnonzero(events == event)
        part = Records(records.strata[at], records.candidates[at], first=records.first[at])
        sums = _later_scores(veil, part, target, partial(propagate, step=step, goal=target, events=int(event)))
        value[at], omitted_mean[at] = sums.value, sums.omitted_mean
    return Scores(value, omitted_mean)


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
    """Count the records with a target value by group; `whole` are sums over all first events, to calibrate by noisy counts."""
    at = np.zeros(len(records.strata), dtype=np.int64) if records.groups is None else records.groups
    number = np.bincount(at, minlength=groups)
    if target.all():  # all records: nothing is hidden
        every = number.astype(np.float64)
        return Counts(every, np.zeros(groups), every, every, number)
    sums = scores(veil, records, target, step=step)
    if whole is None or veil.noisy_counts is None or records.has_later_events:
        estimates = _estimate_plain(veil, records, at, target, sums, step, groups)
    else:
        estimates = _calibrate(veil, cells(veil, records.strata, sums, at, groups), whole, target)
    estimate, omission_variance, variance = estimates.estimate, estimates.omission_variance, estimates.variance
    low, high = normal_interval(estimate, variance + omission_variance, number, quantile(level))
    few = estimates.error > _MAX_RELATIVE_ERROR * variance
    if few.any():
        spread = estimates.linear_variance().at_least(variance, np.clip(estimate, 0, number))
        ends = score_interval(
            estimate, LinearVariance(spread.base + omission_variance, spread.slope), number, quantile(level)
        )
        low, high = np.where(few, ends[0], low), np.where(few, ends[1], high)
        variance = np.where(few, spread.variance(np.clip(estimate, 0, number)), variance)
    return Counts(estimate, variance + omission_variance, low, high, number)


@dataclass(frozen=True)
class _Estimates:
    """Estimates, their variance and its error, the variance from omitted values, and the channel's variance."""

    estimate: Floats
    variance: Floats
    error: Floats
    omission_variance: Floats
    linear_variance: Callable[[], LinearVariance]


def excess(veil: Veil, strata: Integers, candidates: Integers) -> Floats:
    """Return by which share of first events each value exceeds its prior (an outbreak); 0 within chance."""
    size, number = len(veil.domain), np.bincount(strata, minlength=len(veil.omission_rate))
    total = np.zeros(size)
    for stratum in np.flatnonzero(number):
        copies = np.bincount(candidates[strata == stratum].ravel(), minlength=size)
        total += veil.channel(int(stratum)).estimates(copies)
    expected = number @ veil.shares
    chance = np.sqrt(2 * candidates.shape[1] * np.maximum(total, expected))
    return np.asarray(np.maximum(total - expected - chance, 0) / np.maximum(number @ (veil.shares > 0), 1))


def _estimate_plain(
    veil: Veil, records: Records, at: Integers, target: Floats, sums: Scores, step: KernelStep | None, groups: int
) -> _Estimates:
    estimate = _sum_by_group(at, sums.value - veil.omission_rate[records.strata] * sums.omitted_mean, groups)
    variance, error = _variance(veil, records, at, sums.value, target, step, groups)
    omitted_count = _sum_by_group(at, _omitted_share(veil, target)[records.strata], groups)
    omission_variance = _omission_variance(veil, records.strata, at, sums.omitted_mean, groups) + omitted_count**2
    return _Estimates(
        estimate + omitted_count,
        variance,
        error,
        omission_variance,
        lambda: _first_event_variance(veil, records, at, target, variance),
    )


def _calibrate(veil: Veil, parts: Cells, whole: Cells, target: Floats) -> _Estimates:
    assert veil.noisy_counts is not None  # noqa: S101 - checked by the caller
    target_in_prior = np.where(veil.shares > 0, target, 0.0)
    inside, outside = _variance_by_stratum(veil, np.flatnonzero(whole.number[0]), target)
    total = (veil.noisy_counts.counts * target_in_prior).sum(axis=1)
    noise = veil.noisy_counts.variance * (target_in_prior**2).sum(axis=1)
    calibration = Calibration(parts, whole, total, noise, inside, outside)
    # The noisy counts also contain omitted values; a group gets its share of the stratum's records of these.
    hidden, share = target - target_in_prior, parts.number / np.maximum(whole.number, 1)
    omitted_counts = share * (veil.noisy_counts.counts * hidden).sum(axis=1)
    doubt = (omitted_counts * (1 - share)).sum(axis=1) ** 2 + share**2 @ (
        veil.noisy_counts.variance * (hidden**2).sum(axis=1)
    )
    return _Estimates(
        calibration.estimate + omitted_counts.sum(axis=1),
        *calibration.variance,
        calibration.omission_variance(veil.omission_rate_variance) + doubt,
        lambda: calibration.linear_variance(veil.shares @ target),
    )


def cells(veil: Veil, strata: Integers, sums: Scores, at: Integers, groups: int) -> Cells:
    """Sum the scores of first events by group and stratum."""
    omission_rate, each = veil.omission_rate[strata], sums.value * (sums.value - 1)
    parts = [
        np.ones(len(strata)),
        sums.value - omission_rate * sums.omitted_mean,
        each,
        each**2,
        _omitted_variance(omission_rate, sums.omitted_mean),
        sums.omitted_mean,
    ]
    shape = (groups, len(veil.omission_rate))
    flat = at.astype(np.int64) * shape[1] + strata
    return Cells(*(_sum_by_group(flat, part, shape[0] * shape[1]).reshape(shape) for part in parts))


def _first_scores(veil: Veil, strata: Integers, candidates: Integers, target: Floats) -> Scores:
    table = _coefficient_table(veil, strata, lambda _: target)
    return Scores(sums_of(table, strata, candidates), (veil.shares @ target)[strata])


def _later_scores(veil: Veil, records: Records, target: Floats, ahead: Callable[[int], Floats]) -> Scores:
    goals = {int(stratum): ahead(int(stratum)) for stratum in np.unique(records.strata)}
    table = _coefficient_table(veil, records.strata, goals.__getitem__)
    omitted_mean = np.zeros(len(table))
    for stratum, goal in goals.items():
        table[stratum] -= goal
        omitted_mean[stratum] = veil.shares[stratum] @ goal
    assert records.first is not None  # noqa: S101 - checked in `scores`
    value = sums_of(table, records.strata, records.first) + target[records.candidates].sum(axis=1)
    return Scores(value, omitted_mean[records.strata])


def _coefficient_table(veil: Veil, strata: Integers, goal: Callable[[int], Floats]) -> Floats:
    """Return the coefficients, strata x values; zero in strata without records."""
    used = [int(stratum) for stratum in np.unique(strata)]
    not_estimable = sum(not veil.channel(stratum).is_estimable(goal(stratum)) for stratum in used)
    if not_estimable:
        raise PolicyError(
            f"This count cannot be estimated in {not_estimable} of {len(used)} strata of the prior: a value occurs equally "
            "often in every candidate set (l times its share is a whole number).",
            hint="Ask for all values together, exclude those strata, or publish with another l or more value orders.",
        )
    table = np.zeros(veil.segments.shape)
    for stratum in used:
        table[stratum] = veil.channel(stratum).coefficients(goal(stratum))
    return table


def _sum_by_group(groups: Integers, values: Floats, size: int) -> Floats:
    return np.bincount(groups, values, minlength=size).astype(np.float64)


def _variance(
    veil: Veil, records: Records, at: Integers, values: Floats, target: Floats, step: KernelStep | None, size: int
) -> tuple[Floats, Floats]:
    """Return the variance of the sums and its standard error; the records of a person are correlated."""
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
    """Estimate, per person and group, the number of pairs of records that both count."""
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
    """Return, per stratum, the probability that a record's true value is an omitted value of the target."""
    hidden = veil.omitted_shares
    if veil.excess is not None:  # omissions above the median rate are assigned to outbreak values
        hidden = float(np.median(veil.omission_rate)) * hidden + np.where(veil.shares == 0, veil.excess, 0.0)
    return np.asarray(veil.omission_rate * (hidden @ target) / np.maximum(hidden.sum(axis=1), np.finfo(float).tiny))


def _omission_variance(veil: Veil, strata: Integers, groups: Integers, omitted_mean: Floats, size: int) -> Floats:
    """Return the variance from omitted true values: their scores, their number and the noise in the omission rate."""
    omission_rate = veil.omission_rate[strata]
    shape = (size, len(veil.omission_rate))
    moved = np.bincount(groups * shape[1] + strata, omitted_mean, minlength=size * shape[1]).reshape(shape)
    own = _sum_by_group(groups, _omitted_variance(omission_rate, omitted_mean), size)
    return own + moved**2 @ veil.omission_rate_variance


def _omitted_variance(omission_rate: Floats, omitted_mean: Floats) -> Floats:
    """Return the variance per record: whether its true value is omitted, and the score of its set in that case."""
    return np.asarray(
        omission_rate * omitted_mean * (1 - omitted_mean) + omitted_mean**2 * omission_rate * (1 - omission_rate)
    )


def _first_event_variance(
    veil: Veil, records: Records, groups: Integers, target: Floats, variance: Floats
) -> LinearVariance:
    """Return the channel's variance for first events; later events get their share of the estimated variance."""
    if not records.has_later_events:
        return _channel_variance(veil, records.strata, groups, target, len(variance))
    first = np.flatnonzero(np.asarray(records.events) == 0)
    spread = _channel_variance(veil, records.strata[first], groups[first], target, len(variance))
    number, first_events = (np.bincount(part, minlength=len(variance)) for part in (groups, groups[first]))
    return LinearVariance(spread.base + variance * (1 - first_events / np.maximum(number, 1)), spread.slope)


def _channel_variance(veil: Veil, strata: Integers, groups: Integers, target: Floats, size: int) -> LinearVariance:
    """Return the channel's variance as a function of the count: V1 per record of the target, V0 per other record."""
    inside, outside = _variance_by_stratum(veil, np.unique(strata), target)
    shape = (size, len(veil.omission_rate))
    number = np.bincount(groups * shape[1] + strata, minlength=size * shape[1]).reshape(shape)
    return LinearVariance(number @ outside, normalize_rows(number * (veil.shares @ target)) @ (inside - outside))


def _variance_by_stratum(veil: Veil, strata: Integers, target: Floats) -> tuple[Floats, Floats]:
    """Return the variance of one record of the target and of one other, by stratum; 0 in strata without records."""
    inside, outside = np.zeros(len(veil.omission_rate)), np.zeros(len(veil.omission_rate))
    for stratum in strata:
        inside[stratum], outside[stratum] = _variance_of_one(veil.channel(int(stratum)), target)
    return inside, outside


def _variance_of_one(channel: Channel, target: Floats) -> tuple[float, float]:
    variance = channel.squares(channel.coefficients(target)) - target**2
    parts = [channel.shares * target, channel.shares * (1 - target)]
    return tuple(float(part @ variance / max(part.sum(), np.finfo(float).tiny)) for part in parts)  # type: ignore[return-value]
