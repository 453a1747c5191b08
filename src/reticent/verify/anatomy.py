"""Anatomy-like releases: the table of quasi-identifiers and the table of sensitive values must agree per group.

Guarantee: what the findings say: both tables name the same groups, counts match (counterfeits only where the manifest
    says so), every group holds l distinct values, and for Anatomy none of them above 1/l of the group.
Not covered: how the groups came about, other releases of the same people.
Cost: linear in the rows.
Reference: X. Xiao, Y. Tao, "Anatomy: simple and effective privacy preservation", VLDB 2006.
Differences from the paper: none.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np
import pyarrow as pa

from reticent.arrays import Int64s
from reticent.policy import Policy
from reticent.verify.generalized import check_columns, check_counts, count_policy_suppression, unchecked_claims
from reticent.verify.groups import Groups, arrow_codes
from reticent.verify.published import Published
from reticent.verify.requirements import (
    Requirement,
    UnreadableClaimError,
    check_l,
    check_size,
    check_t,
    policy_requirements,
    requirements,
)
from reticent.verify.result import Finding, VerificationResult, none_of
from reticent.verify.row_order import check_row_order
from reticent.verify.variants import check_variants

POSTERIOR = "no value above the claimed posterior in any group"
POSTERIOR_NOTE = (
    "Posterior: the shares within every group are recomputed. That groups were formed as the proof of the method asks "
    "cannot be seen from outside; `reticent audit` tries to break it."
)


def verify_release(release: Published, policy: Policy) -> VerificationResult:
    """Recompute every claim of a release in two tables."""
    qit, st = release.coded.get("qit"), release.coded.get("st")
    if (
        qit is None
        or st is None
        or "group" not in qit.column_names
        or {"group", "value", "count"} - set(st.column_names)
    ):
        return VerificationResult(
            (Finding("the tables 'qit' (group, ...) and 'st' (group, value, count) are there", holds=False),)
        )
    findings = [
        check_columns(qit, policy.quasi + policy.plain, policy, extra=("group",)),
        check_columns(st, ("group", "value", "count"), policy),
    ]
    members, groups, broken = _groups(release, st)
    findings += broken
    findings.append(check_variants(groups.values, "table 'st'"))
    findings += check_row_order(qit, st)
    findings += _check_agreement(members, groups.sizes(), float(release.metrics.get("counterfeits") or 0))
    column = policy.sensitive[0] if policy.sensitive else "value"
    for requirement in _requirements_of(release, policy):
        findings.append(_check_requirement(requirement, release, groups, policy, column))
    posterior = check_posterior([release], float(groups.shares().max(initial=0)))
    findings += posterior
    limit = policy.privacy.suppression if release.method == "anatomy" else None
    findings += check_counts(release.counts, qit.num_rows, limit, count_policy_suppression(release, policy))
    notes = (POSTERIOR_NOTE,) if posterior else ()
    open_claims = unchecked_claims(release.claims, ("k", "l", "t", "posterior"))
    return VerificationResult(tuple(findings), notes, open_claims)


def _check_requirement(
    requirement: Requirement, release: Published, groups: Groups, policy: Policy, column: str
) -> Finding:
    if requirement.model == "l":
        return check_l(groups, requirement, f"column '{column}'")
    if requirement.model == "t":
        return check_t(groups, requirement, groups.totals(), policy, column)
    there = release.coded["qit"].column_names
    rows, size = release.classes("qit", [name for name in policy.quasi if name in there])
    return check_size(np.bincount(rows, minlength=size), requirement, "quasi-identifiers are published as they are")


def claimed_posterior(release: Published) -> float | None:
    """The bound a release claims on the posterior: a number, or {"at_most": number}."""
    claim = release.claims.get("posterior")
    claim = claim.get("at_most") if isinstance(claim, dict) else claim
    if claim is not None and (isinstance(claim, bool) or not isinstance(claim, int | float)):
        raise UnreadableClaimError
    return claim


def check_posterior(releases: Iterable[Published], worst: float) -> list[Finding]:
    """The largest share that a value has of a group, where the releases claim a bound on the posterior."""
    claimed = [float(bound) for release in releases if (bound := claimed_posterior(release)) is not None]
    # shares of small whole numbers: nothing but rounding lies within 1e-12
    return [Finding(POSTERIOR, worst <= min(claimed) + 1e-12, round(worst, 12), min(claimed))] if claimed else []


def _requirements_of(release: Published, policy: Policy) -> list[Requirement]:
    """The claims, and the l that the policy asks for whatever the release calls itself.

    One table by Anatomy also promises that no value exceeds 1/l of its group. k and t speak of generalised classes: an
    evolving table states in its guarantee that it does not meet them, and they are judged where they are claimed.
    """
    rules = requirements(release.claims)
    asked = policy_requirements(policy)
    rules += [requirement for requirement in asked if requirement.model == "l" or release.kind in ("table", "")]
    rules.append(Requirement("l", "distinct", (Fraction(policy.l_of(_kind(release))),)))
    if release.kind in ("table", ""):
        levels = [requirement.numbers[-1] for requirement in rules if requirement.model == "l"]
        rules.append(Requirement("l", "frequency", (max(levels),)))
    return list(dict.fromkeys(rules))


def _kind(release: Published) -> str:
    """What the release says it is may make the demand stricter, never laxer than `privacy`."""
    return release.kind if release.kind in ("table", "evolving") else "evolving"


def _groups(release: Published, st: pa.Table) -> tuple[Int64s, Groups, list[Finding]]:
    """Rows per group of the first table, histograms of the second, and what is malformed."""
    in_qit, in_st, size = release.group_codes
    counts = _whole_numbers(st["count"])
    value, values = arrow_codes(st["value"])
    key = in_st * max(1, len(values)) + value
    if (key[1:] < key[:-1]).any():  # rows stand by group and value, as they should, or are brought into this order
        order = np.argsort(key, kind="stable")
        key, in_st, value, counts = key[order], in_st[order], value[order], counts[order]
    twice = int((key[1:] == key[:-1]).sum())
    some = counts > 0  # what is no count is reported below and counts for nothing
    groups = Groups(in_st[some], value[some], counts[some], size, tuple(values.to_pylist()))
    broken = [
        none_of("counts are whole numbers of at least 1", int((counts < 1).sum()), "table 'st'"),
        none_of("no value stands twice in a group", twice, "table 'st'"),
    ]
    return np.bincount(in_qit, minlength=size), groups, broken


def _check_agreement(members: Int64s, slots: Int64s, counterfeits: float) -> list[Finding]:
    findings = [
        none_of("every group of 'qit' has its values in 'st'", int(((members > 0) & (slots == 0)).sum())),
        none_of("no group holds more records than values", int((members > slots).sum())),
    ]
    if counterfeits == 0:
        return [*findings, none_of("records and values agree in every group", int((members != slots).sum()))]
    # stated as a number, or below 1 as a share of all values
    spare = int(slots.sum() - members.sum())
    share = spare / max(1, int(slots.sum())) if counterfeits < 1 else spare
    stated = abs(share - counterfeits) < 1e-9
    return [*findings, Finding("values without a record = counterfeits stated", stated, share, counterfeits)]


def _whole_numbers(column: pa.ChunkedArray) -> Int64s:
    """The counts as numbers; -1 for what is none."""
    code, texts = arrow_codes(column)
    try:
        counts = texts.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        counts = np.array([int(x) if x and x.isdecimal() else -1 for x in texts.to_pylist()], dtype=np.int64)
    return np.asarray(counts, dtype=np.int64)[code]
