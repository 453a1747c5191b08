"""Verify releases in two tables (Anatomy): quasi-identifiers and sensitive values must agree in every group.

Guarantee: if all findings hold, both tables name the same groups and counts match (counterfeits only where the manifest
    states them). An attacker who knows a person's group sees l distinct values; for Anatomy, none above 1/l of the group.
Not covered: how the groups were formed; other releases of the same people.
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

POSTERIOR = "no value has a larger share of a group than the claimed posterior"
POSTERIOR_NOTE = (
    "Posterior: the verifier recomputes the shares within every group. It cannot see whether the groups were formed as "
    "the proof of the method requires. Run `reticent audit` to attack the release."
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
            (Finding("the tables 'qit' (group, ...) and 'st' (group, value, count) exist", holds=False),)
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
    columns = release.coded["qit"].column_names
    rows, size = release.classes("qit", [name for name in policy.quasi if name in columns])
    return check_size(np.bincount(rows, minlength=size), requirement, "quasi-identifiers are published unchanged")


def claimed_posterior(release: Published) -> float | None:
    """Return the bound that a release claims on the posterior: a number, or {"at_most": number}."""
    claim = release.claims.get("posterior")
    claim = claim.get("at_most") if isinstance(claim, dict) else claim
    if claim is not None and (isinstance(claim, bool) or not isinstance(claim, int | float)):
        raise UnreadableClaimError
    return claim


def check_posterior(releases: Iterable[Published], worst: float) -> list[Finding]:
    """Compare the largest share of a value in a group with the claimed bound on the posterior, if there is one."""
    claimed = [float(bound) for release in releases if (bound := claimed_posterior(release)) is not None]
    # Shares are ratios of small whole numbers: a difference below 1e-12 is rounding.
    return [Finding(POSTERIOR, worst <= min(claimed) + 1e-12, round(worst, 12), min(claimed))] if claimed else []


def _requirements_of(release: Published, policy: Policy) -> list[Requirement]:
    """Return the claims, and the l that the policy requires whatever kind the release states.

    A single table by Anatomy also promises that no value exceeds 1/l of its group. k and t concern generalized classes:
    the guarantee of an evolving table excludes them, so they are verified only where the release claims them.
    """
    rules = requirements(release.claims)
    required = policy_requirements(policy)
    rules += [requirement for requirement in required if requirement.model == "l" or release.kind in ("table", "")]
    rules.append(Requirement("l", "distinct", (Fraction(policy.l_of(_kind(release))),)))
    if release.kind in ("table", ""):
        levels = [requirement.numbers[-1] for requirement in rules if requirement.model == "l"]
        rules.append(Requirement("l", "frequency", (max(levels),)))
    return list(dict.fromkeys(rules))


def _kind(release: Published) -> str:
    """Return the kind to require l for: a stated kind may be stricter than `privacy`, never laxer."""
    return release.kind if release.kind in ("table", "evolving") else "evolving"


def _groups(release: Published, st: pa.Table) -> tuple[Int64s, Groups, list[Finding]]:
    """Return rows per group of 'qit', histograms of 'st', and findings about malformed counts."""
    in_qit, in_st, size = release.group_codes
    counts = _whole_numbers(st["count"])
    value, values = arrow_codes(st["value"])
    key = in_st * max(1, len(values)) + value
    if (key[1:] < key[:-1]).any():  # not sorted by group and value
        order = np.argsort(key, kind="stable")
        key, in_st, value, counts = key[order], in_st[order], value[order], counts[order]
    repeats = int((key[1:] == key[:-1]).sum())
    valid = counts > 0  # invalid counts are reported below and left out here
    groups = Groups(in_st[valid], value[valid], counts[valid], size, tuple(values.to_pylist()))
    broken = [
        none_of("counts are whole numbers of at least 1", int((counts < 1).sum()), "table 'st'"),
        none_of("no group lists a value twice", repeats, "table 'st'"),
    ]
    return np.bincount(in_qit, minlength=size), groups, broken


def _check_agreement(members: Int64s, slots: Int64s, counterfeits: float) -> list[Finding]:
    findings = [
        none_of("every group of 'qit' has its values in 'st'", int(((members > 0) & (slots == 0)).sum())),
        none_of("no group has more records than values", int((members > slots).sum())),
    ]
    if counterfeits == 0:
        return [*findings, none_of("every group has as many records as values", int((members != slots).sum()))]
    # The manifest states a number, or a share of all values if it is below 1.
    spare = int(slots.sum() - members.sum())
    share = spare / max(1, int(slots.sum())) if counterfeits < 1 else spare
    stated = abs(share - counterfeits) < 1e-9
    return [*findings, Finding("values without a record match the stated counterfeits", stated, share, counterfeits)]


def _whole_numbers(column: pa.ChunkedArray) -> Int64s:
    """Return the counts as numbers; -1 for a cell that is no whole number."""
    code, texts = arrow_codes(column)
    try:
        counts = texts.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        counts = np.array([int(x) if x and x.isdecimal() else -1 for x in texts.to_pylist()], dtype=np.int64)
    return np.asarray(counts, dtype=np.int64)[code]
