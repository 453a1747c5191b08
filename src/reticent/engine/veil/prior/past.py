"""The past as codes, one record per person, and what is counted of it: domain, strata, shares, steps; each with noise for its part of epsilon."""

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
"""Records of a row per candidate: below it no question is asked, whatever it seems to gain."""

PERSONS_PER_CANDIDATE = 40
"""Persons of the past per candidate, below whom no prior is fitted."""

SIZES_SHARE, KERNEL_SHARE = 0.1, 0.3
"""Of epsilon: the sizes of fixed strata, the kernel; the counts take what is left."""
FEW_PERSONS = 5_000
"""Persons below whom noise decides how many values can be told apart."""

# Of epsilon, for the domain, from so many persons on.
_DOMAIN_SHARES = ((FEW_PERSONS, 0.1), (1_000, 0.3), (0, 0.4))

KERNEL_MIN_PERSONS = 200
"""Persons with two events below whom there is no kernel."""

# Values that are offered, at least.
_MIN_VALUES = 2
# A cell with fewer records says as little as one that was never seen, even where the past is public.
_MIN_CELL_RECORDS = 3
# Of what a count must be to be offered: a value that has as much is hardly lost again to the noise of its own count.
_COUNT_MARGIN, _COUNT_MARGIN_OF_FEW = 1.5, 4.0
# Share of a row's persons whose value would not be offered, beyond which too few stand in it to say what is rare.
_MAX_OMISSION_RATE = 0.1
# Records of a value in an average row, if rows have so many records per candidate; rarer values are not worth a place.
_RECORDS_PER_VALUE, _AVERAGE_PER_CANDIDATE = 4, 100


def _domain_share(persons: int) -> float:
    return next(share for least, share in _DOMAIN_SHARES if persons >= least)


