"""Completed data sets: proper multiple imputation of the hidden values, and Rubin's rules to pool the results.

Guarantee (to the recipient): values and their shares in each stratum are drawn from their joint distribution given the
release (with a weak prior on the shares). So the draws vary in everything that the release does not disclose. An
analysis of the columns that define the strata, pooled by `pool`, has valid standard errors.

Not covered: relations with columns that are not in the strata; the draws assume that there are none. True values that
the veil omits.

Cost: 100 sweeps and 20 more per draw; a sweep is l lookups per record and one gamma variate per stratum and value.

Reference: D. B. Rubin, Multiple imputation for nonresponse in surveys, 1987; M. A. Tanner and W. H. Wong, The calculation of posterior
distributions by data augmentation, Journal of the American Statistical Association, 1987.

Differences from the paper: the missing value is one of the published candidates, with the channel's probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from reticent.arrays import Floats, Int64s
from reticent.errors import PolicyError
from reticent.read.estimate.groups import Groups
from reticent.read.estimate.veil import Veil

_BURN_IN, _THINNING = 100, 20
"""Sweeps before the first draw and between draws; with l = 10, a sweep renews about a tenth of the missing information."""
_PRIOR_WEIGHT = 1.0
"""Weight of the prior of a stratum's shares, in records."""


@dataclass(frozen=True)
class Pooled:
    """Estimates pooled over draws: `error` is the standard error, `freedom` its degrees of freedom."""

    estimate: Floats
    error: Floats
    freedom: Floats
    low: Floats
    high: Floats


def pool(estimates: npt.ArrayLike, variances: npt.ArrayLike, *, interval: float = 0.95) -> Pooled:
    """Pool by Rubin's rules: the mean estimate; the mean variance plus (1 + 1/m) times the variance between estimates.

    Args:
        estimates: one row per completed data set, one column per coefficient.
        variances: the squared standard errors, of the same shape.
        interval: level of the intervals.

    Example:
        >>> pooled = pool([[1.0], [2.0], [3.0]], [[0.5], [0.5], [0.5]])
        >>> float(pooled.estimate[0]), round(float(pooled.error[0]) ** 2, 4)
        (2.0, 1.8333)
    """
    values, within = np.atleast_2d(np.asarray(estimates, float)), np.atleast_2d(np.asarray(variances, float))
    m = len(values)
    if m < 2 or values.shape != within.shape:
        raise PolicyError("Pooling needs at least two draws, and a variance for each estimate.", hint="Use draws(10).")
    between = values.var(axis=0, ddof=1)
    extra = (1 + 1 / m) * between
    total = within.mean(axis=0) + extra
    # Capped for draws that agree: more than a million degrees of freedom make no difference.
    freedom = (m - 1) * np.minimum(total / np.maximum(extra, 1e-12 * total + 1e-300), 1e3) ** 2
    estimate, error = values.mean(axis=0), np.sqrt(total)
    half = np.array([_student(interval, df) for df in np.atleast_1d(freedom)]) * error
    return Pooled(estimate, error, freedom, estimate - half, estimate + half)


def _student(interval: float, freedom: float) -> float:
    """Return the quantile of Student's t, expanded around the normal quantile (Abramowitz and Stegun, 26.7.5)."""
    z = NormalDist().inv_cdf((1 + interval) / 2)
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


def draw_veil_values(
    veil: Veil, prior_strata: Int64s, sets: Int64s, strata: Int64s, draws: int, rng: np.random.Generator
) -> list[Int64s]:
    """Draw a candidate for each veiled record, with odds of the stratum's share over the prior's segment."""
    pi = veil.shares * sets.shape[1]
    weight = np.divide(1.0, pi, out=np.zeros_like(pi), where=pi > 0)
    inverse = np.stack([weight[prior_strata, column] for column in sets.T], axis=1)
    prior = _prior(strata, veil.shares[prior_strata])
    every = np.arange(len(prior_strata))
    values, out = sets[every, rng.integers(sets.shape[1], size=len(prior_strata))], []
    for sweep in range(_BURN_IN + _THINNING * (draws - 1) + 1):
        shares = _shares(prior, strata, values, rng)
        odds = np.stack([shares[strata, column] for column in sets.T], axis=1) * inverse
        total = odds.cumsum(axis=1)
        slot = (rng.random(len(prior_strata))[:, None] * total[:, -1:] >= total).sum(axis=1)
        values = sets[every, np.minimum(slot, sets.shape[1] - 1)]
        if sweep >= _BURN_IN and (sweep - _BURN_IN) % _THINNING == 0:
            out.append(values.astype(np.int64))
    return out


