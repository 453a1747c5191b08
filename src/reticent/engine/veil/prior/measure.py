"""The prior measures itself: what the best reader we can train makes of a veil over persons she has never seen.

Every figure is a mean or a quantile over held-out persons of the past, never a maximum.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from reticent.arrays import Bools, Floats, Integers
from reticent.engine.veil.prior.attacker import Attacker, Sample, likelihood, posterior, train_attackers
from reticent.engine.veil.prior.fields import Field
from reticent.engine.veil.prior.prior import Prior, draw_candidates, random_permutations
from reticent.engine.veil.prior.strata import shrink_toward

QUANTILES = (0.5, 0.9, 0.99)
# Numbers of candidates that are tried for the largest useful one.
_TRIAL_L = (2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 50)
# More candidates are useful while the reader is right more often by this share than with the most of them.
_USEFUL_GAIN = 0.1
# Persons that a reader learns from: more make her slow rather than better.
_MAX_TRAINING = 30_000
# Persons that the trials of l are made on.
_MAX_TEST = 5_000

# Records that the whole counts for in a node's own shares, when a field is asked what it tells.
_SHRINKAGE = 50.0


@dataclass(frozen=True)
class Score:
    """How often a reader is right, and how sure she is: shares of the persons, and her belief in her best guess."""

    right: float
    sure: float
    sure_99: float
    above_half: float
    above_nine_tenths: float


@dataclass(frozen=True)
class ColumnDisclosure:
    """What one published field says of the value by itself: nats per person, from the published level up."""

    column: str
    nats: tuple[float, ...]


@dataclass(frozen=True, repr=False)
class Measures:
    """What the prior is worth against an informed reader.

    Attributes:
        persons: held-out persons.
        l: candidates per person.
        prior_likelihood: mean logarithm of the prior's share of the truth, where it is offered.
        reader_likelihood: the same of the reader's belief.
        before: the reader without the release.
        after: the reader with it.
        kappa: quantiles of the largest ratio of her belief to the prior's between offered candidates.
        mean_kappa: its geometric mean.
        row_kappa: the same by row of the prior; NaN for rows without held-out persons.
        eta: share of the truths that are not offered.
        useful_l: candidates beyond which she is hardly less often right.
        tells: the published fields, the most telling first.
    """

    persons: int
    l: int
    prior_likelihood: float
    attacker_likelihood: float
    before: Score
    after: Score
    odds_ratio: tuple[float, ...]
    mean_odds_ratio: float
    stratum_odds_ratio: Floats
    omission_rate: float
    useful_l: int
    disclosive_columns: tuple[ColumnDisclosure, ...]

    @property
    def ratio(self) -> float:
        """How much more often she is right than by her knowledge, or by one candidate in l."""
        return self.after.right / max(1 / self.l, self.before.right)


def measure(
    prior: Prior, fields: Iterable[Field], learn: Sample, test: Sample, *, l: int, rng: np.random.Generator
) -> Measures:
    """Trains a reader on one sample and lets her read the veil over another, whose published fields are given.

    No person is in both, or was counted for the prior.
    """
    shares = prior.shares[test.strata]
    orders = random_permutations(len(prior.labels), rng)
    sets = draw_candidates(test.values, test.strata, prior.segments(l), orders, rng)
    readers = train_attackers(learn.take(rng.permutation(len(learn))[:_MAX_TRAINING]), prior.shares)
    scores = [_score(posterior(reader.belief(test), sets, shares), test.values) for reader in readers]
    best = max(range(len(readers)), key=lambda number: scores[number].right)
    belief = readers[best].belief(test)
    offered = shares[np.arange(len(test)), test.values] > 0
    ratios = odds_ratios(belief, shares, sets)
    return Measures(
        persons=len(test),
        l=l,
        prior_likelihood=likelihood(shares[offered], test.values[offered]),
        attacker_likelihood=likelihood(belief[offered], test.values[offered]),
        before=_score(belief, test.values),
        after=scores[best],
        odds_ratio=tuple(np.quantile(ratios, QUANTILES).tolist()),
        mean_odds_ratio=float(np.exp(np.log(ratios).mean())),
        stratum_odds_ratio=_stratum_odds_ratios(ratios, test.strata, len(prior.strata)),
        omission_rate=float(1 - offered.mean()),
        useful_l=_useful_l(prior, readers[best], test, rng),
        disclosive_columns=measure_disclosure(fields, test.values, len(prior.labels), rng),
    )


def measure_disclosure(
    fields: Iterable[Field], values: Integers, size: int, rng: np.random.Generator
) -> tuple[ColumnDisclosure, ...]:
    """What each field says by itself on each of its levels: held-out gain in likelihood, the most telling field first."""
    half = rng.random(len(values)) < 0.5
    tellings = [
        ColumnDisclosure(
            field.name, tuple(_nats(field, level, values, size, half) for level in range(len(field.levels)))
        )
        for field in fields
    ]
    return tuple(sorted(tellings, key=lambda one: -max(one.nats, default=0)))


def _nats(field: Field, level: int, values: Integers, size: int, half: Bools) -> float:
    nodes = field.levels[level][field.codes]
    shape = (len(field.labels[level]), size)
    count, judge = (
        np.bincount(nodes[part] * size + values[part], minlength=shape[0] * size).reshape(shape)
        for part in (half, ~half)
    )
    whole = (count.sum(axis=0) + 0.5) / (count.sum() + 0.5 * size)
    gain = (judge * (np.log(shrink_toward(count.astype(np.float64), whole, _SHRINKAGE)) - np.log(whole))).sum()
    return float(max(gain / max(judge.sum(), 1), 0))


def _score(belief: Floats, values: Integers) -> Score:
    top = belief.max(axis=1)
    right = belief.argmax(axis=1) == values
    above = (float((top > limit).mean()) for limit in (0.5, 0.9))
    return Score(float(right.mean()), float(top.mean()), float(np.quantile(top, 0.99)), *above)


def odds_ratios(belief: Floats, shares: Floats, sets: Integers) -> Floats:
    """Per record, the largest ratio of a reader's belief to the prior's between offered candidates."""
    ratio = np.take_along_axis(belief, sets, 1) / np.take_along_axis(shares, sets, 1)
    return np.asarray(ratio.max(axis=1) / np.maximum(ratio.min(axis=1), np.finfo(float).tiny))


def _stratum_odds_ratios(ratios: Floats, strata: Integers, number: int) -> Floats:
    parts = [ratios[strata == row] for row in range(number)]
    return np.array([np.quantile(part, QUANTILES) if len(part) else np.full(3, np.nan) for part in parts])


def _useful_l(prior: Prior, attacker: Attacker, test: Sample, rng: np.random.Generator) -> int:
    """The first number of candidates with which she is right hardly more often than with the most that are tried."""
    some = test.take(rng.permutation(len(test))[:_MAX_TEST])
    belief, shares = attacker.belief(some), prior.shares[some.strata]
    orders = random_permutations(len(prior.labels), rng)
    sets = [draw_candidates(some.values, some.strata, prior.segments(l), orders, rng) for l in _TRIAL_L]
    right = [_score(posterior(belief, each, shares), some.values).right for each in sets]
    return next(l for l, share in zip(_TRIAL_L, right, strict=True) if share <= right[-1] * (1 + _USEFUL_GAIN))
