"""The informed attacker: knows how values depend on the published fields, and combines this with the release.

Guarantee: under the veil the posterior is exact for the attacker's model: belief x copies / (l p). In groups and classes
    beliefs are fitted to the group's counts (see `grouped_records`), which approximates the exact answer.
Not covered: attackers with better models than a softmax of this size; knowledge about single persons.
Cost: one regression on at most `ATTACK_LIMIT` persons, then persons x values.
Reference: D. Kifer, "Attacks on privacy and deFinetti's theorem", SIGMOD 2009 (combines a model with a release).
Differences from the paper: the attacker learns the model from persons who are not attacked, not from the release.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.arrays import Bools, Floats, Int64s
from reticent.audit.attack.attacker_model import AttackerModel, fit_model
from reticent.audit.attack.evidence import Evidence
from reticent.audit.attack.observations import Observations, VeiledRecords, latest_observations
from reticent.audit.attack.outcome import Outcome
from reticent.audit.attack.person_links import Link, link, split_persons
from reticent.audit.attack.person_nodes import person_nodes
from reticent.audit.attack.risk_bound import attacker_bound
from reticent.policy import Policy
from reticent.verify.groups import normalize_rows, present_columns
from reticent.verify.veil.true_values import true_value_codes

QUESTION = "Knows from other patients how the value depends on all published fields, and weighs each person's candidates by it."
LEARN_LIMIT = 12_000
ATTACK_LIMIT = 12_000
FEW = 20
HALF, NINE = 0.5, 0.9


@dataclass(frozen=True, repr=False)
class BeliefUpdate:
    """The attacker's belief about each attacked person before and after the release.

    Attributes:
        true_values: codes of the true values; -1 if a value is not among the published values.
        bound: the share of right guesses that the release allows such an attacker; None if it states none.
        expected_if_linked: expected share of right guesses if the attacker knew which record belongs to whom.
    """

    before: Floats
    after: Floats
    true_values: Int64s
    bound: float | None
    expected_if_linked: float

    def right(self, belief: Floats) -> Bools:
        """Return, per person, whether the best guess is the true value."""
        return np.asarray(belief.argmax(axis=1) == self.true_values)


def informed_attacker(evidence: Evidence) -> Outcome | None:
    """Attack one half of the original with a model learned from the other half, or from the external table."""
    seen, original, policy = latest_observations(evidence), evidence.original, evidence.policy
    if seen is None or original is None or not policy.sensitive or policy.sensitive[0] not in original.column_names:
        return None
    known = split_persons(original, policy, evidence.key)
    source, table = _sources(evidence, original, known, policy)
    reading = update_beliefs(seen, table, source, ~known, policy, evidence.rng)
    return None if reading is None else _outcome(reading, evidence, seen, outside=len(source) > len(known))


def _sources(evidence: Evidence, original: pa.Table, known: Bools, policy: Policy) -> tuple[Bools, pa.Table]:
    """Return which rows the attacker learns from, and the table: the original, with the external table appended."""
    external = evidence.external
    names = present_columns((*policy.quasi, *policy.plain, *policy.sensitive), original)
    if external is None or policy.sensitive[0] not in external.column_names:
        return known, original.select(names)
    shared = present_columns(names, external)
    both = pa.concat_tables([original.select(shared), external.select(shared)])
    return np.arange(both.num_rows) >= original.num_rows, both


def update_beliefs(
    seen: Observations,
    table: pa.Table,
    source: Bools,
    attacked: Bools,
    policy: Policy,
    rng: np.random.Generator,
    limit: int = ATTACK_LIMIT,
) -> BeliefUpdate | None:
    """Learn a model from the `source` rows, and update the beliefs about the attacked persons with the release.

    The attacked persons are among the first rows of the table and not in the source.
    """
    sensitive = policy.sensitive[0]
    true_values = true_value_codes(seen.values, table[sensitive], policy, sensitive)
    match = link(seen, table, policy)
    if match is None:
        return None
    everybody = np.pad(attacked, (0, len(source) - len(attacked)))
    teachers = _sample(np.flatnonzero(source & (true_values >= 0)), limit, rng)
    persons = _sample(np.flatnonzero(everybody & ~source & (match.sizes > 0)), limit, rng)
    if len(teachers) < FEW or not len(persons):
        return None
    names = [name for name in seen.fields.column_names if name in table.column_names]
    fields = person_nodes(table, names, policy, raw=not isinstance(seen, VeiledRecords))
    known_values = np.eye(len(seen.values))[true_values[teachers]]
    attackers = [_Attacker(seen, match, fields, stratum_record) for stratum_record in _bases(seen, table, policy)]
    models = [
        fit_model(fields[teachers], known_values, attacker.prior_belief(attacker.stratum_record[teachers]), rng)
        for attacker in attackers
    ]
    best = int(np.argmin([model.loss for model in models]))
    records = seen.limit_records(match.records_of(persons), rng)
    persons = persons[match.has_record_in(records)[persons]]
    return attackers[best].update(persons, records, models[best], true_values[persons])


@dataclass(frozen=True, repr=False)
class _Attacker:
    """An attacker with one way to use the prior.

    Attributes:
        stratum_record: per person, a record in the same stratum of the prior; -1 if none or if strata are not used.
    """

    observations: Observations
    match: Link
    nodes: Any
    stratum_record: Int64s

    def prior_belief(self, records: Int64s) -> Floats:
        """Return the prior of each record without its candidates; no value is impossible; -1 means any record."""
        if (self.stratum_record < 0).all():
            records = np.full(len(records), -1)
        anybody = self.observations.prior(np.arange(min(len(self.observations), LEARN_LIMIT))).mean(axis=0)
        before = np.where(records[:, None] >= 0, self.observations.prior(np.maximum(records, 0)), anybody)
        return np.asarray(np.maximum(before, 1e-4 / before.shape[1]))

    def update(self, persons: Int64s, records: Int64s, knowledge: AttackerModel, true_values: Int64s) -> BeliefUpdate:
        """Return the attacker's belief about the persons without and with their records."""
        match = self.match
        belief = knowledge.belief(self.nodes[persons], self.prior_belief(self.stratum_record[persons]))
        theirs = knowledge.belief(self.nodes[match.person_of[records]], self.prior_belief(records))
        posterior = self.observations.posterior(theirs, records)
        # The attacker may know a person's fields in more detail than published, so only the record's factor is used.
        factor = np.divide(posterior, theirs, out=np.zeros_like(posterior), where=theirs > 0)
        after = normalize_rows(belief * match.mean(factor, records, persons))
        return BeliefUpdate(
            belief,
            after,
            true_values,
            attacker_bound(self.observations, theirs, records),
            float(posterior.max(axis=1).mean()),
        )


