"""Verify generalized releases: group by the published quasi-identifiers, then recompute k, l and t of every group.

Guarantee: if all findings hold, an attacker who knows a person's quasi-identifiers sees a class that meets k, l and t.
Not covered: how useful the release is; claims about persons (see `reticent.verify.original.persons`); other releases
    of the same people.
Cost: one sort of the rows; a million rows take seconds.
Reference: the models' own papers, see docs/models.md.
Differences from the paper: the t-closeness reference is the release's own distribution. The distance may exceed t by
    the share of suppressed records, which bounds the distance to the input's distribution.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.arrays import Int64s
from reticent.policy import Policy
from reticent.verify import measures
from reticent.verify.groups import codes, histograms, present_columns
from reticent.verify.labels.validity import check_labels
from reticent.verify.published import Published
from reticent.verify.requirements import (
    OVERALL_CLAIMS,
    Requirement,
    check_l,
    check_overall,
    check_size,
    check_t,
    person_requirements,
    policy_requirements,
    requirements,
)
from reticent.verify.result import NEEDS_ORIGINAL, Finding, FormCheck, VerificationResult, none_of
from reticent.verify.variants import check_variants

REFERENCE_NOTE = (
    "t-closeness of '{}': the reference distribution is that of the release. It differs from the input's by at most the "
    "share of suppressed records. Use --original to compare with the input's distribution."
)

INDEPENDENT_METHOD = "l-diversity"
"""The method of a series whose releases are independent of each other."""
_INDEPENDENT_NOTE = (
    "Each release was verified on its own: l-diversity claims nothing against an attacker who has several releases."
)


def verify_release(release: Published, policy: Policy) -> VerificationResult:
    """Recompute every claim of a generalized release."""
    if "data" not in release.tables:
        return VerificationResult((Finding("the table 'data' exists", holds=False),))
    data = release.coded["data"]
    several = policy.person is not None and _has_repeated_persons(release)
    series = release.kind == "series"
    required = policy_requirements(policy, persons=several) + (requirements({"l": policy.m}) if series else [])
    rules = record_requirements(requirements(release.claims) + required)
    quasi = present_columns(policy.quasi, data)
    findings = [check_columns(data, policy.released, policy)]
    if series:  # any other method promises more than one release can show
        findings.append(
            Finding("the policy's series method makes independent releases", policy.series.method == INDEPENDENT_METHOD)
        )
    if not release.no_manifest:  # labels of a foreign table are free
        findings += [check_labels(codes(data[name])[1], policy, name, release.method) for name in quasi]
    rows, size = release.classes("data", quasi)
    sizes = np.bincount(rows, minlength=size)
    findings += [check_size(sizes, requirement, "") for requirement in rules if requirement.model == "k"]
    findings += check_overall(data, rows, size, release.claims, policy)
    slack = suppressed_share(release.counts, count_policy_suppression(release, policy))
    findings += check_sensitive(data, rows, size, rules, policy, slack)
    notes = [
        REFERENCE_NOTE.format(name)
        for name in present_columns(policy.sensitive, data)
        if any(r.model == "t" for r in rules)
    ]
    notes += [*_plain_notes(release, policy), *([_INDEPENDENT_NOTE] if series else [])]
    if release.no_manifest:
        notes += [] if rules else [_NO_REQUIREMENT_NOTE]
    else:
        findings += check_counts(
            release.counts, data.num_rows, policy.privacy.suppression, count_policy_suppression(release, policy)
        )
    open_claims = unchecked_claims(release.claims) + _person_demands(release, policy)
    measured = _measure(release, policy) if release.no_manifest else {}
    return VerificationResult(tuple(findings), tuple(dict.fromkeys(notes)), open_claims, measured)


_NO_REQUIREMENT_NOTE = "The policy sets neither k, l nor t, so nothing was required. See the measured figures."


def _plain_notes(release: Published, policy: Policy) -> list[str]:
    """Note how many rows are unique when plain columns are added to the quasi-identifiers."""
    data = release.coded["data"]
    plain = present_columns(policy.plain, data)
    if not plain or not data.num_rows:
        return []
    alone = _count_unique_rows(release, [*policy.quasi, *plain]) / data.num_rows
    shown = ", ".join(plain[:5]) + (f" and {len(plain) - 5} more" if len(plain) > 5 else "")
    note = (
        f"Plain columns ({shown}) are not part of the classes: with them, {alone:.0%} of the published rows are unique."
    )
    return [f"{note} Give them the role quasi if an attacker can know them."]


def _count_unique_rows(release: Published, names: Sequence[str]) -> int:
    """Count the published rows that are unique in the given columns."""
    rows, size = release.classes("data", present_columns(names, release.coded["data"]))
    return int((np.bincount(rows, minlength=size) == 1).sum())


def record_requirements(rules: list[Requirement]) -> list[Requirement]:
    """Return the requirements that records must meet too: k persons have k records, l persons have l values."""
    return list(dict.fromkeys(replace(requirement, persons=False) for requirement in rules if requirement.visible))


def _person_demands(release: Published, policy: Policy) -> tuple[str, ...]:
    """List what the policy requires of persons, for a table without a manifest."""
    required = policy_requirements(policy, persons=True) if release.no_manifest and policy.person is not None else []
    return tuple(f"{requirement} {NEEDS_ORIGINAL}" for requirement in required)


def count_policy_suppression(release: Published, policy: Policy) -> int:
    """Return how many records the policy's choice of one per person suppressed, as the manifest states."""
    if policy.persons is None or policy.persons.records == "all":
        return 0
    number = release.explain.get("suppressed_further_records", 0)
    return number if isinstance(number, int) and number >= 0 else 0


