"""Generalised releases: group by the published quasi-identifiers, then recompute k, l and t of every group.

Guarantee: what the findings say, about the files read and nothing else.
Not covered: the original table (a release that kept every claim may still be useless), claims of
    persons (see `reticent.verify.original.persons`), other releases of the same people.
Cost: one sort of the rows; a million rows take seconds.
Reference: the models' own papers, see docs/models.md.
Differences from the paper: the t-closeness reference is the release's own distribution, and the distance may exceed t by
    the share of suppressed records, which is as far as the input's distribution can lie from it.
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
from reticent.verify.result import Finding, VerificationResult, none_of
from reticent.verify.variants import check_variants

REFERENCE_NOTE = (
    "t-closeness of '{}': the reference distribution is the release's own, which lies at most the share of suppressed "
    "records away from the input's; the input's is compared with --original, and was when the release was made."
)

INDEPENDENT_METHOD = "l-diversity"
"""The method of a series whose releases know nothing of one another."""
_INDEPENDENT_NOTE = (
    "Each release was judged by itself: l-diversity claims nothing against a reader of several releases."
)


def verify_release(release: Published, policy: Policy) -> VerificationResult:
    """Recompute every claim of a generalised release."""
    if "data" not in release.tables:
        return VerificationResult((Finding("the table 'data' is there", holds=False),))
    data = release.coded["data"]
    several = policy.person is not None and _has_repeated_persons(release)
    series = release.kind == "series"
    asked = policy_requirements(policy, persons=several) + (requirements({"l": policy.m}) if series else [])
    rules = record_requirements(requirements(release.claims) + asked)
    quasi = present_columns(policy.quasi, data)
    findings = [check_columns(data, policy.released, policy)]
    if series:  # judged by itself: any other method of a series promises more than one release can show
        findings.append(
            Finding("the policy asks each release of the series by itself", policy.series.method == INDEPENDENT_METHOD)
        )
    if not release.no_manifest:  # others name their groups as they like
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


_NO_REQUIREMENT_NOTE = "The policy asks for neither k nor l nor t: nothing was required, see what was measured."


def _plain_notes(release: Published, policy: Policy) -> list[str]:
    """What plain columns add to the quasi-identifiers: rows that only they make unique."""
    data = release.coded["data"]
    plain = present_columns(policy.plain, data)
    if not plain or not data.num_rows:
        return []
    alone = _count_unique_rows(release, [*policy.quasi, *plain]) / data.num_rows
    shown = ", ".join(plain[:5]) + (f" and {len(plain) - 5} more" if len(plain) > 5 else "")
    words = f"Plain columns ({shown}) are in no class: with them {alone:.0%} of the published rows are unique."
    return [f"{words} They are quasi-identifiers in disguise until shown otherwise."]


def _count_unique_rows(release: Published, names: Sequence[str]) -> int:
    """Published rows that read like no other in some columns."""
    rows, size = release.classes("data", present_columns(names, release.coded["data"]))
    return int((np.bincount(rows, minlength=size) == 1).sum())


def record_requirements(rules: list[Requirement]) -> list[Requirement]:
    """What records must show, where the claim is of persons too: k persons have k records, l persons l values."""
    return list(dict.fromkeys(replace(requirement, persons=False) for requirement in rules if requirement.visible))


def _person_demands(release: Published, policy: Policy) -> tuple[str, ...]:
    """What the policy asks of persons, of a table that claims nothing."""
    asked = policy_requirements(policy, persons=True) if release.no_manifest and policy.person is not None else []
    return tuple(f"{requirement} (needs the original)" for requirement in asked)


def count_policy_suppression(release: Published, policy: Policy) -> int:
    """Records that the policy's choice of one per person leaves out, by the manifest; none where it makes no choice."""
    if policy.persons is None or policy.persons.records == "all":
        return 0
    number = release.explain.get("suppressed_further_records", 0)
    return number if isinstance(number, int) and number >= 0 else 0