@dataclass(frozen=True, repr=False)
class Past:
    """The past or a part of it as codes, one record per person, and how to count it.

    `share` is the part's share of the persons: noise and thresholds shrink with it, so that a part is as noisy as the whole.
    `whole` is the number of all persons, `followed` the share of epsilon that goes to how values follow one another; `totals` are noisy counts of the domain.
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
        """The same with told columns to condition on, each with its level."""
        asked = tuple(_field_of(self.fields, policy, item) for item in by)
        return replace(self, by=asked, has_fixed_levels=bool(asked))

    def take(self, at: Integers) -> Past:
        """Some of the persons."""
        fields = {name: field.take(at) for name, field in self.fields.items()}
        by = tuple(field.take(at) for field in self.by)
        return replace(self, fields=fields, by=by, values=self.values[at], share=len(at) / self.persons)

    @property
    def persons(self) -> int:
        """Their number."""
        return len(self.values)

    @property
    def count_epsilon(self) -> float | None:
        """Of the noise on counts."""
        spent = _domain_share(self.all_persons) + SIZES_SHARE * self.has_fixed_levels + self.kernel_share
        return None if self.epsilon is None else self.epsilon * (1 - spent) / self.share

    @property
    def kernel_epsilon(self) -> float | None:
        """Of the noise on the kernel."""
        return None if self.epsilon is None else self.epsilon * KERNEL_SHARE / self.share

    @property
    def min_records(self) -> float:
        """Fewest records of a row."""
        return RECORDS_PER_CANDIDATE * self.l * self.share

    @property
    def min_count(self) -> float:
        """Fewest records of a value in a row that offers it."""
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
    """The past of a table with one record per person, for `l` candidates each; conditioned on all published columns if `by` is None.

    `epsilon` is None where the past is public; the share `followed` of it goes to how values follow one another.

    Raises:
        DataError: there are too few persons.
    """
    persons, sensitive = table.num_rows, policy.sensitive[0]
    if persons < PERSONS_PER_CANDIDATE * l:
        raise DataError(
            f"The past has {persons} persons; a prior for l = {l} needs at least {PERSONS_PER_CANDIDATE * l}.",
            hint="Give more of the past, or public statistics as prior.csv.",
        )
    codes, values = encode_cells(table.column(sensitive))
    spent = None if epsilon is None else _domain_share(persons) * epsilon
    left = (
        None
        if epsilon is None
        else epsilon * (1 - _domain_share(persons) - SIZES_SHARE * (persons >= FEW_PERSONS) - kernel_share)
    )
    counts = add_noise(np.bincount(codes, minlength=len(values)), spent, rng)
    surely = _COUNT_MARGIN if persons >= _DOMAIN_SHARES[1][0] else _COUNT_MARGIN_OF_FEW
    least = max(
        noise_floor(spent),
        surely * noise_floor(left),
        _RECORDS_PER_VALUE * min(MAX_STRATA, persons / (_AVERAGE_PER_CANDIDATE * l)),
    )
    domain = choose_domain(values, counts, policy, sensitive, least=least, noise=noise_floor(spent) / 2)
    totals = np.asarray(np.bincount(domain.encode(values), counts, len(domain)), dtype=np.float64)
    fields = published_fields(table, policy, (*policy.quasi, *policy.plain))
    asked = tuple(fields.values()) if by is None else tuple(_field_of(fields, policy, item) for item in by)
    told = bool(by) and all(":" in item for item in by or ())
    return Past(
        domain, fields, asked, domain.encode(table.column(sensitive)), told, l, epsilon, totals, persons, kernel_share
    )


def _field_of(fields: dict[str, Field], policy: Policy, item: str) -> Field:
    name, _, level = item.partition(":")
    if name not in fields:
        raise PolicyError(f"by: there is no published column '{name}'.", hint="Name quasi or plain columns.")
    return _at_level(fields[name], level, policy.columns[name].level) if level else fields[name]


def _at_level(field: Field, level: str, lowest: int) -> Field:
    highest = lowest + len(field.levels) - 1
    if not level.isdigit() or not lowest <= int(level) <= highest:
        raise PolicyError(
            f"by: column '{field.name}' has the levels {lowest} to {highest} to condition on.",
            hint=f"Write one of them, such as {field.name}:{lowest}.",
        )
    nodes, labels = field.levels[int(level) - lowest], field.labels[int(level) - lowest]
    return Field(field.name, nodes[field.codes], (np.arange(len(labels), dtype=np.int32),), (labels,))


def sizes_of(past: Past, rng: np.random.Generator) -> Integers:
    """Persons of each combination of nodes, with noise."""
    shape = tuple(field.size for field in past.by)
    flat = np.ravel_multi_index(tuple(field.codes for field in past.by), shape)
    counts = np.bincount(flat, minlength=int(np.prod(shape)))
    return add_noise(counts, None if past.epsilon is None else SIZES_SHARE * past.epsilon, rng).reshape(shape)


@dataclass(frozen=True, repr=False)
class CountedPrior:
    """A prior, the noisy counts behind it, and which share of the values it does not offer, as far as they say."""

    prior: Prior
    counts: Int64s
    omission_rate: float


def count_prior(past: Past, tree: Split | None, rng: np.random.Generator) -> CountedPrior:
    """The prior of a tree: counts with noise, drawn toward the stratum above; what is then too rare is not offered."""
    rows, size = strata(tree), len(past.domain)
    empty = Prior(past.domain.labels, rows, np.empty((0, size)), np.empty(0))
    flat = empty.assign_strata(past.fields, past.persons).astype(np.int64) * size + past.values
    table = np.bincount(flat, minlength=len(rows) * size).reshape(len(rows), size)
    return _build_prior(past, tree, add_noise(table, past.count_epsilon, rng), past.min_count)


def merge_strata(past: Past, counted: CountedPrior) -> CountedPrior:
    """All rows as one, by the same noisy counts: nothing more is spent, and their noise adds up."""
    counts = counted.counts.sum(axis=0, keepdims=True)
    return _build_prior(past, None, counts, past.min_count * math.sqrt(len(counted.counts)))


def _build_prior(past: Past, tree: Split | None, counts: Int64s, least: float) -> CountedPrior:
    shares = shrink_shares(tree, counts.astype(np.float64))
    sizes = np.maximum(counts, 0).sum(axis=1).astype(np.float64)
    seen = shares * sizes[:, None] >= least
    # A row in which nothing is frequent offers its most frequent value: never an empty line.
    seen[np.arange(len(counts)), shares.argmax(axis=1)] = True
    if np.count_nonzero(seen.any(axis=0)) < _MIN_VALUES:
        raise GuaranteeError(
            f"With this noise {past.persons:,} persons do not tell two sensitive values apart.",
            hint="Give more persons, a hierarchy or a larger epsilon; or public statistics as prior.csv.",
        )
    lost = np.where(seen, 0, shares).sum(axis=1)
    unseen = float(sizes @ lost / max(sizes.sum(), 1))
    # A row of hardly anybody would offer one value to all: its shares are those above it, so that what is frequent everywhere is offered.
    seen[lost > _MAX_OMISSION_RATE] |= counts.sum(axis=0) >= least * math.sqrt(len(counts))
    shares = np.where(seen, shares, 0)
    shares = np.array([nudge_shares(row, past.l) for row in shares / shares.sum(axis=1, keepdims=True)])
    return CountedPrior(Prior(past.domain.labels, strata(tree), shares, sizes), counts, unseen)


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
    """The kernel of some persons, or of everybody, from one transition of each; `few` is the epsilon of one for few persons."""
    shares = prior.sizes @ prior.shares / prior.sizes.sum()
    before, after = paths.sample_step(values, np.arange(len(paths)) if persons is None else persons, rng)
    parents = past.domain.parents()
    if few is not None:
        return fit_few(before, after, parents, shares, epsilon=few, rng=rng)
    return fit_kernel(before, after, parents, shares, epsilon=past.kernel_epsilon, rng=rng)
