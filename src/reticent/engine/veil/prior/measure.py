"""Measure a prior: how well the best attacker we can train does against a veil over unseen persons.

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
# Numbers of candidates to try for the largest useful one.
_TRIAL_L = (2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 50)
# More candidates are useful while the attacker is right this much more often than with the most candidates.
_USEFUL_GAIN = 0.1
# Most persons to train an attacker on: more take time and gain little.
_MAX_TRAINING = 30_000
# Most persons for the trials of l.
_MAX_TEST = 5_000

# Pseudo-records of the overall shares in a node's own shares, when the disclosure of a field is measured.
_SHRINKAGE = 50.0


@dataclass(frozen=True)
class Score:
    """How often an attacker is right, and how sure: shares of the persons, and the belief in the best guess."""

    right: float
    sure: float
    sure_99: float
    above_half: float
    above_nine_tenths: float


@dataclass(frozen=True)
class ColumnDisclosure:
    """How much one published field discloses about the value: nats per person, from the published level up."""

    column: str
    nats: tuple[float, ...]


@dataclass(frozen=True, repr=False)
class Measures:
    """How well the prior does against an informed attacker.

    Attributes:
        persons: held-out persons.
        l: candidates per person.
        prior_likelihood: mean logarithm of the prior's share of the true value, where it is offered.
        attacker_likelihood: the same for the attacker's belief.
        before: the attacker without the release.
        after: the attacker with the release.
        odds_ratio: quantiles of the largest odds ratio of belief to prior among a record's candidates.
        mean_odds_ratio: its geometric mean.
        stratum_odds_ratio: the quantiles per stratum; NaN for strata without held-out persons.
        omission_rate: share of true values that are not offered.
        useful_l: number of candidates beyond which the attacker is hardly less often right.
        disclosive_columns: the published fields, the most disclosive first.
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
        """How much more often the attacker is right with the release than without, or than one in l."""
        return self.after.right / max(1 / self.l, self.before.right)


def measure(
    prior: Prior, fields: Iterable[Field], learn: Sample, test: Sample, *, l: int, rng: np.random.Generator
) -> Measures:
    """Train an attacker on one sample and attack the veil over another, whose published fields are given.

    No person is in both samples, or was counted for the prior.
    """
    shares = prior.shares[test.strata]
    permutations = random_permutations(len(prior.labels), rng)
    sets = draw_candidates(test.values, test.strata, prior.segments(l), permutations, rng)
    attackers = train_attackers(learn.take(rng.permutation(len(learn))[:_MAX_TRAINING]), prior.shares)
    scores = [_score(posterior(attacker.belief(test), sets, shares), test.values) for attacker in attackers]
    best = max(range(len(attackers)), key=lambda number: scores[number].right)
    belief = attackers[best].belief(test)
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
        useful_l=_useful_l(prior, attackers[best], test, rng),
        disclosive_columns=measure_disclosure(fields, test.values, len(prior.labels), rng),
    )


def measure_disclosure(
    fields: Iterable[Field], values: Integers, size: int, rng: np.random.Generator
) -> tuple[ColumnDisclosure, ...]:
    """Measure each field alone on each of its levels: held-out gain in likelihood, the most disclosive field first."""
    half = rng.random(len(values)) < 0.5
    disclosures = [
        ColumnDisclosure(
            field.name, tuple(_nats(field, level, values, size, half) for level in range(len(field.levels)))
        )
        for field in fields
    ]
    return tuple(sorted(disclosures, key=lambda disclosure: -max(disclosure.nats, default=0)))


def _nats(field: Field, level: int, values: Integers, size: int, half: Bools) -> float:
    nodes = field.levels[level][field.codes]
    shape = (len(field.labels[level]), size)
    training, test = (
        np.bincount(nodes[part] * size + values[part], minlength=shape[0] * size).reshape(shape)
        for part in (half, ~half)
    )
    whole = (training.sum(axis=0) + 0.5) / (training.sum() + 0.5 * size)
    gain = (test * (np.log(shrink_toward(training.astype(np.float64), whole, _SHRINKAGE)) - np.log(whole))).sum()
    return float(max(gain / max(test.sum(), 1), 0))


def _score(belief: Floats, values: Integers) -> Score:
    top = belief.max(axis=1)
    right = belief.argmax(axis=1) == values
    above = (float((top > limit).mean()) for limit in (0.5, 0.9))
    return Score(float(right.mean()), float(top.mean()), float(np.quantile(top, 0.99)), *above)


def odds_ratios(belief: Floats, shares: Floats, sets: Integers) -> Floats:
    """Return per record the largest odds ratio of an attacker's belief to the prior among its candidates."""
    ratio = np.take_along_axis(belief, sets, 1) / np.take_along_axis(shares, sets, 1)
    return np.asarray(ratio.max(axis=1) / np.maximum(ratio.min(axis=1), np.finfo(float).tiny))


def _stratum_odds_ratios(ratios: Floats, strata: Integers, number: int) -> Floats:
    parts = [ratios[strata == stratum] for stratum in range(number)]
    return np.array([np.quantile(part, QUANTILES) if len(part) else np.full(3, np.nan) for part in parts])


def _useful_l(prior: Prior, attacker: Attacker, test: Sample, rng: np.random.Generator) -> int:
    """Return the first number of candidates with which the attacker is hardly more often right than with the most."""
    sample = test.take(rng.permutation(len(test))[:_MAX_TEST])
    belief, shares = attacker.belief(sample), prior.shares[sample.strata]
    permutations = random_permutations(len(prior.labels), rng)
    sets = [draw_candidates(sample.values, sample.strata, prior.segments(l), permutations, rng) for l in _TRIAL_L]
    right = [_score(posterior(belief, each, shares), sample.values).right for each in sets]
    return next(l for l, share in zip(_TRIAL_L, right, strict=True) if share <= right[-1] * (1 + _USEFUL_GAIN))
