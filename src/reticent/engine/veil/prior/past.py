"""The past as codes, one record per person, and what is counted on it, each with noise for its share of epsilon."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from reticent.arrays import Floats, Int64s, Integers
from reticent.engine.veil.domain import Domain
from reticent.engine.veil.events import Trajectories
from reticent.engine.veil.prior.fields import Field, choose_domain, published_fields
from reticent.engine.veil.prior.kernel import Kernel, fit_few, fit_kernel
from reticent.engine.veil.prior.noise import add_noise, noise_floor
from reticent.engine.veil.prior.prior import Prior, nudge_shares
from reticent.engine.veil.prior.strata import MAX_STRATA, Split, shrink_shares, strata
from reticent.errors import DataError, GuaranteeError, PolicyError
from reticent.policy import Policy
from reticent.policy.cells import encode_cells

RECORDS_PER_CANDIDATE = 5
"""Fewest records of a stratum per candidate: a smaller stratum is not split off, whatever it seems to gain."""

PERSONS_PER_CANDIDATE = 40
"""Fewest persons of the past per candidate for a prior."""

SIZES_SHARE, KERNEL_SHARE = 0.1, 0.3
"""Shares of epsilon for the sizes of fixed strata and for the kernel; the counts take the rest."""
FEW_PERSONS = 5_000
"""With fewer persons, noise decides how many values can be distinguished."""

# Shares of epsilon for the domain, by the least number of persons.
_DOMAIN_SHARES = ((FEW_PERSONS, 0.1), (1_000, 0.3), (0, 0.4))

KERNEL_MIN_PERSONS = 200
"""Fewest persons with two events for a kernel."""

# Fewest values to offer.
_MIN_VALUES = 2
# A cell with fewer records means as little as an empty one, even where the past is public.
_MIN_CELL_RECORDS = 3
# Factors on the least count of an offered value: the noise of its own count then rarely removes it again.
_COUNT_MARGIN, _COUNT_MARGIN_OF_FEW = 1.5, 4.0
# Omission rate beyond which a stratum has too few persons to tell which values are rare.
_MAX_OMISSION_RATE = 0.1
# Records of a value in an average stratum, if strata have so many records per candidate; rarer values are merged.
_RECORDS_PER_VALUE, _AVERAGE_PER_CANDIDATE = 4, 100


def _domain_share(persons: int) -> float:
    return next(share for least, share in _DOMAIN_SHARES if persons >= least)


@dataclass(frozen=True, repr=False)
class Past:
    """The past or a part of it as codes, one record per person, and how to count it.

    `share` is the part's share of the persons: noise and thresholds shrink with it, so that a part is as noisy as the whole.
    `all_persons` is the number of all persons, `kernel_share` the share of epsilon for the kernel, `totals` noisy counts of the domain.
    """

    domain: Domain
    fields: dict[str, Field]
    by: tuple[Field, ...]
    values: Integers
    has_fixed_levels: bool
    l: int
    epsilon: float | None
    totals: Floats
    all_persons: int
    kernel_share: float = 0.0
    share: float = 1.0

    def with_columns(self, by: Sequence[str], policy: Policy) -> Past:
        """Return the past conditioned on the given columns, each with its level."""
        columns = tuple(_field_of(self.fields, policy, item) for item in by)
        return replace(self, by=columns, has_fixed_levels=bool(columns))

    def take(self, at: Integers) -> Past:
        """Return the persons at the given positions."""
        fields = {name: field.take(at) for name, field in self.fields.items()}
        by = tuple(field.take(at) for field in self.by)
        return replace(self, fields=fields, by=by, values=self.values[at], share=len(at) / self.persons)

    @property
    def persons(self) -> int:
        """The number of persons."""
        return len(self.values)

    @property
    def count_epsilon(self) -> float | None:
        """The epsilon of the counts."""
        spent = _domain_share(self.all_persons) + SIZES_SHARE * self.has_fixed_levels + self.kernel_share
        return None if self.epsilon is None else self.epsilon * (1 - spent) / self.share

    @property
    def kernel_epsilon(self) -> float | None:
        """The epsilon of the kernel."""
        return None if self.epsilon is None else self.epsilon * KERNEL_SHARE / self.share

    @property
    def min_records(self) -> float:
        """Fewest records of a stratum."""
        return RECORDS_PER_CANDIDATE * self.l * self.share

    @property
    def min_count(self) -> float:
        """Fewest records of a value in a stratum that offers it."""
        return max(noise_floor(self.count_epsilon), _MIN_CELL_RECORDS * self.share)


def past_of(
    table: pa.Table,
    policy: Policy,
    l: int,
    by: Sequence[str] | None,
    epsilon: float | None,
    rng: np.random.Generator,
    kernel_share: float = 0.0,
) -> Past:
    """Build the past from a table with one record per person; conditioned on all published columns if `by` is None.

    `epsilon` is None where the past is public; `kernel_share` is its share for the kernel.

    Raises:
        DataError: there are too few persons.
    """
    persons, sensitive = table.num_rows, policy.sensitive[0]
    if persons < PERSONS_PER_CANDIDATE * l:
        raise DataError(
            f"The past has {persons} persons; a prior for l = {l} needs at least {PERSONS_PER_CANDIDATE * l}.",
            hint="Provide more past data, or public statistics as prior.csv.",
        )
    codes, values = encode_cells(table.column(sensitive))
    spent = None if epsilon is None else _domain_share(persons) * epsilon
    left = (
        None
        if epsilon is None
        else epsilon * (1 - _domain_share(persons) - SIZES_SHARE * (persons >= FEW_PERSONS) - kernel_share)
    )
    counts = add_noise(np.bincount(codes, minlength=len(values)), spent, rng)
    margin = _COUNT_MARGIN if persons >= _DOMAIN_SHARES[1][0] else _COUNT_MARGIN_OF_FEW
    least = max(
        noise_floor(spent),
        margin * noise_floor(left),
        _RECORDS_PER_VALUE * min(MAX_STRATA, persons / (_AVERAGE_PER_CANDIDATE * l)),
    )
    domain = choose_domain(values, counts, policy, sensitive, least=least, noise=noise_floor(spent) / 2)
    totals = np.asarray(np.bincount(domain.encode(values), counts, len(domain)), dtype=np.float64)
    fields = published_fields(table, policy, (*policy.quasi, *policy.plain))
    columns = tuple(fields.values()) if by is None else tuple(_field_of(fields, policy, item) for item in by)
    fixed = bool(by) and all(":" in item for item in by or ())
    codes = domain.encode(table.column(sensitive))
    return Past(domain, fields, columns, codes, fixed, l, epsilon, totals, persons, kernel_share)


def _field_of(fields: dict[str, Field], policy: Policy, item: str) -> Field:
    name, _, level = item.partition(":")
    if name not in fields:
        raise PolicyError(f"by: '{name}' is not a published column.", hint="Name quasi or plain columns.")
    return _at_level(fields[name], level, policy.columns[name].level) if level else fields[name]


def _at_level(field: Field, level: str, lowest: int) -> Field:
    highest = lowest + len(field.levels) - 1
    if not level.isdigit() or not lowest <= int(level) <= highest:
        raise PolicyError(
            f"by: column '{field.name}' can be conditioned on at the levels {lowest} to {highest}.",
            hint=f"Write one of these levels, such as {field.name}:{lowest}.",
        )
    nodes, labels = field.levels[int(level) - lowest], field.labels[int(level) - lowest]
    return Field(field.name, nodes[field.codes], (np.arange(len(labels), dtype=np.int32),), (labels,))


def sizes_of(past: Past, rng: np.random.Generator) -> Integers:
    """Count the persons of each combination of nodes, with noise."""
    shape = tuple(field.size for field in past.by)
    flat = np.ravel_multi_index(tuple(field.codes for field in past.by), shape)
    counts = np.bincount(flat, minlength=int(np.prod(shape)))
    return add_noise(counts, None if past.epsilon is None else SIZES_SHARE * past.epsilon, rng).reshape(shape)


@dataclass(frozen=True, repr=False)
class CountedPrior:
    """A prior, the noisy counts behind it, and the omission rate estimated from them."""

    prior: Prior
    counts: Int64s
    omission_rate: float


def count_prior(past: Past, tree: Split | None, rng: np.random.Generator) -> CountedPrior:
    """Count the prior of a tree with noise, shrunk toward the parent stratum; values that are then too rare are not offered."""
    conditions, size = strata(tree), len(past.domain)
    empty = Prior(past.domain.labels, conditions, np.empty((0, size)), np.empty(0))
    flat = empty.assign_strata(past.fields, past.persons).astype(np.int64) * size + past.values
    table = np.bincount(flat, minlength=len(conditions) * size).reshape(len(conditions), size)
    return _build_prior(past, tree, add_noise(table, past.count_epsilon, rng), past.min_count)


def merge_strata(past: Past, counted: CountedPrior) -> CountedPrior:
    """Merge all strata into one with the same noisy counts: no further epsilon is spent, but the noise adds up."""
    counts = counted.counts.sum(axis=0, keepdims=True)
    return _build_prior(past, None, counts, past.min_count * math.sqrt(len(counted.counts)))


def _build_prior(past: Past, tree: Split | None, counts: Int64s, least: float) -> CountedPrior:
    shares = shrink_shares(tree, counts.astype(np.float64))
    sizes = np.maximum(counts, 0).sum(axis=1).astype(np.float64)
    offered = shares * sizes[:, None] >= least
    # A stratum without a frequent value offers its most frequent one: the line is never empty.
    offered[np.arange(len(counts)), shares.argmax(axis=1)] = True
    if np.count_nonzero(offered.any(axis=0)) < _MIN_VALUES:
        raise GuaranteeError(
            f"With this noise {past.persons:,} persons are too few to distinguish two sensitive values.",
            hint="Provide more persons, a hierarchy or a larger epsilon; or public statistics as prior.csv.",
        )
    omitted = np.where(offered, 0, shares).sum(axis=1)
    omission_rate = float(sizes @ omitted / max(sizes.sum(), 1))
    # A tiny stratum would offer one value to all: it also offers what is frequent overall, by the parent's shares.
    offered[omitted > _MAX_OMISSION_RATE] |= counts.sum(axis=0) >= least * math.sqrt(len(counts))
    shares = np.where(offered, shares, 0)
    shares = np.array([nudge_shares(each, past.l) for each in shares / shares.sum(axis=1, keepdims=True)])
    return CountedPrior(Prior(past.domain.labels, strata(tree), shares, sizes), counts, omission_rate)


def fit_transitions(
    past: Past,
    paths: Trajectories,
    values: Integers,
    prior: Prior,
    rng: np.random.Generator,
    persons: Integers | None = None,
    *,
    few: float | None = None,
) -> Kernel:
    """Fit the kernel to one transition of each of some (or all) persons; `few` is the epsilon for the kernel of few persons."""
    shares = prior.sizes @ prior.shares / prior.sizes.sum()
    before, after = paths.sample_step(values, np.arange(len(paths)) if persons is None else persons, rng)
    parents = past.domain.parents()
    if few is not None:
        return fit_few(before, after, parents, shares, epsilon=few, rng=rng)
    return fit_kernel(before, after, parents, shares, epsilon=past.kernel_epsilon, rng=rng)
