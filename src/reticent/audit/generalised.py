"""Generalised releases: group by the published quasi-identifiers, then recompute k, l and t of every group.

Guarantee: what the findings say, about the files read and nothing else.
Not covered: the original table (a release that kept every claim may still be useless), several records of one
    person in a group, other releases of the same people.
Cost: one sort of the rows; a million rows take seconds.
Reference: the models' own papers, see `reticent.policy.models`.
Differences from the paper: the t-closeness reference is the whole input where the manifest carries it.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent.audit.figures import figures
from reticent.audit.groups import codes, histograms, numbered
from reticent.audit.legal import illegal
from reticent.audit.requirements import Requirement, check_l, check_size, check_t, demanded, reference_of, requirements
from reticent.audit.verdict import Finding, Verdict, none_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from reticent.audit.groups import Groups
    from reticent.audit.published import Published
    from reticent.policy import Policy


def judge(release: Published, policy: Policy) -> Verdict:
    """Recompute every claim of a generalised release."""
    data = release.tables.get("data")
    if data is None:
        return Verdict((Finding("the table 'data' is there", holds=False),))
    rules = list(dict.fromkeys(requirements(release.claims) + demanded(policy)))
    quasi = [name for name in policy.quasi if name in data.column_names]
    findings = [check_columns(data, policy.released, policy)]
    if not release.bare:  # others name their groups as they like
        findings += [_legal(data, name, policy, release.method) for name in quasi]
    rows, size = numbered(data, quasi)
    findings += [_size(rows, size, requirement) for requirement in rules if requirement.model == "k"]
    deep, notes = [requirement for requirement in rules if requirement.model != "k"], list[str]()
    if deep and not policy.sensitive:
        findings += [Finding(str(r), holds=False, where="the policy names no sensitive column") for r in deep]
    for column in policy.sensitive if deep else ():
        if column in data.column_names:
            groups = histograms(rows, size, data[column])
            findings += _sensitive(release, policy, groups, column, deep, notes)
        else:
            findings += [Finding(str(r), holds=False, where=f"column '{column}' is not published") for r in deep]
    if not release.bare:
        findings += check_counts(release.counts, data.num_rows, policy.privacy.suppression)
    if release.bare and not rules:
        notes.append("The policy asks for neither k nor l nor t: nothing was required, see what was measured.")
    measured = figures(data, policy) if release.bare else {}
    return Verdict(tuple(findings), tuple(dict.fromkeys(notes)), unchecked(release.claims), measured)


def unchecked(claims: Mapping[str, Any], known: tuple[str, ...] = ("k", "l", "t")) -> tuple[str, ...]:
    """Claims that the judge of this kind of release does not recompute."""
    return tuple(claim for claim in claims if claim not in known)


def check_columns(table: pa.Table, allowed: tuple[str, ...], policy: Policy, extra: tuple[str, ...] = ()) -> Finding:
    """Only columns that the policy lets out are published."""
    stray = [name for name in table.column_names if name not in allowed and name not in extra]
    inside = sum(name in policy.identifiers for name in stray)
    return none_of("only columns the policy releases", len(stray), f"{inside} of them identifiers" if stray else "")


def check_counts(counts: Mapping[str, Any], rows: int, limit: float | None) -> list[Finding]:
    """The numbers of the manifest agree with the tables and with each other."""
    if not counts:
        return [Finding("the manifest carries its counts", holds=False)]
    numbers = {key: counts.get(key) for key in ("rows_in", "published", "held", "suppressed")}
    sums = [value if isinstance(value, int) and value >= 0 else -1 for value in numbers.values()]
    if min(sums) < 0:
        return [Finding("the manifest's counts are whole numbers", holds=False)]
    came, out, held, gone = sums
    findings = [
        Finding("rows in the files = rows said to be published", rows == out, rows, out),
        Finding("rows in = published + held + suppressed", came == out + held + gone, out + held + gone, came),
    ]
    if limit is not None:
        allowed = math.floor(Fraction(str(limit)) * came)
        findings.append(Finding("suppressed rows within the policy's limit", gone <= allowed, gone, allowed))
    return findings


def _legal(data: pa.Table, name: str, policy: Policy, method: str) -> Finding:
    unknown = illegal(codes(data[name])[1], policy, name, method)
    return none_of("published values are nodes of the hierarchy", unknown, f"column '{name}'")


def _size(rows: Any, size: int, requirement: Requirement) -> Finding:
    return check_size(np.bincount(rows, minlength=size), requirement, "")


def _sensitive(
    release: Published, policy: Policy, groups: Groups, column: str, rules: list[Requirement], notes: list[str]
) -> list[Finding]:
    """Diversity and closeness of one sensitive column."""
    findings = [check_l(groups, r, f"column '{column}'") for r in rules if r.model == "l"]
    closeness = [r for r in rules if r.model == "t"]
    if closeness:
        reference = reference_of(release.explain, column)
        origin = "the whole input's, by the manifest" if reference else "the release's own; the manifest gives none"
        notes.append(f"t-closeness of '{column}': the reference distribution is {origin}.")
        if reference:
            findings.append(_covers(reference, groups, release.counts, column))
        findings += [check_t(groups, r, reference or groups.totals(), policy, column) for r in closeness]
    return findings


def _covers(reference: Mapping[str | None, int], groups: Groups, counts: Mapping[str, Any], column: str) -> Finding:
    """A reference distribution that the release cannot have come from proves nothing."""
    short = sum(max(0, count - reference.get(value, 0)) for value, count in groups.totals().items())
    missing = abs(sum(reference.values()) - int(counts.get("rows_in", sum(reference.values()))))
    return none_of("the reference distribution covers the input and the release", short + missing, f"column '{column}'")
