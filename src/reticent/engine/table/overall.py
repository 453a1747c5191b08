"""What all classes keep together or beside a population, by asking classes to be larger until they do.

Guarantee: average risk, population uniqueness and k-map of the policy, as `reticent.policy.models` states each.
Not covered: as each model says.
Cost: one search for every step of k, and for k-map classes times the people of the population with different quasi-identifiers.
Reference: see `reticent.policy.models`.
Differences from the papers: the search itself knows k, l and t only. What these demands need beyond that is reached by a larger k, and
for k-map by suppressing classes that fit too few people; so the release is sound, and not proved to be the one of least loss.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from reticent.arrays import Int64s
from reticent.policy import Policy

if TYPE_CHECKING:
    from reticent.engine.table.encoded_table import EncodedTable
    from reticent.engine.table.generalised import Outcome


def next_k(k: int) -> int:
    """The next number of members to ask of every class: one more, then half as many again."""
    return max(k + 1, k * 3 // 2)


def holds_overall(policy: Policy, sizes: Int64s) -> bool:
    """Whether classes of these sizes keep what the policy asks of all of them together."""
    privacy = policy.privacy
    if privacy.average_risk is None and privacy.population_uniqueness is None:
        return True
    from reticent.policy.models.average_risk import AverageRisk  # few policies ask for these
    from reticent.policy.models.population_uniqueness import PopulationUniqueness

    if privacy.average_risk is not None and not AverageRisk(privacy.average_risk).holds(sizes):
        return False
    asked = privacy.population_uniqueness
    return asked is None or PopulationUniqueness(asked.share, asked.population).holds(sizes)


def within_population(encoded: EncodedTable, outcome: Outcome, classes: Int64s) -> tuple[Outcome, Int64s]:
    """The outcome without classes that fit too few people of the population, and the classes that are left."""
    policy = encoded.policy
    spec = policy.privacy.k_map
    if spec is None:
        return outcome, classes
    from reticent.policy.models.k_map import KMap, read_population

    rows = np.flatnonzero(classes >= 0)
    numbers, first = np.unique(classes[rows], return_index=True)
    chosen = rows[first]
    labels = {name: attribute.labels(chosen).to_pylist() for name, attribute in outcome.attributes.items()}
    texts = {name: [None if label is None else str(label) for label in column] for name, column in labels.items()}
    hierarchies = {name: policy.columns[name].hierarchy for name in texts}
    fits = KMap(spec.k, read_population(policy, spec.file)).fitting(texts, hierarchies, policy.base)
    poor = np.isin(classes, numbers[fits < spec.k])
    left = np.where(poor, -1, classes)
    return replace(outcome, suppressed=left < 0), left


def sizes_of(encoded: EncodedTable, classes: Int64s) -> Int64s:
    """Members of each class: persons where they are known to have several records, otherwise records."""
    rows = np.flatnonzero(classes >= 0)
    if encoded.people is None:
        return np.unique(classes[rows], return_counts=True)[1].astype(np.int64)
    pairs = np.unique(np.stack([classes[rows], encoded.people.persons[rows].astype(np.int64)]), axis=1)
    return np.unique(pairs[0], return_counts=True)[1].astype(np.int64)
