"""What comes of fitting a prior: the prior, what it cost its persons, and what it is worth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from reticent.engine.veil.prior.prior import apart

if TYPE_CHECKING:
    from reticent.engine.veil.domain import Domain
    from reticent.engine.veil.prior.follow import Followed
    from reticent.engine.veil.prior.kernel import Kernel, Misfit
    from reticent.engine.veil.prior.measure import Measures, Score
    from reticent.engine.veil.prior.prior import Prior


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
        persons: persons with several events; None where their number would tell of them.
        misfit: what a finer kernel gains per event, on held-out persons; None with too few of them.
        followed: what a reader with that kernel makes of held-out persons after some events.
    """

    kernel: Kernel
    persons: int | None
    misfit: Misfit | None
    followed: tuple[Followed, ...]

    def __repr__(self) -> str:
        return f"FittedKernel({self.kernel!r})"


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

    def for_l(self, l: int) -> FittedPrior:
        """The same for another number of candidates: shares that could not be counted are moved a little."""
        shares = np.array([apart(row, l) for row in self.prior.shares])
        return replace(self, prior=replace(self.prior, shares=shares))
