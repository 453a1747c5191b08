"""From the past to a prior: domain, strata, counts with noise, and what a reader would make of it.

The past's persons are shuffled into three parts. The first chooses the strata, and a prior counted on it is read by a
reader trained on the second, over the veiled persons of the third. The prior that is handed out is then counted on all
of them: it is a little better than the one that was measured.

Guarantee (to the persons of the past): of epsilon a tenth goes to the domain, a tenth to the sizes of fixed strata, three
tenths to the kernel where persons have several records, the rest to the counts; each is a table with one record, or one transition,
per person (see `noise`).

Not covered: strata that were grown, and the measured figures: they are means and choices over the past sample, without
noise. Where the past is the data to be protected themselves, `fit_released` keeps to told levels and measures nothing.

Cost: the reader's training takes most of it: half a minute for 100,000 persons and 100 values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from reticent.engine.spellings import spelled
from reticent.engine.veil.prior.domain import choose_domain
from reticent.engine.veil.prior.fields import Field, coded, level_of, published
from reticent.engine.veil.prior.follow import Followed, follow
from reticent.engine.veil.prior.kernel import Kernel, Misfit, OwnKernel, fit_kernel, misfit
from reticent.engine.veil.prior.measure import Measures, Score, measure
from reticent.engine.veil.prior.noise import floor, noised, scale
from reticent.engine.veil.prior.paths import Paths
from reticent.engine.veil.prior.prior import Prior, apart
from reticent.engine.veil.prior.reader import sample
from reticent.engine.veil.prior.strata import ROWS, Growth, Split, fixed, grow, shrunk, strata
from reticent.errors import DataError, GuaranteeError, PolicyError

if TYPE_CHECKING:
    import numpy.typing as npt

    from reticent.engine.veil.domain import Domain
    from reticent.policy import Policy

    Codes = npt.NDArray[np.integer]

PER_CANDIDATE = 5
"""Records of a row per candidate: below it no question is asked, whatever it seems to gain."""

SMALLEST = 40
"""Persons of the past per candidate, below whom no prior is fitted."""

UNSEEN = 0.1
"""Largest share of truths that may not be offered."""

# A cell with fewer records says as little as one that was never seen, even where the past is public.
_SEEN = 3
# Records of a value in an average row, if rows have so many records per candidate; rarer values are not worth a place.
_EACH, _AVERAGE = 4, 100
# Parts of the past: strata and counts of the measured prior; the reader; the rest is held out.
_PARTS = (0.5, 0.8)
# Of epsilon: the domain, the sizes of fixed strata, the kernel; the counts take what is left.
_DOMAIN, _SIZES, _KERNEL = 0.1, 0.1, 0.3
# Persons with two events below whom there is no kernel, and held-out ones below whom nothing is said of it.
_FOLLOWED, _JUDGED = 200, 30
# Events after which a reader who follows persons is measured.
_AFTER = (2, 4)
# Every third person of the first part judges the strata that the others count.
_JUDGES = 3


@dataclass(frozen=True)
class Coarser:
    """What would be gained if the most telling column were published one level coarser, or not at all."""

    column: str
    dropped: bool
    before: Score
    after: Score


@dataclass(frozen=True, repr=False)
class FittedKernel:
    """How values follow one another, and what it is worth against readers who know better.

    Attributes:
        kernel: of all persons of the past.
        persons: persons with several events.
        misfit: what a finer kernel gains per event, on held-out persons; None with too few of them.
        followed: what a reader with that kernel makes of held-out persons after some events.
    """

    kernel: Kernel
    persons: int
    misfit: Misfit | None
    followed: tuple[Followed, ...]

    def __repr__(self) -> str:
        return f"FittedKernel({self.kernel!r}, {self.persons} persons)"


@dataclass(frozen=True, repr=False)
class FittedPrior:
    """A prior with its domain, what it cost its persons, and what it is worth.

    Attributes:
        domain: the values that can be offered.
        prior: their shares, row by row.
        measures: what an informed reader makes of it; None where the records are those to be released.
        coarser: what she would make of a coarser publication; None where there is nothing to coarsen.
        kernel: how values follow one another; None where hardly anybody has several records.
        persons: persons of the past.
        epsilon: spent on them; None where the past is public.
    """

    domain: Domain
    prior: Prior
    measures: Measures | None
    coarser: Coarser | None
    kernel: FittedKernel | None
    persons: int
    epsilon: float | None

    def __repr__(self) -> str:
        return f"FittedPrior({self.prior!r}, {self.measures!r})"


@dataclass(frozen=True)
class _Past:
    """The past or a part of it as codes, one record per person, and how to count it.

    `share` is the part's share of the persons: noise and thresholds shrink with it, so that a part is as noisy as the whole.
    """

    domain: Domain
    fields: dict[str, Field]
    by: tuple[Field, ...]
    values: Codes
    told: bool
    l: int
    epsilon: float | None
    kernel: bool
    share: float = 1.0

    def part(self, at: Codes) -> _Past:
        fields = {name: field.take(at) for name, field in self.fields.items()}
        by = tuple(field.take(at) for field in self.by)
        return replace(self, fields=fields, by=by, values=self.values[at], share=len(at) / self.persons)

    @property
    def persons(self) -> int:
        return len(self.values)

    @property
    def count_epsilon(self) -> float | None:
        """Of the noise on counts."""
        spent = _DOMAIN + _SIZES * self.told + _KERNEL * self.kernel
        return None if self.epsilon is None else self.epsilon * (1 - spent) / self.share

    @property
    def kernel_epsilon(self) -> float | None:
        """Of the noise on the kernel."""
        return None if self.epsilon is None else self.epsilon * _KERNEL / self.share

    @property
    def least(self) -> float:
        """Fewest records of a row."""
        return PER_CANDIDATE * self.l * self.share

    @property
    def seen(self) -> float:
        """Fewest records of a value in a row that offers it."""
        return max(floor(self.count_epsilon), _SEEN * self.share)


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
    table = spelled(table, policy)
    paths = Paths.of(table, policy)
    firsts = table.take(pa.array(paths.firsts))
    follows = int((paths.lengths > 1).sum()) >= _FOLLOWED
    past = replace(_past(firsts, policy, sensitive, l, by, epsilon, rng), kernel=follows)
    parts = np.split(rng.permutation(past.persons), [int(share * past.persons) for share in _PARTS])
    tree, measured, measures = _trial(past, parts, rng)
    prior = _count(past, tree, rng)
    if measures.eta > UNSEEN:
        raise GuaranteeError(
            f"Column '{sensitive}': {measures.eta:.0%} of the values would not be offered, more than {UNSEEN:.0%}; the past "
            f"of {past.persons} persons is too small for {len(past.domain)} values in {len(prior.strata)} rows.",
            hint="Give a coarser hierarchy, fewer or coarser columns to condition on, more of the past, or a larger epsilon.",
        )
    values = past.domain.encode(table.column(sensitive))
    kernel = _kernel(past, paths, values, parts, (measured, prior), rng) if follows else None
    coarser = _coarser(past, measures, parts, rng)
    return FittedPrior(past.domain, prior, measures, coarser, kernel, past.persons, epsilon)


def fit_released(
    table: pa.Table,
    policy: Policy,
    sensitive: str,
    *,
    l: int,
    by: Sequence[str] = (),
    epsilon: float,
    rng: np.random.Generator,
) -> FittedPrior:
    """Counts a prior on the very records that it will veil, or on the first of a stream: everything costs epsilon.

    Guarantee (to these persons): the prior is epsilon-differentially private in their records, so that a weight a becomes at
    most a e^epsilon / (a e^epsilon + 1 - a). Strata are told, not grown; nothing is measured, since figures would cost, too.

    Not covered: that a value occurs at all: one with a single record is named with a probability below 1 %.

    Args:
        table: the records; of a person with several the first counts.
        policy: roles, hierarchies, published levels.
        sensitive: the sensitive column.
        l: candidates per person.
        by: columns to condition on, at their published level or at one that is told, as `age:2`.
        epsilon: of the noise.
        rng: of the noise.
    """
    table = spelled(table, policy)
    firsts = table.take(pa.array(Paths.of(table, policy).firsts))
    told = [item if ":" in item else f"{item}:{_published_level(policy, item)}" for item in by]
    past = _past(firsts, policy, sensitive, l, told, epsilon, rng)
    prior = _count(past, fixed(past.by, _sizes(past, rng), past.least) if told else None, rng)
    return FittedPrior(past.domain, prior, None, None, None, past.persons, epsilon)


def _published_level(policy: Policy, name: str) -> int:
    return level_of(policy, name) if name in policy.columns else 0


def _past(
    table: pa.Table,
    policy: Policy,
    sensitive: str,
    l: int,
    by: Sequence[str] | None,
    epsilon: float | None,
    rng: np.random.Generator,
) -> _Past:
    persons = table.num_rows
    if persons < SMALLEST * l:
        raise DataError(
            f"The past has {persons} persons; a prior for l = {l} needs at least {SMALLEST * l}.",
            hint="Give more of the past, or public statistics as prior.csv.",
        )
    values, codes = coded(table.column(sensitive))
    spent = None if epsilon is None else _DOMAIN * epsilon
    counts = noised(np.bincount(codes, minlength=len(values)), spent, rng)
    least = max(floor(spent), _EACH * min(ROWS, persons / (_AVERAGE * l)))
    values_offered = choose_domain(values, counts, policy, sensitive, least=least)
    fields = published(table, policy, (*policy.quasi, *policy.plain))
    asked = tuple(fields.values()) if by is None else tuple(_asked(fields, policy, item) for item in by)
    told = by is not None and all(":" in item for item in by)
    codes = values_offered.encode(table.column(sensitive))
    return _Past(values_offered, fields, asked, codes, told, l, epsilon, kernel=False)


def _asked(fields: dict[str, Field], policy: Policy, item: str) -> Field:
    name, _, level = item.partition(":")
    if name not in fields:
        raise PolicyError(f"by: there is no published column '{name}'.", hint="Name quasi or plain columns.")
    return _at_level(fields[name], level, level_of(policy, name)) if level else fields[name]


def _at_level(field: Field, level: str, lowest: int) -> Field:
    highest = lowest + len(field.levels) - 1
    if not level.isdigit() or not lowest <= int(level) <= highest:
        raise PolicyError(
            f"by: column '{field.name}' has the levels {lowest} to {highest} to condition on.",
            hint=f"Write one of them, such as {field.name}:{lowest}.",
        )
    nodes, labels = field.levels[int(level) - lowest], field.labels[int(level) - lowest]
    return Field(field.name, nodes[field.codes], (np.arange(len(labels), dtype=np.int32),), (labels,))


def _tree(past: _Past, part: _Past, rng: np.random.Generator) -> Split | None:
    if past.told:
        return fixed(past.by, _sizes(past, rng), past.least)
    judged = np.arange(part.persons) % _JUDGES == 0
    counted = replace(part, share=part.share * (1 - 1 / _JUDGES))
    growth = Growth(least=counted.least, noise=2 * scale(counted.count_epsilon) ** 2, seen=counted.seen)
    return grow(part.by, part.values, len(past.domain), judged, growth)


def _sizes(past: _Past, rng: np.random.Generator) -> Codes:
    """Persons of each combination of nodes, with noise."""
    shape = tuple(field.size for field in past.by)
    flat = np.ravel_multi_index(tuple(field.codes for field in past.by), shape)
    counts = np.bincount(flat, minlength=int(np.prod(shape)))
    return noised(counts, None if past.epsilon is None else _SIZES * past.epsilon, rng).reshape(shape)


def _count(past: _Past, tree: Split | None, rng: np.random.Generator) -> Prior:
    """The prior of a tree: counts with noise, drawn toward the stratum above; what is then too rare is not offered."""
    rows, size = strata(tree), len(past.domain)
    empty = Prior(past.domain.labels, rows, np.empty((0, size)), np.empty(0))
    flat = empty.rows(past.fields, past.persons).astype(np.int64) * size + past.values
    table = np.bincount(flat, minlength=len(rows) * size).reshape(len(rows), size)
    counts = noised(table, past.count_epsilon, rng)
    shares = shrunk(tree, counts.astype(np.float64))
    sizes = np.maximum(counts, 0).sum(axis=1).astype(np.float64)
    seen = shares * sizes[:, None] >= past.seen
    # A row in which nothing is frequent offers its most frequent value: never an empty line.
    seen[np.arange(len(rows)), shares.argmax(axis=1)] = True
    shares = np.where(seen, shares, 0)
    shares = np.array([apart(row, past.l) for row in shares / shares.sum(axis=1, keepdims=True)])
    return Prior(past.domain.labels, rows, shares, sizes)


def _trial(past: _Past, parts: Sequence[Codes], rng: np.random.Generator) -> tuple[Split | None, Prior, Measures]:
    """Strata from the first part, and what a reader who knows the second makes of the third."""
    first, held = past.part(parts[0]), past.part(parts[2])
    tree = _tree(past, first, rng)
    prior = _count(first, tree, rng)
    rows = prior.rows(past.fields, past.persons)
    seen = sample(past.fields.values(), rows, past.values, strata=len(prior.strata))
    measures = measure(prior, held.fields.values(), seen.take(parts[1]), seen.take(parts[2]), l=past.l, rng=rng)
    return tree, prior, measures


def _kernel(
    past: _Past,
    paths: Paths,
    values: Codes,
    parts: Sequence[Codes],
    priors: tuple[Prior, Prior],
    rng: np.random.Generator,
) -> FittedKernel:
    """The kernel of all persons; one of the first part is judged on the third by a reader who counted all others."""
    parents = past.domain.parents()

    def fitted(some: _Past, persons: Codes, prior: Prior) -> Kernel:
        shares = prior.sizes @ prior.shares / prior.sizes.sum()
        before, after = paths.one_step(values, persons, rng)
        return fit_kernel(before, after, parents, shares, epsilon=some.kernel_epsilon, rng=rng)

    prior, whole = priors
    trial = fitted(past.part(parts[0]), parts[0], prior)
    own = OwnKernel(paths.steps(values, np.concatenate(parts[:2]))[1:], len(past.domain))
    rows = prior.rows(past.fields, past.persons)
    who, before, after = paths.steps(values, parts[2])
    wrong = misfit(trial, prior.shares, own, (rows[who], before, after)) if len(who) >= _JUDGED else None
    followed = []
    for events in _AFTER:
        persons = parts[2][paths.lengths[parts[2]] >= events]
        truths = values[paths.order[paths.starts[persons][:, None] + np.arange(events)]]
        if len(persons) >= _JUDGED:
            followed.append(follow(prior, trial, own, rows[persons], truths, l=past.l, rng=rng))
    everybody = np.arange(past.persons)
    # What is handed out rests on the prior that is handed out: the trial's noise is in no account.
    return FittedKernel(fitted(past, everybody, whole), int((paths.lengths > 1).sum()), wrong, tuple(followed))


def _coarser(past: _Past, measures: Measures, parts: Sequence[Codes], rng: np.random.Generator) -> Coarser | None:
    name = next((one.column for one in measures.tells if one.nats), None)
    if name is None or past.told:
        return None
    field = past.fields[name].coarser()
    by = tuple(field if one.name == name else one for one in past.by)
    _, _, other = _trial(replace(past, fields=past.fields | {name: field}, by=by), parts, rng)
    return Coarser(name, not field.levels, other.before, other.after)