def _has_repeated_persons(release: Published) -> bool:
    """Return whether the release claims l or t of persons, because some persons have several records."""
    return any(requirement.model != "k" for requirement in person_requirements(release.claims))


def unchecked_claims(
    claims: Mapping[str, Any], known: tuple[str, ...] = ("k", "l", "t", *OVERALL_CLAIMS)
) -> tuple[str, ...]:
    """List the claims that this verifier does not recompute, and claims about persons, which need the original."""
    hidden = (f"{requirement} {NEEDS_ORIGINAL}" for requirement in person_requirements(claims))
    return (*(claim for claim in claims if claim not in known), *hidden)


def check_columns(table: pa.Table, allowed: tuple[str, ...], policy: Policy, extra: tuple[str, ...] = ()) -> Finding:
    """Check that the table has only columns that the policy releases."""
    others = [name for name in table.column_names if name not in allowed and name not in extra]
    identifiers = sum(name in policy.identifiers for name in others)
    where = f"{identifiers} of them identifiers" if others else ""
    return none_of("only columns that the policy releases are published", len(others), where)


COUNTS_CLAIM = "the manifest has its counts"


def check_counts(
    counts: Mapping[str, Any], rows: int, limit: float | None, policy_suppressed: int = 0
) -> list[Finding]:
    """Check that the counts of the manifest agree with the tables and with each other."""
    if not counts:
        return [Finding(COUNTS_CLAIM, holds=False)]
    numbers = {key: counts.get(key) for key in ("input", "published", "withheld", "suppressed")}
    sums = [value if isinstance(value, int) and value >= 0 else -1 for value in numbers.values()]
    if min(sums) < 0:
        return [Finding("the manifest's counts are whole numbers", holds=False)]
    given, published, withheld, suppressed = sums
    total = published + withheld + suppressed
    findings: list[Finding] = [
        FormCheck(
            "the tables have as many rows as the manifest says are published", rows == published, rows, published
        ),
        FormCheck("input rows = published + withheld + suppressed", given == total, total, given),
    ]
    if limit is not None:
        allowed = math.floor(Fraction(str(limit)) * (given - policy_suppressed)) + policy_suppressed
        within = suppressed <= allowed
        findings.append(Finding("suppressed rows are within the policy's limit", within, suppressed, allowed))
    return findings


def _measure(release: Published, policy: Policy) -> dict[str, float]:
    """Measure a foreign table: classes, unique records, k, and for each sensitive column distinct l, entropy l and t."""
    data = release.coded["data"]
    rows, size = release.classes("data", present_columns(policy.quasi, data))
    if not data.num_rows:
        return {}
    figures: dict[str, float] = {
        "k": int(np.bincount(rows, minlength=size).min()),
        "classes": size,
        "unique": _count_unique_rows(release, policy.quasi),
        "unique_with_plain": _count_unique_rows(release, (*policy.quasi, *policy.plain)),
    }
    for name in present_columns(policy.sensitive, data):
        groups = histograms(rows, size, data[name])
        whole = np.array(list(groups.totals().values()))
        entropies, _ = measures.entropy_l(groups, Fraction(1))
        parts = measures.equal_parts(len(whole))
        distances, _ = measures.distance(groups, whole, np.arange(len(whole)), parts, Fraction(1))
        figures[f"l of '{name}'"] = int(groups.distinct().min())
        figures[f"entropy l of '{name}'"] = round(float(entropies.min()), 6)
        figures[f"t of '{name}'"] = round(float(distances.max()), 6)
    return figures


def check_sensitive(
    data: pa.Table,
    rows: Int64s,
    size: int,
    rules: list[Requirement],
    policy: Policy,
    slack: Fraction,
    times: Int64s | None = None,
) -> list[Finding]:
    """Check label variants, diversity and closeness of the sensitive columns; `times` weights the rows."""
    sensitive_rules = [requirement for requirement in rules if requirement.model != "k"]
    findings = []
    if sensitive_rules and not policy.sensitive:
        findings += [
            Finding(str(r), holds=False, where="the policy names no sensitive column") for r in sensitive_rules
        ]
    for column in policy.sensitive:
        where = f"column '{column}'"
        if column not in data.column_names:
            findings += [Finding(str(r), holds=False, where=f"{where} is not published") for r in sensitive_rules]
            continue
        findings += [check_variants(codes(data[column])[1], where)]
        if not sensitive_rules:
            continue
        groups = histograms(rows, size, data[column], times)
        findings += [check_l(groups, r, where) for r in sensitive_rules if r.model == "l"]
        findings += [
            check_t(groups, r, groups.totals(), policy, column, slack=slack) for r in sensitive_rules if r.model == "t"
        ]
    return findings


def suppressed_share(counts: Mapping[str, Any], policy_suppressed: int = 0) -> Fraction:
    """Return the share of suppressed records: it bounds the distance between the release's and the input's distribution."""
    given, suppressed = (n if isinstance(n := counts.get(name), int) else 0 for name in ("input", "suppressed"))
    return Fraction(max(0, suppressed - policy_suppressed), max(1, given - policy_suppressed))
