"""Fit a prior to the past: domain, strata, noisy counts, and measurements with a trained attacker.

Persons of the past are split at random into three parts. The first chooses the strata and counts a trial prior, the second trains
an attacker, and the attacker is measured on veiled persons of the third. The prior that is handed out is counted on all
persons, so it is a little better than the measured one.

Guarantee (to the persons of the past, against an attacker who sees the prior): epsilon-differential privacy. A tenth of epsilon
goes to the domain (three tenths below 5,000 persons, four below 1,000), a tenth to the sizes of fixed strata, three tenths to the
kernel where persons have several records, the rest to the counts. Each table has one record or transition per person.

Not covered: grown strata and the measured figures: they are choices and means over the past, without noise. Where the past is the
data to be protected, use `fit_on_release`.

Cost: training the attacker takes most of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from reticent.arrays import Integers
from reticent.engine.value_variants import merge_variants
from reticent.engine.veil.events import Trajectories
from reticent.engine.veil.prior.attacker import sample_of
from reticent.engine.veil.prior.fields import condition_columns
from reticent.engine.veil.prior.fitted_prior import CoarserColumn, FittedKernel, FittedPrior
from reticent.engine.veil.prior.kernel import AttackerKernel, misfit
from reticent.engine.veil.prior.measure import Measures, measure
from reticent.engine.veil.prior.noise import noise_scale
from reticent.engine.veil.prior.past import (
    KERNEL_MIN_PERSONS,
    KERNEL_SHARE,
    Past,
    count_prior,
    fit_transitions,
    past_of,
    sizes_of,
)
from reticent.engine.veil.prior.prior import Prior
from reticent.engine.veil.prior.strata import Growth, Split, fixed_tree, grow
from reticent.engine.veil.prior.trajectory_attack import attack_trajectories
from reticent.errors import GuaranteeError
from reticent.policy import Policy

MAX_OMISSION_RATE = 0.1
"""Largest omission rate."""

# Parts of the past: strata and counts of the trial prior; training of the attacker; the rest is held out.
_PARTS = (0.5, 0.8)
# Fewest held-out persons with two events to measure the kernel.
_MIN_TEST_PERSONS = 30
# Numbers of events after which an attacker who follows persons is measured.
_EVENT_COUNTS = (2, 4)
# Every third person of the first part tests the strata that the others count.
_TEST_EVERY = 3


def fit(
    table: pa.Table,
    policy: Policy,
    sensitive: str,
    *,
    l: int,
    by: Sequence[str] | None = None,
    epsilon: float | None = 1.0,
    rng: np.random.Generator,
) -> FittedPrior:
    """Fit a prior to the past.

    Args:
        table: the past, or another sample; the first record of a person is counted, the others make the kernel.
        policy: roles, hierarchies, published levels.
        sensitive: the sensitive column.
        l: candidates per person.
        by: columns to condition on, `age:2` for a level of its hierarchy; None for all published ones.
        epsilon: of the noise; None where the past is public.
        rng: for the noise and the parts.

    Raises:
        DataError: if the past is too small.
        GuaranteeError: if the omission rate would be too high.
    """
    table = merge_variants(table, policy)
    paths = Trajectories.of(table, policy)
    firsts = table.take(pa.array(paths.firsts))
    by, no_household = condition_columns(policy, by), policy.household is None
    has_kernel = no_household and int(paths.has_several.sum()) >= KERNEL_MIN_PERSONS  # a household has no kernel
    past = past_of(firsts, policy, l, by, epsilon, rng, KERNEL_SHARE * has_kernel)
    parts = np.split(rng.permutation(past.persons), [int(share * past.persons) for share in _PARTS])
    tree, measured, measures = _fit_trial(past, parts, rng)
    prior = count_prior(past, tree, rng).prior
    if measures.omission_rate > MAX_OMISSION_RATE:
        raise GuaranteeError(
            f"Column '{sensitive}': the omission rate would be {measures.omission_rate:.0%}, more than {MAX_OMISSION_RATE:.0%}; the past "
            f"of {past.persons} persons is too small for {len(past.domain)} values in {len(prior.strata)} strata.",
            hint="Use a coarser hierarchy, fewer or coarser columns in --by, more past data, or a larger epsilon.",
        )
    values = past.domain.encode(table.column(sensitive))
    kernel = _fit_kernel(past, paths, values, parts, (measured, prior), rng) if has_kernel else None
    coarser = _try_coarser(past, measures, parts, rng)
    return FittedPrior(past.domain, prior, measures, coarser, kernel, past.persons, epsilon)


def _choose_strata(past: Past, part: Past, rng: np.random.Generator) -> Split | None:
    if not past.by:
        return None
    if past.has_fixed_levels:
        return fixed_tree(past.by, sizes_of(past, rng), past.min_records)
    test = np.arange(part.persons) % _TEST_EVERY == 0
    rest = replace(part, share=part.share * (1 - 1 / _TEST_EVERY))
    noise = 2 * noise_scale(rest.count_epsilon) ** 2
    growth = Growth(min_records=rest.min_records, noise=noise, min_count=rest.min_count)
    return grow(part.by, part.values, len(past.domain), test, growth)


def _fit_trial(past: Past, parts: Sequence[Integers], rng: np.random.Generator) -> tuple[Split | None, Prior, Measures]:
    """Choose strata on the first part, and measure on the third part the attacker who is trained on the second."""
    first, held_out = past.take(parts[0]), past.take(parts[2])
    tree = _choose_strata(past, first, rng)
    prior = count_prior(first, tree, rng).prior
    strata = prior.assign_strata(past.fields, past.persons)
    sample = sample_of(past.fields.values(), strata, past.values, stratum_count=len(prior.strata))
    measures = measure(prior, held_out.fields.values(), sample.take(parts[1]), sample.take(parts[2]), l=past.l, rng=rng)
    return tree, prior, measures


def _fit_kernel(
    past: Past,
    paths: Trajectories,
    values: Integers,
    parts: Sequence[Integers],
    priors: tuple[Prior, Prior],
    rng: np.random.Generator,
) -> FittedKernel:
    """Fit the kernel on all persons; measure a trial kernel of the first part on the third, against an informed attacker."""
    prior, whole = priors
    trial = fit_transitions(past.take(parts[0]), paths, values, prior, rng, parts[0])
    finer = AttackerKernel(paths.transitions(values, np.concatenate(parts[:2]))[1:], len(past.domain))
    strata = prior.assign_strata(past.fields, past.persons)
    who, before, after = paths.transitions(values, parts[2])
    test = (strata[who], before, after)
    kernel_misfit = misfit(trial, prior.shares, finer, test) if len(who) >= _MIN_TEST_PERSONS else None
    scores = []
    for events in _EVENT_COUNTS:
        persons = parts[2][paths.lengths[parts[2]] >= events]
        true_values = values[paths.order[paths.starts[persons][:, None] + np.arange(events)]]
        if len(persons) >= _MIN_TEST_PERSONS:
            scores.append(attack_trajectories(prior, trial, finer, strata[persons], true_values, l=past.l, rng=rng))
    # The trial's noise is not accounted for, so the kernel is fitted again with the prior that is handed out.
    return FittedKernel(
        fit_transitions(past, paths, values, whole, rng), int(paths.has_several.sum()), kernel_misfit, tuple(scores)
    )


def _try_coarser(
    past: Past, measures: Measures, parts: Sequence[Integers], rng: np.random.Generator
) -> CoarserColumn | None:
    name = next((column.column for column in measures.disclosive_columns if column.nats), None)
    if name is None or past.has_fixed_levels:
        return None
    field = past.fields[name].coarser()
    by = tuple(field if each.name == name else each for each in past.by)
    _, _, coarser = _fit_trial(replace(past, fields=past.fields | {name: field}, by=by), parts, rng)
    return CoarserColumn(name, not field.levels, coarser.before, coarser.after)
