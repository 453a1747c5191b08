"""A prior counted on the very records that it will veil, or on the first of a stream: everything costs epsilon.

Guarantee (to these persons): prior and kernel together are epsilon-differentially private in their records, so that a weight a becomes at
most a e^epsilon / (a e^epsilon + 1 - a). Strata are told, or chosen by what has noise already; nothing is measured, since figures
would cost, too.

Not covered: that a value occurs at all: one with a single record is named with a probability below 1 %. Which nodes of the
published columns occur.

A stream without a past has its first records wait once, and counts them.

Cost: a few passes over the records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from reticent.engine.value_variants import merge_variants
from reticent.engine.veil.events import Trajectories
from reticent.engine.veil.prior.fields import Field, condition_columns
from reticent.engine.veil.prior.fitted_prior import FittedKernel, FittedPrior
from reticent.engine.veil.prior.noise import add_noise
from reticent.engine.veil.prior.past import (
    FEW_PERSONS,
    KERNEL_MIN_PERSONS,
    KERNEL_SHARE,
    SIZES_SHARE,
    Past,
    count_prior,
    fit_transitions,
    merge_strata,
    past_of,
    sizes_of,
)
from reticent.engine.veil.prior.strata import MAX_STRATA, fixed_tree
from reticent.errors import GuaranteeError
from reticent.policy import Policy
from reticent.policy.column_patterns import is_age_or_sex
from reticent.policy.settings.kinds import PriorSettings

# Of epsilon: whether enough persons have several records for a kernel.
_KERNEL_TEST_SHARE = 0.05
# Of epsilon: three counts of few persons, who need what is left for their values.
_FEW_KERNEL_SHARE = 0.1
# Shares of the truths not offered: what columns may cost that are chosen here, and what is refused.
_MAX_CHOSEN_OMISSION, _MAX_OMISSION_RATE = 0.06, 0.1
# Of few persons the counts that decide are mostly noise: so many times the persons then.
_FEW_FACTOR = 3


def fit_on_release(
    table: pa.Table,
    policy: Policy,
    *,
    l: int,
    by: Sequence[str] | None = None,
    epsilon: float,
    kernel: bool = False,
    rng: np.random.Generator,
) -> FittedPrior:
    """Counts a prior on the records to be released.

    Args:
        table: the records; of a person with several the first counts.
        policy: roles, hierarchies, published levels.
        l: candidates per person.
        by: columns to condition on, at their published level or at one that is told, as `age:2`; as many as the number of
            persons carries if left out, age and sex before others.
        epsilon: of the noise.
        kernel: count how values follow one another, too, where enough persons have several records; of fewer than 5,000 persons
            one probability to stay for all values.
        rng: of the noise.

    Raises:
        GuaranteeError: too many truths would not be offered.
    """
    table = merge_variants(table, policy)
    paths, sensitive = Trajectories.of(table, policy), policy.sensitive[0]
    by, alone = condition_columns(policy, by), policy.household is None
    kernel &= alone
    several = add_noise(np.array([paths.has_several.sum()]), _KERNEL_TEST_SHARE * epsilon, rng) if kernel else [0]
    follows = kernel and int(several[0]) >= KERNEL_MIN_PERSONS
    spent = _FEW_KERNEL_SHARE if len(paths) < FEW_PERSONS else KERNEL_SHARE
    followed = _KERNEL_TEST_SHARE * kernel + spent * follows
    past = past_of(table.take(pa.array(paths.firsts)), policy, l, (), epsilon, rng, followed)
    past = past.with_columns(
        _choose_columns(past, policy) if by is None else [_with_level(policy, item) for item in by], policy
    )
    counted = count_prior(past, fixed_tree(past.by, sizes_of(past, rng), _min_persons(past)) if past.by else None, rng)
    if counted.omission_rate > _MAX_OMISSION_RATE and by is None:
        counted = merge_strata(past, counted)
    if counted.omission_rate > _MAX_OMISSION_RATE:
        raise GuaranteeError(
            f"Column '{sensitive}': about {counted.omission_rate:.0%} of the values would not be offered, more than {_MAX_OMISSION_RATE:.0%}: "
            f"{past.persons:,} persons are too few for {len(past.domain)} values in {len(counted.prior.strata)} rows with this noise.",
            hint="Give a coarser hierarchy to it, fewer or coarser columns to condition on, or a larger epsilon; or count a past.",
        )
    steps = None
    if follows:
        values = past.domain.encode(table.column(sensitive))
        few = spent * epsilon if len(paths) < FEW_PERSONS else None
        steps = FittedKernel(fit_transitions(past, paths, values, counted.prior, rng, few=few), None, None, ())
    return FittedPrior(past.domain, counted.prior, None, None, steps, past.persons, epsilon)


def _with_level(policy: Policy, item: str) -> str:
    return item if ":" in item or item not in policy.columns else f"{item}:{policy.columns[item].level}"


def _min_persons(past: Past) -> float:
    """Fewest persons of a row in which hardly a value is too rare, if it is as frequent there as everywhere; by what has noise already."""
    totals = np.sort(np.maximum(past.totals, 0))
    shares = totals / max(totals.sum(), 1)
    rarest = shares[np.searchsorted(np.cumsum(shares), _MAX_CHOSEN_OMISSION)] if shares.any() else 1.0
    return float(max(past.min_records, past.min_count / rarest))


def _choose_columns(past: Past, policy: Policy) -> list[str]:
    """Columns, each at the finest level at which rows have persons enough, if all are of a size."""
    rows, by, least = 1, [], _min_persons(replace(past, kernel_share=past.kernel_share + SIZES_SHARE))
    room = min(MAX_STRATA, past.persons / least / (_FEW_FACTOR if past.persons < FEW_PERSONS else 1))
    for field in sorted((past.fields[name] for name in policy.quasi), key=_rank):
        for level, labels in enumerate(field.labels, policy.columns[field.name].level):
            more = rows * len(labels)
            if len(labels) > 1 and more <= room:
                by.append(f"{field.name}:{level}")
                rows = more
                break
    return by


def _rank(field: Field) -> tuple[bool, int, str]:
    return not is_age_or_sex(field.name), field.size, field.name


DEFAULT_EPSILON = 1.0
"""Where the policy names none."""


def missing_kernel_path(policy: Policy) -> Path | None:
    """The kernel's file that the policy names, unless it is there."""
    named = policy.prior.kernel if policy.prior is not None else None
    path = None if named is None else policy.path(named.file)
    return None if path is None or path.exists() else path


def fit_warmup(policy: Policy, table: pa.Table, rng: np.random.Generator) -> FittedPrior:
    """The prior of the records that waited.

    Guarantee: that of `fit_released`, with `prior.by` at its published levels, or columns of its own choice, and the policy's epsilon; with a kernel where the policy
    names a file for it that is not there yet. The records are released under this prior afterwards.
    """
    settings = policy.prior or PriorSettings()
    return fit_on_release(
        table,
        policy,
        l=policy.l_of("stream"),
        by=settings.by or None,
        epsilon=settings.epsilon or DEFAULT_EPSILON,
        kernel=missing_kernel_path(policy) is not None,
        rng=rng,
    )
