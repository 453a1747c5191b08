"""The informed reader: knows how values depend on the published fields, and reads the release with that.

Guarantee: under the veil her posterior is the exact one for her model: belief x copies / (l p). In groups and classes beliefs are fitted
    to the group's counts (see `sights`), which comes near the exact answer.
Not covered: readers with better models than a softmax of this size; what she knows of single persons.
Cost: one regression on at most `LEARN` persons, then persons x values.
Reference: D. Kifer, "Attacks on privacy and deFinetti's theorem", SIGMOD 2009, for readers who combine a model with a release.
Differences from the paper: her model comes from persons outside those attacked, not from the release.
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

QUESTION = "Knows from other patients how the value depends on everything that is published, and reads each person's candidates with that."
LEARN_LIMIT = 12_000
ATTACK_LIMIT = 12_000
FEW = 20
HALF, NINE = 0.5, 0.9


@dataclass(frozen=True, repr=False)
class BeliefUpdate:
    """What she thought of each attacked person before and after, and the truth (-1: not among the published values).

    Attributes:
        concession: the share of right guesses that the release concedes to such a reader; None where it says nothing.
        singled: how often she expects to be right if she knew which record is whose.
    """

    before: Floats
    after: Floats
    true_values: Int64s
    bound: float | None
    expected_if_linked: float

    def right(self, belief: Floats) -> Bools:
        """Whose best guess is the truth."""
        return np.asarray(belief.argmax(axis=1) == self.true_values)


def informed_attacker(evidence: Evidence) -> Outcome | None:
    """Attack one half of the original with a model of the other half, or of the external table."""
    seen, original, policy = latest_observations(evidence), evidence.original, evidence.policy
    if seen is None or original is None or not policy.sensitive or policy.sensitive[0] not in original.column_names:
        return None
    known = split_persons(original, policy, evidence.key)
    source, table = _sources(evidence, original, known, policy)
    reading = update_beliefs(seen, table, source, ~known, policy, evidence.rng)
    return None if reading is None else _outcome(reading, evidence, seen, outside=len(source) > len(known))


def _sources(evidence: Evidence, original: pa.Table, known: Bools, policy: Policy) -> tuple[Bools, pa.Table]:
    """Whom she learns from, in one table with the original: its known half, or the external table behind it."""
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
    """Learn from those who are `source`, read the release for the attacked: the first rows of the table, none of them in the source."""
    sensitive = policy.sensitive[0]
    truth = true_value_codes(seen.values, table[sensitive], policy, sensitive)
    match = link(seen, table, policy)
    if match is None:
        return None
    everybody = np.pad(attacked, (0, len(source) - len(attacked)))
    teachers = _sample(np.flatnonzero(source & (truth >= 0)), limit, rng)
    persons = _sample(np.flatnonzero(everybody & ~source & (match.sizes > 0)), limit, rng)
    if len(teachers) < FEW or not len(persons):
        return None
    names = [name for name in seen.fields.column_names if name in table.column_names]
    fields = person_nodes(table, names, policy, raw=not isinstance(seen, VeiledRecords))
    lessons = np.eye(len(seen.values))[truth[teachers]]
    minds = [_Attacker(seen, match, fields, alike) for alike in _bases(seen, table, policy)]
    tried = [
        fit_model(fields[teachers], lessons, mind.prior_belief(mind.stratum_record[teachers]), rng) for mind in minds
    ]
    best = int(np.argmin([knowledge.loss for knowledge in tried]))
    records = seen.limit_records(match.records_of(persons), rng)
    persons = persons[match.has_record_in(records)[persons]]
    return minds[best].update(persons, records, tried[best], truth[persons])


@dataclass(frozen=True, repr=False)
class _Attacker:
    """What she knows of persons, and makes of their records.

    Attributes:
        alike: per person a record in the same row of the prior; -1 where there is none, or where she makes nothing of rows.
    """

    observations: Observations
    match: Link
    nodes: Any
    stratum_record: Int64s

    def prior_belief(self, records: Int64s) -> Floats:
        """What the release says of a record without its candidates; nothing is impossible, and -1 is anybody."""
        if (self.stratum_record < 0).all():
            records = np.full(len(records), -1)
        anybody = self.observations.prior(np.arange(min(len(self.observations), LEARN_LIMIT))).mean(axis=0)
        before = np.where(records[:, None] >= 0, self.observations.prior(np.maximum(records, 0)), anybody)
        return np.asarray(np.maximum(before, 1e-4 / before.shape[1]))

    def update(self, persons: Int64s, records: Int64s, knowledge: AttackerModel, truth: Int64s) -> BeliefUpdate:
        """Her belief of the persons without and with their records."""
        match = self.match
        belief = knowledge.belief(self.nodes[persons], self.prior_belief(self.stratum_record[persons]))
        theirs = knowledge.belief(self.nodes[match.person_of[records]], self.prior_belief(records))
        posterior = self.observations.posterior(theirs, records)
        # A person's own fields may be known finer than those of her class: what the record adds is carried over.
        factor = np.divide(posterior, theirs, out=np.zeros_like(posterior), where=theirs > 0)
        after = normalize_rows(belief * match.mean(factor, records, persons))
        return BeliefUpdate(
            belief,
            after,
            truth,
            attacker_bound(self.observations, theirs, records),
            float(posterior.max(axis=1).mean()),
        )


def _bases(seen: Observations, table: pa.Table, policy: Policy) -> list[Int64s]:
    """What she may build on: the prior for everybody, or that of a person's row; those who teach her need not be in the release."""
    bases = [np.full(table.num_rows, -1)]
    rows = link(seen, table, policy, by=seen.by) if isinstance(seen, VeiledRecords) and seen.by else None
    return bases if rows is None else [*bases, rows.record_of]


def _sample(places: Int64s, limit: int, rng: np.random.Generator) -> Int64s:
    return places if len(places) <= limit else np.sort(rng.choice(places, limit, replace=False))


def _outcome(reading: BeliefUpdate, evidence: Evidence, seen: Observations, *, outside: bool) -> Outcome:
    figures = figures_of(reading, seen)
    learnt = "an outside table" if outside else "other persons of the same input"
    gain = f"Without the release she is right in {figures['before']:.1%}; with it {figures['ratio']:.2f} times the larger of that and chance."
    singled = f"If she knew which record is whose, she would expect to be right in {reading.expected_if_linked:.1%}."
    return Outcome.from_posterior(
        "informed-attacker",
        QUESTION,
        reading.after.max(axis=1),
        evidence.key,
        right=float(reading.right(reading.after).sum()),
        counted=True,
        claim=reading.bound,
        notes=(f"Her model is learnt from {learnt}.", gain, singled, *quote_warnings(reading, seen)),
        figures=figures,
    )


def figures_of(reading: BeliefUpdate, seen: Observations) -> dict[str, Any]:
    """Before and after, how often she is sure, and all that by how much she knew before."""
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
    """The same by fifths of how sure she was before."""
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
    """A sentence where a reader is right more often than a veiled release says of the best one it was measured with."""
    quoted = seen.quoted_accuracy if isinstance(seen, VeiledRecords) else None
    right = float(reading.right(reading.after).mean())
    if quoted is None or right <= quoted:
        return ()
    return (f"The release quotes {quoted:.1%} for the best reader it was measured with; this one reaches {right:.1%}.",)