def _has_repeated_persons(release: Published) -> bool:
    """Whether the release says that some persons have several records: then also l and t are of persons."""
    return any(requirement.model != "k" for requirement in person_requirements(release.claims))


def unchecked_claims(
    claims: Mapping[str, Any], known: tuple[str, ...] = ("k", "l", "t", *OVERALL_CLAIMS)
) -> tuple[str, ...]:
    """Claims that the judge of this kind of release does not recompute, and those of persons: records show at most that they can hold."""
    hidden = (f"{requirement} (needs the original)" for requirement in person_requirements(claims))
    return (*(claim for claim in claims if claim not in known), *hidden)


def check_columns(table: pa.Table, allowed: tuple[str, ...], policy: Policy, extra: tuple[str, ...] = ()) -> Finding:
    """Only columns that the policy lets out are published."""
    stray = [name for name in table.column_names if name not in allowed and name not in extra]
    inside = sum(name in policy.identifiers for name in stray)
    return none_of("only columns the policy releases", len(stray), f"{inside} of them identifiers" if stray else "")


def check_counts(
    counts: Mapping[str, Any], rows: int, limit: float | None, policy_suppressed: int = 0
) -> list[Finding]:
    """The numbers of the manifest agree with the tables and with each other."""
    if not counts:
        return [Finding("the manifest carries its counts", holds=False)]
    numbers = {key: counts.get(key) for key in ("input", "published", "withheld", "suppressed")}
    sums = [value if isinstance(value, int) and value >= 0 else -1 for value in numbers.values()]
    if min(sums) < 0:
        return [Finding("the manifest's counts are whole numbers", holds=False)]
    came, out, held, gone = sums
    findings = [
        Finding("rows in the files = rows said to be published", rows == out, rows, out),
        Finding("rows in = published + held + suppressed", came == out + held + gone, out + held + gone, came),
    ]
    if limit is not None:
        allowed = math.floor(Fraction(str(limit)) * (came - policy_suppressed)) + policy_suppressed
        findings.append(Finding("suppressed rows within the policy's limit", gone <= allowed, gone, allowed))
    return findings


def _measure(release: Published, policy: Policy) -> dict[str, float]:
    """What holds of a table, whoever made it: classes, the records that are alone, k, and per sensitive column distinct l, entropy l and t with equal distances."""
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
        varied, _ = measures.entropy_l(groups, Fraction(1))
        parts = measures.equal_parts(len(whole))
        far, _ = measures.distance(groups, whole, np.arange(len(whole)), parts, Fraction(1))
        figures[f"l of '{name}'"] = int(groups.distinct().min())
        figures[f"entropy l of '{name}'"] = round(float(varied.min()), 6)
        figures[f"t of '{name}'"] = round(float(far.max()), 6)
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
    """Spellings, diversity and closeness of the sensitive columns, in classes of rows that stand for several each where `times` says so."""
    deep = [requirement for requirement in rules if requirement.model != "k"]
    findings = []
    if deep and not policy.sensitive:
        findings += [Finding(str(r), holds=False, where="the policy names no sensitive column") for r in deep]
    for column in policy.sensitive:
        where = f"column '{column}'"
        if column not in data.column_names:
            findings += [Finding(str(r), holds=False, where=f"{where} is not published") for r in deep]
            continue
        findings += [check_variants(codes(data[column])[1], where)]
        if not deep:
            continue
        groups = histograms(rows, size, data[column], times)
        findings += [check_l(groups, r, where) for r in deep if r.model == "l"]
        findings += [check_t(groups, r, groups.totals(), policy, column, slack=slack) for r in deep if r.model == "t"]
    return findings


def suppressed_share(counts: Mapping[str, Any], policy_suppressed: int = 0) -> Fraction:
    """How far the release's own distribution can lie from that of the input: the share of records left out."""
    came, gone = (n if isinstance(n := counts.get(name), int) else 0 for name in ("input", "suppressed"))
    return Fraction(max(0, gone - policy_suppressed), max(1, came - policy_suppressed))
