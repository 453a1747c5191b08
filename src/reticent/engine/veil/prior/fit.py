"""From the past to a prior: domain, strata, counts with noise, and what a reader would make of it.

The past's persons are shuffled into three parts. The first chooses the strata, and a prior counted on it is read by a
reader trained on the second, over the veiled persons of the third. The prior that is handed out is then counted on all
of them: it is a little better than the one that was measured.

Guarantee (to the persons of the past): of epsilon a tenth goes to the domain (three below 5,000 persons, four below 1,000), a tenth to the sizes of fixed strata, three
tenths to the kernel where persons have several records, the rest to the counts; each is a table with one record, or one transition,
per person (see `noise`).

Not covered: strata that were grown, and the measured figures: they are means and choices over the past sample, without
noise. Where the past is the data to be protected themselves: `released`.

Cost: the reader's training takes most of it: half a minute for 100,000 persons and 100 values.
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
"""Largest share of truths that may not be offered."""

# Parts of the past: strata and counts of the measured prior; the reader; the rest is held out.
_PARTS = (0.5, 0.8)
# Held-out persons with two events below whom nothing is said of the kernel.
_MIN_TEST_PERSONS = 30
# Events after which a reader who follows persons is measured.
_EVENT_COUNTS = (2, 4)
# Every third person of the first part judges the strata that the others count.
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
    """Fits a prior to the past.

    Args:
        table: the past, or another sample; of a person with several records the first counts, the others make the kernel.
        policy: roles, hierarchies, published levels.
        sensitive: the sensitive column.
        l: candidates per person.
        by: columns to condition on, `age:2` for a level of its hierarchy; all published ones if left out.
        epsilon: of the noise; None where the past is public.
        rng: of noise and parts.

    Raises:
        DataError: if the past is too small.
        GuaranteeError: if too many truths would not be offered.
    """
    table = merge_variants(table, policy)
    paths = Trajectories.of(table, policy)
    firsts = table.take(pa.array(paths.firsts))
    by, alone = condition_columns(policy, by), policy.household is None
    follows = alone and int(paths.has_several.sum()) >= KERNEL_MIN_PERSONS  # a unit has no kernel
    past = past_of(firsts, policy, l, by, epsilon, rng, KERNEL_SHARE * follows)
    parts = np.split(rng.permutation(past.persons), [int(share * past.persons) for share in _PARTS])
    tree, measured, measures = _fit_trial(past, parts, rng)
    prior = count_prior(past, tree, rng).prior
    if measures.omission_rate > MAX_OMISSION_RATE:
        raise GuaranteeError(
            f"Column '{sensitive}': {measures.omission_rate:.0%} of the values would not be offered, more than {MAX_OMISSION_RATE:.0%}; the past "
            f"of {past.persons} persons is too small for {len(past.domain)} values in {len(prior.strata)} rows.",
            hint="Give a coarser hierarchy, fewer or coarser columns to condition on, more of the past, or a larger epsilon.",
        )
    values = past.domain.encode(table.column(sensitive))
    kernel = _fit_kernel(past, paths, values, parts, (measured, prior), rng) if follows else None
    coarser = _try_coarser(past, measures, parts, rng)
    return FittedPrior(past.domain, prior, measures, coarser, kernel, past.persons, epsilon)


def _choose_strata(past: Past, part: Past, rng: np.random.Generator) -> Split | None:
    if not past.by:
        return None
    if past.has_fixed_levels:
        return fixed_tree(past.by, sizes_of(past, rng), past.min_records)
    judged = np.arange(part.persons) % _TEST_EVERY == 0
    counted = replace(part, share=part.share * (1 - 1 / _TEST_EVERY))
    growth = Growth(
        min_records=counted.min_records, noise=2 * noise_scale(counted.count_epsilon) ** 2, min_count=counted.min_count
    )
    return grow(part.by, part.values, len(past.domain), judged, growth)


def _fit_trial(past: Past, parts: Sequence[Integers], rng: np.random.Generator) -> tuple[Split | None, Prior, Measures]:
    """Strata from the first part, and what a reader who knows the second makes of the third."""
    first, held = past.take(parts[0]), past.take(parts[2])
    tree = _choose_strata(past, first, rng)
    prior = count_prior(first, tree, rng).prior
    rows = prior.assign_strata(past.fields, past.persons)
    seen = sample_of(past.fields.values(), rows, past.values, stratum_count=len(prior.strata))
    measures = measure(prior, held.fields.values(), seen.take(parts[1]), seen.take(parts[2]), l=past.l, rng=rng)
    return tree, prior, measures


def _fit_kernel(
    past: Past,
    paths: Trajectories,
    values: Integers,
    parts: Sequence[Integers],
    priors: tuple[Prior, Prior],
    rng: np.random.Generator,
) -> FittedKernel:
    """The kernel of all persons; one of the first part is judged on the third by a reader who counted all others."""
    prior, whole = priors
    trial = fit_transitions(past.take(parts[0]), paths, values, prior, rng, parts[0])
    own = AttackerKernel(paths.transitions(values, np.concatenate(parts[:2]))[1:], len(past.domain))
    rows = prior.assign_strata(past.fields, past.persons)
    who, before, after = paths.transitions(values, parts[2])
    wrong = misfit(trial, prior.shares, own, (rows[who], before, after)) if len(who) >= _MIN_TEST_PERSONS else None
    followed = []
    for events in _EVENT_COUNTS:
        persons = parts[2][paths.lengths[parts[2]] >= events]
        truths = values[paths.order[paths.starts[persons][:, None] + np.arange(events)]]
        if len(persons) >= _MIN_TEST_PERSONS:
            followed.append(attack_trajectories(prior, trial, own, rows[persons], truths, l=past.l, rng=rng))
    # What is handed out rests on the prior that is handed out: the trial's noise is in no account.
    return FittedKernel(
        fit_transitions(past, paths, values, whole, rng), int(paths.has_several.sum()), wrong, tuple(followed)
    )


def _try_coarser(
    past: Past, measures: Measures, parts: Sequence[Integers], rng: np.random.Generator
) -> CoarserColumn | None:
    name = next((one.column for one in measures.disclosive_columns if one.nats), None)
    if name is None or past.has_fixed_levels:
        return None
    field = past.fields[name].coarser()
    by = tuple(field if one.name == name else one for one in past.by)
    _, _, other = _fit_trial(replace(past, fields=past.fields | {name: field}, by=by), parts, rng)
    return CoarserColumn(name, not field.levels, other.before, other.after)