def _bases(seen: Observations, table: pa.Table, policy: Policy) -> list[Int64s]:
    """Return the priors to try: one for everybody, and the one of each person's stratum."""
    bases = [np.full(table.num_rows, -1)]
    rows = link(seen, table, policy, by=seen.by) if isinstance(seen, VeiledRecords) and seen.by else None
    return bases if rows is None else [*bases, rows.record_of]


def _sample(places: Int64s, limit: int, rng: np.random.Generator) -> Int64s:
    return places if len(places) <= limit else np.sort(rng.choice(places, limit, replace=False))


def _outcome(reading: BeliefUpdate, evidence: Evidence, seen: Observations, *, outside: bool) -> Outcome:
    figures = figures_of(reading, seen)
    source = "the external table" if outside else "other persons of the same input"
    gain = (
        f"Without the release the attacker is right in {figures['before']:.1%} of cases; with it, in "
        f"{figures['ratio']:.2f} times the larger of this share and chance."
    )
    linked = f"Expected share if the attacker knew which record belongs to whom: {reading.expected_if_linked:.1%}."
    return Outcome.from_posterior(
        "informed-attacker",
        QUESTION,
        reading.after.max(axis=1),
        evidence.key,
        right=float(reading.right(reading.after).sum()),
        counted=True,
        claim=reading.bound,
        notes=(f"The attacker learns the model from {source}.", gain, linked, *quote_warnings(reading, seen)),
        figures=figures,
    )


def figures_of(reading: BeliefUpdate, seen: Observations) -> dict[str, Any]:
    """Return accuracy before and after the release, how often the attacker is sure, and both by prior knowledge."""
    before, after = reading.right(reading.before), reading.right(reading.after)
    chance = float(seen.stated_shares(np.arange(min(len(seen), LEARN_LIMIT))).max(axis=1).mean())
    top = reading.after.max(axis=1)
    return {
        "before": round(float(before.mean()), 4),
        "after": round(float(after.mean()), 4),
        "chance": round(chance, 4),
        "ratio": round(float(after.mean() / max(chance, before.mean())), 3),
        "above_half": round(float((top > HALF).mean()), 4),
        "above_nine_tenths": round(float((top > NINE).mean()), 4),
        "expected_if_records_are_known": round(reading.expected_if_linked, 4),
        "strata": _quintiles(reading.before.max(axis=1), before, after, top),
    }


def _quintiles(knew: Floats, before: Bools, after: Bools, top: Floats) -> list[dict[str, float]]:
    """Return the figures by fifths of the attacker's certainty before the release."""
    fifth = np.minimum(np.argsort(np.argsort(knew, kind="stable")) * 5 // max(len(knew), 1), 4)
    parts = [np.flatnonzero(fifth == number) for number in range(5)]
    return [
        {
            "knew": round(float(knew[part].mean()), 4),
            "before": round(float(before[part].mean()), 4),
            "after": round(float(after[part].mean()), 4),
            "above_half": round(float((top[part] > HALF).mean()), 4),
        }
        for part in parts
        if len(part)
    ]


def quote_warnings(reading: BeliefUpdate, seen: Observations) -> tuple[str, ...]:
    """Return a warning if the attacker is right more often than the release states for the best attacker."""
    quoted = seen.quoted_accuracy if isinstance(seen, VeiledRecords) else None
    right = float(reading.right(reading.after).mean())
    if quoted is None or right <= quoted:
        return ()
    return (f"The release states {quoted:.1%} for the best attacker; this attacker reaches {right:.1%}.",)
