"""All risk measures of one release."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.arrays import Int64s
from reticent.audit.risk.class_sizes import ClassSizes, class_sizes
from reticent.audit.risk.contribution import Contribution, contributions
from reticent.audit.risk.reidentification import THRESHOLD, Risk, journalist, needed_class, prosecutor
from reticent.audit.risk.safe_harbor import Check, safe_harbor
from reticent.policy import Policy
from reticent.verify.groups import number_rows, present_columns
from reticent.verify.labels.row_matching import Field, match_rows
from reticent.verify.linked.verifier import SHAPE as LINKED
from reticent.verify.linked.verifier import VIEW, view_table
from reticent.verify.published import Published
from reticent.verify.uniqueness import population_uniques, sample_uniques


@dataclass(frozen=True, repr=False)
class Assessment:
    """The re-identification risk of one release.

    Attributes:
        threshold: risk above which a record counts as exposed.
        needed: the smallest class size whose risk is at or below the threshold.
        journalist: None if nothing is known about the population.
        unique: records alone in their class; population_unique: estimated number of people unique in the population.
        exact: whether quasi-identifiers were published unchanged, so that only the sensitive values are protected.
    """

    threshold: float
    needed: int
    sizes: ClassSizes
    prosecutor: Risk
    journalist: Risk | None
    unique: int
    population_unique: dict[str, float]
    contributions: list[Contribution]
    safe_harbor: list[Check]
    exact: bool

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "threshold": self.threshold,
            "needed_class": self.needed,
            "class_sizes": asdict(self.sizes),
            "prosecutor": asdict(self.prosecutor),
            "journalist": asdict(self.journalist) if self.journalist else None,
            "marketer": (self.journalist or self.prosecutor).mean,
            "uniqueness": self.unique / self.sizes.rows if self.sizes.rows else 0.0,
            "population_unique": self.population_unique,
            "contributions": [asdict(contribution) for contribution in self.contributions],
            "safe_harbor": [check.to_dict() for check in self.safe_harbor],
            "quasi_identifiers_as_they_are": self.exact,
        }


def assess(
    release: Published, policy: Policy, *, population: pa.Table | int | None = None, threshold: float = THRESHOLD
) -> Assessment:
    """Measure the risk of one release; `population` is a table with the quasi-identifiers, or its number of people."""
    shown = (
        view_table(release, policy)
        if release.shape == LINKED and policy.tables is not None
        else _published_table(release)
    )
    quasi = shown.select(present_columns((VIEW, *policy.quasi), shown))
    rows, size = number_rows(quasi, quasi.column_names)
    sizes = np.bincount(rows, minlength=size) if quasi.num_rows else np.zeros(0, dtype=np.int64)
    people = population if isinstance(population, int) else population.num_rows if population is not None else 0
    against = _population_sizes(quasi, (rows, size), population, policy) if isinstance(population, pa.Table) else people
    return Assessment(
        threshold=threshold,
        needed=needed_class(threshold),
        sizes=class_sizes(sizes),
        prosecutor=prosecutor(sizes, threshold),
        journalist=journalist(sizes, against, threshold) if people else None,
        unique=sample_uniques(sizes),
        population_unique=population_uniques(sizes, people) if people else {},
        contributions=contributions(quasi),
        safe_harbor=safe_harbor(list(release.tables.values()) if release.shape == LINKED else [shown]),
        exact=release.shape in ("anatomy", "stream") and "record" not in release.tables,
    )


def _published_table(release: Published) -> pa.Table:
    """Return the table with one published row per record."""
    for name in ("data", "qit", "tuple", "record"):
        if name in release.tables:
            return release.tables[name]
    if release.stream_file is None:
        return pa.table({})
    from reticent.audit.attack.transcript import stream_table  # the attacks need the extra `audit`

    return stream_table(release)


def _population_sizes(quasi: pa.Table, grouped: tuple[Int64s, int], population: pa.Table, policy: Policy) -> Int64s:
    """Count, per published class, the people of the population whom its labels cover."""
    rows, size = grouped
    fields = [
        Field.from_labels(population, quasi, policy, name)
        for name in quasi.column_names
        if name in population.column_names
    ]
    sizes = np.zeros(size, dtype=np.int64)
    sizes[rows] = match_rows(fields, population.num_rows, quasi.num_rows).candidate_counts
    return sizes


def initial_risk(original: pa.Table, policy: Policy, threshold: float = THRESHOLD) -> Risk:
    """Return the prosecutor risk if the quasi-identifiers were published unchanged."""
    rows, size = number_rows(original, present_columns(policy.quasi, original))
    return prosecutor(np.bincount(rows, minlength=size), threshold)
