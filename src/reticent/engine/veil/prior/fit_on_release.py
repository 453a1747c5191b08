"""Count a prior on the records that it will veil, or on the first records of a stream: everything costs epsilon.

Guarantee (to these persons, against an attacker who knows all other records): prior and kernel together are
epsilon-differentially private, so that a weight a becomes at most a e^epsilon / (a e^epsilon + 1 - a). Strata are given, or chosen
by noisy counts; nothing is measured, because figures would cost epsilon too.

Not covered: that a value occurs at all: a value with a single record is named with a probability below 1 %. Which nodes of the
published columns occur.

A stream without a past holds its first records back once, and counts them.

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

# Share of epsilon: the test whether enough persons have several records for a kernel.
_KERNEL_TEST_SHARE = 0.05
# Share of epsilon for the kernel of few persons, who need the rest for their values.
_FEW_KERNEL_SHARE = 0.1
# Omission rates: limit for the columns that are chosen here, and limit for the prior.
_MAX_CHOSEN_OMISSION, _MAX_OMISSION_RATE = 0.06, 0.1
# With few persons the counts that decide are mostly noise, so this many times the persons are required.
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
    """Count a prior on the records to be released.

    Args:
        table: the records; the first record of a person is counted.
        policy: roles, hierarchies, published levels.
        l: candidates per person.
        by: columns to condition on, at their published level or at a given one, as `age:2`; None: as many as the number of
            persons supports, age and sex before others.
        epsilon: of the noise.
        kernel: also count transitions, where enough persons have several records; fewer than 5,000 persons get one stay
            probability for all values.
        rng: for the noise.

    Raises:
        GuaranteeError: the omission rate would be too high.
    """
    table = merge_variants(table, policy)
    paths, sensitive = Trajectories.of(table, policy), policy.sensitive[0]
    by, no_household = condition_columns(policy, by), policy.household is None
    kernel &= no_household
    several = add_noise(np.array([paths.has_several.sum()]), _KERNEL_TEST_SHARE * epsilon, rng) if kernel else [0]
    has_kernel = kernel and int(several[0]) >= KERNEL_MIN_PERSONS
    spent = _FEW_KERNEL_SHARE if len(paths) < FEW_PERSONS else KERNEL_SHARE
    kernel_share = _KERNEL_TEST_SHARE * kernel + spent * has_kernel
    past = past_of(table.take(pa.array(paths.firsts)), policy, l, (), epsilon, rng, kernel_share)
    past = past.with_columns(
        _choose_columns(past, policy) if by is None else [_with_level(policy, item) for item in by], policy
    )
    counted = count_prior(past, fixed_tree(past.by, sizes_of(past, rng), _min_persons(past)) if past.by else None, rng)
    if counted.omission_rate > _MAX_OMISSION_RATE and by is None:
        counted = merge_strata(past, counted)
    if counted.omission_rate > _MAX_OMISSION_RATE:
        raise GuaranteeError(
            f"Column '{sensitive}': the omission rate would be about {counted.omission_rate:.0%}, more than {_MAX_OMISSION_RATE:.0%}: "
            f"{past.persons:,} persons are too few for {len(past.domain)} values in {len(counted.prior.strata)} strata with this noise.",
            hint="Use a coarser hierarchy, fewer or coarser columns in --by, or a larger epsilon; or count past data.",
        )
    fitted_kernel = None
    if has_kernel:
        values = past.domain.encode(table.column(sensitive))
        few = spent * epsilon if len(paths) < FEW_PERSONS else None
        fitted_kernel = FittedKernel(fit_transitions(past, paths, values, counted.prior, rng, few=few), None, None, ())
    return FittedPrior(past.domain, counted.prior, None, None, fitted_kernel, past.persons, epsilon)


def _with_level(policy: Policy, item: str) -> str:
    return item if ":" in item or item not in policy.columns else f"{item}:{policy.columns[item].level}"


def _min_persons(past: Past) -> float:
    """Return the fewest persons of a stratum in which hardly any value is too rare, by the noisy totals."""
    totals = np.sort(np.maximum(past.totals, 0))
    shares = totals / max(totals.sum(), 1)
    rarest = shares[np.searchsorted(np.cumsum(shares), _MAX_CHOSEN_OMISSION)] if shares.any() else 1.0
    return float(max(past.min_records, past.min_count / rarest))


def _choose_columns(past: Past, policy: Policy) -> list[str]:
    """Choose columns, each at the finest level at which strata of equal size would have enough persons."""
    strata, by, min_persons = 1, [], _min_persons(replace(past, kernel_share=past.kernel_share + SIZES_SHARE))
    max_strata = min(MAX_STRATA, past.persons / min_persons / (_FEW_FACTOR if past.persons < FEW_PERSONS else 1))
    for field in sorted((past.fields[name] for name in policy.quasi), key=_rank):
        for level, labels in enumerate(field.labels, policy.columns[field.name].level):
            product = strata * len(labels)
            if len(labels) > 1 and product <= max_strata:
                by.append(f"{field.name}:{level}")
                strata = product
                break
    return by


def _rank(field: Field) -> tuple[bool, int, str]:
    return not is_age_or_sex(field.name), field.size, field.name


DEFAULT_EPSILON = 1.0
"""Used where the policy names none."""


def missing_kernel_path(policy: Policy) -> Path | None:
    """Return the path of the kernel that the policy names, unless the file exists."""
    settings = policy.prior.kernel if policy.prior is not None else None
    path = None if settings is None else policy.path(settings.file)
    return None if path is None or path.exists() else path


def fit_warmup(policy: Policy, table: pa.Table, rng: np.random.Generator) -> FittedPrior:
    """Fit the prior on the first records of a stream, which are released under it afterwards.

    Guarantee: as `fit_on_release`, with `prior.by` at its published levels (or chosen columns) and the policy's epsilon; with a
    kernel where the policy names a file that does not exist yet.
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
