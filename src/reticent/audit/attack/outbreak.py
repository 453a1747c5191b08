"""Outbreak: an attacker who knows that a value has become frequent, or is new, and suspects everybody who is offered it.

Guarantee: none; the attacker uses the value whose frequency rose most compared with the prior of the release.
Not covered: several values that rise at the same time.
Cost: linear in the records.
Reference: docs/veil.md, on the cost of a wrong prior.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from reticent.arrays import Bools, Floats, Int64s
from reticent.audit.attack.evidence import Evidence, prior_counts
from reticent.audit.attack.observations import Observations, VeiledRecords
from reticent.audit.attack.outcome import Outcome
from reticent.audit.attack.person_links import attack_target
from reticent.audit.attack.risk_bound import odds_ratio_bound
from reticent.verify.groups import codes
from reticent.verify.veil.true_values import OTHER, true_value_codes

QUESTION = (
    "Knows from the news which value has become frequent, or is new. Takes everybody for a case who opens a group that "
    "offers this value, or is offered it."
)
CASE_LIMIT = 20  # with fewer cases a rise may be chance
RISE_LIMIT = 1.5


@dataclass(frozen=True, repr=False)
class Rise:
    """A value with its share before and now.

    Attributes:
        code: the published code of the value; -1 if no published value represents it.
        cases: persons of the original who have the value.
    """

    name: str | None
    code: int
    before: float
    now: float
    cases: Bools = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))

    @property
    def ratio(self) -> float:
        """The factor by which the share rose."""
        return self.now / self.before if self.before > 0 else math.inf

    @property
    def odds_ratio(self) -> float:
        """The factor by which the odds rose; 1 for a value that the prior does not contain."""
        if not 0 < self.before < 1:
            return 1.0
        return (self.now / self.before) / ((1 - self.now) / (1 - self.before))


def outbreak(evidence: Evidence) -> Outcome | None:
    """Attack the persons who are offered the value that rose most, or the code for new values."""
    target = attack_target(evidence)
    rise = None if target is None else largest_rise(*target[:2], evidence)
    if target is None or rise is None:
        return None
    seen, _, match = target
    suspects = _suspects(seen, rise)
    alone = match.only_record
    persons = np.flatnonzero((alone >= 0) & np.isin(alone, suspects))
    if not len(persons):
        return None
    posterior = _posterior(seen, alone[persons], rise)
    return Outcome.from_posterior(
        "outbreak",
        QUESTION,
        posterior,
        evidence.key,
        right=float(rise.cases[persons].sum()),
        counted=True,
        claim=_claim(seen, alone[persons], rise),
        notes=(_sentence(rise, seen, suspects),),
        figures={
            "before": rise.before,
            "now": round(rise.now, 4),
            "odds_ratio": round(rise.odds_ratio, 3),
            "new": rise.before == 0,
        },
    )


def largest_rise(seen: Observations, column: pa.ChunkedArray, evidence: Evidence) -> Rise | None:
    """Return the value whose share rose most compared with the prior; new values come first."""
    policy = evidence.policy
    code, names = codes(column)
    published = true_value_codes(seen.values, column, policy, policy.sensitive[0])
    number = np.bincount(code, minlength=len(names))
    before = _expected_shares(seen, evidence)
    if before is None:
        return None
    first = np.unique(code, return_index=True)[1]
    rises = [
        _rise(name, seen.values[own] if own >= 0 else None, int(own), before, float(cases / len(code)))
        for name, own, cases in zip(names, published[first], number, strict=True)
        if cases >= CASE_LIMIT
    ]
    large = [rise for rise in rises if rise.ratio > RISE_LIMIT]
    top = max(large, key=lambda rise: (rise.ratio, rise.now), default=None)
    return None if top is None else replace(top, cases=code == names.index(top.name))


def _rise(name: str | None, label: str | None, own: int, before: dict[str | None, float], now: float) -> Rise:
    is_new = name not in before and (own < 0 or label == OTHER)
    return Rise(name, own, 0.0 if is_new else before.get(label, before.get(name, 0.0)), now)


def _expected_shares(seen: Observations, evidence: Evidence) -> dict[str | None, float] | None:
    """Return the expected shares: the published prior averaged over the records, or the policy's prior file."""
    if isinstance(seen, VeiledRecords):
        shares = np.bincount(seen.strata, minlength=len(seen.shares)) @ seen.shares / len(seen)
        return dict(zip(seen.values, shares.tolist(), strict=True))
    counts = prior_counts(evidence.policy)
    if counts is None:
        return None
    total = sum(counts.values())
    return {value: count / total for value, count in counts.items()}


def _suspects(seen: Observations, rise: Rise) -> Int64s:
    """Return the records that open a group with the value or are offered it; all records if it has no code."""
    if rise.code < 0 or (isinstance(seen, VeiledRecords) and rise.before == 0):
        return np.arange(len(seen))
    if isinstance(seen, VeiledRecords):
        return np.flatnonzero((seen.candidates == rise.code).any(axis=1))
    offering = np.unique(seen.offers.group[seen.offers.value == rise.code])
    offered = np.isin(seen.group, offering)
    # A new value has no slots of its own, so all offered records are suspects, not only the first of a group.
    return (
        np.flatnonzero(offered & seen.opens) if seen.opens is not None and rise.before > 0 else np.flatnonzero(offered)
    )


def _posterior(seen: Observations, records: Int64s, rise: Rise) -> Floats:
    if rise.code < 0 or (isinstance(seen, VeiledRecords) and rise.before == 0):
        return np.full(len(records), rise.now)
    return odds_ratio_bound(seen.stated_shares(records)[:, rise.code], rise.odds_ratio)


def _claim(seen: Observations, records: Int64s, rise: Rise) -> float | None:
    """Return the mean bound r a / (r a + 1 - a) with the outbreak's odds ratio r; for a new value its share."""
    return float(_posterior(seen, records, rise).mean()) if isinstance(seen, VeiledRecords) else None


def _sentence(rise: Rise, seen: Observations, suspects: Int64s) -> str:
    change = "is new" if rise.before == 0 else f"rose from {rise.before:.1%} to {rise.now:.1%}"
    who = (
        "open a group that offers it"
        if getattr(seen, "opens", None) is not None and rise.before > 0
        else "are offered it or the code for new values"
    )
    return f"A value {change}; {len(suspects):,} of {len(seen):,} records {who}."