def draw_group_values(
    groups: Groups, mine: Int64s, strata: Int64s, draws: int, rng: np.random.Generator
) -> list[Int64s]:
    """Draw values of records in groups: assign the group's values at random, then exchange them between pairs."""
    place, seat_group, seat_value = _seats(groups, mine, rng)
    totals = np.bincount(groups.values, groups.counts, minlength=groups.size) / max(groups.counts.sum(), 1)
    prior = _PRIOR_WEIGHT * np.tile(totals, (int(strata.max(initial=0)) + 1, 1))
    out = []
    # Exchanging pairs renews less per sweep than drawing a whole group.
    begin, between = 3 * _BURN_IN, 3 * _THINNING
    for sweep in range(begin + between * (draws - 1) + 1):
        values = seat_value[place]
        shares = _shares(prior, strata, values, rng)
        place = _swap_pairs(place, seat_group, seat_value, strata, shares, rng)
        if sweep >= begin and (sweep - begin) % between == 0:
            out.append(seat_value[place].astype(np.int64))
    return out


def _seats(groups: Groups, mine: Int64s, rng: np.random.Generator) -> tuple[Int64s, Int64s, Int64s]:
    """Return a seat for every listed value, and a random initial seat of each record in its group."""
    group, value = np.repeat(groups.groups, groups.counts), np.repeat(groups.values, groups.counts)
    order = np.lexsort((rng.random(len(group)), group))
    group, value = group[order], value[order]
    start = np.searchsorted(group, np.arange(int(group.max(initial=-1)) + 1))
    by_group = np.argsort(mine, kind="stable")
    number = np.arange(len(mine)) - np.searchsorted(mine[by_group], mine[by_group])
    place = np.empty(len(mine), dtype=np.int64)
    place[by_group] = start[mine[by_group]] + number
    return place, group.astype(np.int64), value.astype(np.int64)


def _swap_pairs(
    place: Int64s, seat_group: Int64s, seat_value: Int64s, strata: Int64s, shares: Floats, rng: np.random.Generator
) -> Int64s:
    """Exchange the records of pairs of seats in a group, with the probability given by the shares; seats may be empty."""
    order = np.lexsort((rng.random(len(seat_group)), seat_group))
    left, right = order[:-1], order[1:]
    start = np.searchsorted(seat_group, seat_group[order])
    pair = (seat_group[left] == seat_group[right]) & ((np.arange(len(order)) - start)[:-1] % 2 == 0)
    left, right = left[pair], right[pair]
    owner = np.full(len(seat_group), -1)
    owner[place] = np.arange(len(place))
    gain = _gain(owner[left], seat_value[left], seat_value[right], strata, shares)
    gain *= _gain(owner[right], seat_value[right], seat_value[left], strata, shares)
    swap = rng.random(len(gain)) < gain
    left, right = left[swap], right[swap]
    owner[left], owner[right] = owner[right], owner[left]
    seat = np.flatnonzero(owner >= 0)
    place = place.copy()
    place[owner[seat]] = seat
    return place


def _gain(owner: Int64s, have: Int64s, get: Int64s, strata: Int64s, shares: Floats) -> Floats:
    """Return the likelihood ratio of the new value to the current one for each record; 1 for an empty seat."""
    stratum = strata[owner]
    ratio = shares[stratum, get] / np.maximum(shares[stratum, have], 1e-300)
    return np.where(owner < 0, 1.0, ratio)


def _prior(strata: Int64s, shares: Floats) -> Floats:
    """Return the mean prior of each stratum's records, with a weight of `_PRIOR_WEIGHT` records."""
    size = int(strata.max(initial=0)) + 1
    total = np.stack([np.bincount(strata, column, minlength=size) for column in shares.T], axis=1)
    return np.asarray(_PRIOR_WEIGHT * total / np.maximum(np.bincount(strata, minlength=size), 1)[:, None])


def _shares(prior: Floats, strata: Int64s, values: Int64s, rng: np.random.Generator) -> Floats:
    """Draw the shares of the values in each stratum, given the values (Dirichlet)."""
    flat = np.bincount(strata * prior.shape[1] + values, minlength=prior.size).reshape(prior.shape)
    gammas = rng.standard_gamma(prior + flat)
    return np.asarray(np.maximum(gammas, 1e-300) / np.maximum(gammas.sum(axis=1, keepdims=True), 1e-300))
