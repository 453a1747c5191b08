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
from reticent.engine.spellings import merge_variants
from reticent.engine.veil.events import Paths
from reticent.engine.veil.prior.counted import FOLLOWED, KERNEL, Past, count, past_of, sizes_of, steps_of
from reticent.engine.veil.prior.fields import asked_columns
from reticent.engine.veil.prior.fitted import Coarser, FittedKernel, FittedPrior
from reticent.engine.veil.prior.follow import follow
from reticent.engine.veil.prior.kernel import OwnKernel, misfit
from reticent.engine.veil.prior.measure import Measures, measure
from reticent.engine.veil.prior.noise import scale
from reticent.engine.veil.prior.prior import Prior
from reticent.engine.veil.prior.reader import sample
from reticent.engine.veil.prior.strata import Growth, Split, fixed, grow
from reticent.errors import GuaranteeError
from reticent.policy import Policy

UNSEEN = 0.1
"""Largest share of truths that may not be offered."""

# Parts of the past: strata and counts of the measured prior; the reader; the rest is held out.
_PARTS = (0.5, 0.8)
# Held-out persons with two events below whom nothing is said of the kernel.
_MIN_TEST_PERSONS = 30
# Events after which a reader who follows persons is measured.
_AFTER = (2, 4)
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
    paths = Paths.of(table, policy)
    firsts = table.take(pa.array(paths.firsts))
    by, alone = asked_columns(policy, by), policy.unit is None
    follows = alone and int(paths.several.sum()) >= FOLLOWED  # a unit has no kernel
    past = past_of(firsts, policy, l, by, epsilon, rng, KERNEL * follows)
    parts = np.split(rng.permutation(past.persons), [int(share * past.persons) for share in _PARTS])
    tree, measured, measures = _trial(past, parts, rng)
    prior = count(past, tree, rng).prior
    if measures.omission_rate > UNSEEN:
        raise GuaranteeError(
            f"Column '{sensitive}': {measures.omission_rate:.0%} of the values would not be offered, more than {UNSEEN:.0%}; the past "
            f"of {past.persons} persons is too small for {len(past.domain)} values in {len(prior.strata)} rows.",
            hint="Give a coarser hierarchy, fewer or coarser columns to condition on, more of the past, or a larger epsilon.",
        )
    values = past.domain.encode(table.column(sensitive))
    kernel = _kernel(past, paths, values, parts, (measured, prior), rng) if follows else None
    coarser = _coarser(past, measures, parts, rng)
    return FittedPrior(past.domain, prior, measures, coarser, kernel, past.persons, epsilon)


def _tree(past: Past, part: Past, rng: np.random.Generator) -> Split | None:
    if not past.by:
        return None
    if past.has_fixed_levels:
        return fixed(past.by, sizes_of(past, rng), past.least)
    judged = np.arange(part.persons) % _TEST_EVERY == 0
    counted = replace(part, share=part.share * (1 - 1 / _TEST_EVERY))
    growth = Growth(least=counted.least, noise=2 * scale(counted.count_epsilon) ** 2, seen=counted.seen)
    return grow(part.by, part.values, len(past.domain), judged, growth)


def _trial(past: Past, parts: Sequence[Integers], rng: np.random.Generator) -> tuple[Split | None, Prior, Measures]:
    """Strata from the first part, and what a reader who knows the second makes of the third."""
    first, held = past.part(parts[0]), past.part(parts[2])
    tree = _tree(past, first, rng)
    prior = count(first, tree, rng).prior
    rows = prior.assign_strata(past.fields, past.persons)
    seen = sample(past.fields.values(), rows, past.values, strata=len(prior.strata))
    measures = measure(prior, held.fields.values(), seen.take(parts[1]), seen.take(parts[2]), l=past.l, rng=rng)
    return tree, prior, measures


def _kernel(
    past: Past,
    paths: Paths,
    values: Integers,
    parts: Sequence[Integers],
    priors: tuple[Prior, Prior],
    rng: np.random.Generator,
) -> FittedKernel:
    """The kernel of all persons; one of the first part is judged on the third by a reader who counted all others."""
    prior, whole = priors
    trial = steps_of(past.part(parts[0]), paths, values, prior, rng, parts[0])
    own = OwnKernel(paths.steps(values, np.concatenate(parts[:2]))[1:], len(past.domain))
    rows = prior.assign_strata(past.fields, past.persons)
    who, before, after = paths.steps(values, parts[2])
    wrong = misfit(trial, prior.shares, own, (rows[who], before, after)) if len(who) >= _MIN_TEST_PERSONS else None
    followed = []
    for events in _AFTER:
        persons = parts[2][paths.lengths[parts[2]] >= events]
        truths = values[paths.order[paths.starts[persons][:, None] + np.arange(events)]]
        if len(persons) >= _MIN_TEST_PERSONS:
            followed.append(follow(prior, trial, own, rows[persons], truths, l=past.l, rng=rng))
    # What is handed out rests on the prior that is handed out: the trial's noise is in no account.
    return FittedKernel(steps_of(past, paths, values, whole, rng), int(paths.several.sum()), wrong, tuple(followed))


def _coarser(past: Past, measures: Measures, parts: Sequence[Integers], rng: np.random.Generator) -> Coarser | None:
    name = next((one.column for one in measures.disclosive_columns if one.nats), None)
    if name is None or past.has_fixed_levels:
        return None
    field = past.fields[name].coarser()
    by = tuple(field if one.name == name else one for one in past.by)
    _, _, other = _trial(replace(past, fields=past.fields | {name: field}, by=by), parts, rng)
    return Coarser(name, not field.levels, other.before, other.after)
