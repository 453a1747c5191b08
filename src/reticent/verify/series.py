"""Verify a series: m-unique groups, legal update instances, and the risk of every person.

A release does not state the group of each person. An attacker who knows the quasi-identifiers often knows the group; the
verifier reads it from the private ledger (keyed hashes and group numbers, no values). Without a ledger it verifies each
release on its own and lists what it could not check.

Guarantee: a release is refuted if an attacker who knows every person's groups can rule out a candidate, or if a candidate's
    share exceeds the policy's limit.
Not covered: whether the ledger agrees with the input.
Cost: O(persons * releases * m^2), in numpy; one bipartite matching per distinct pair of consecutive groups.
Reference: F. Li, S. Zhou, 2008, Definitions 14 and 15, equation (2); the one-to-one condition is ours.
Differences from the paper: the risk is the largest share of any candidate, since the verifier does not know true values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from reticent.arrays import Floats, Int64s, UInt64s
from reticent.policy import Policy
from reticent.policy.updates import Updates, updates_of
from reticent.release import Ledger
from reticent.verify.generalized import check_columns, check_counts
from reticent.verify.groups import codes, distinct_numbers, histograms, normalize_rows, number_rows
from reticent.verify.labels.validity import check_labels, is_exact
from reticent.verify.original.maximum_matching import matching_size
from reticent.verify.published import Published
from reticent.verify.result import Finding, VerificationResult, none_of
from reticent.verify.row_order import check_number_notation, check_table_order
from reticent.verify.variants import check_variants

CandidatesByGroup = dict[int, tuple[int, ...]]
GroupPath = tuple[tuple[int, tuple[int, ...]], ...]
"""The groups of a person: for each release, its position in the series and the candidates of the group."""
SHAPE = "m-distinct"
_LABELS = "published values are nodes of the hierarchy or ranges"
_STATIC_METHOD = "m-invariance"
"""The method that assumes that sensitive values never change."""
TOLERANCE = 1e-7
NEEDS_LEDGER = "legal update instances and risk over several releases (needs the ledger: --ledger STORE)"


def verify_release(release: Published, policy: Policy) -> VerificationResult:
    """Verify one release on its own: m-unique groups, one generalization per group, counterfeits accounted for."""
    data, m, form_findings = release.coded["data"], policy.m, _check_counterfeits(release)
    if not all(finding.holds for finding in form_findings):
        return VerificationResult(tuple(form_findings))
    counterfeits = _counterfeits(release)
    row, names = codes(data["group"])
    groups, size = [int(name or "") for name in names], len(names)
    values = histograms(row, size, data[policy.sensitive[0]])
    sizes, distinct = dict(zip(groups, values.sizes().tolist(), strict=True)), values.distinct()
    least = int(distinct.min()) if size else 0
    odd = sum(not 0 < n < sizes.get(group, 0) for group, n in counterfeits.items())
    kind, kinds = number_rows(data, policy.quasi)
    of_class = distinct_numbers(row * max(1, kinds) + kind) // max(1, kinds)
    return VerificationResult(
        (
            check_columns(data, policy.quasi + policy.sensitive, policy, extra=("group",)),
            *form_findings,
            *check_counts(release.counts, data.num_rows - sum(counterfeits.values()), None),
            *_check_plain_table(release, policy, {g: n - counterfeits.get(g, 0) for g, n in sizes.items()}),
            *(check_labels(codes(data[name])[1], policy, name, release.method, _LABELS) for name in policy.quasi),
            Finding("every group shows at least m distinct values", least >= m, least, m),
            none_of("no group shows a value twice", int((distinct < values.sizes()).sum())),
            *(check_variants(codes(data[name])[1], f"column '{name}'") for name in policy.sensitive),
            none_of("every group has one generalization", int((np.bincount(of_class, minlength=size) > 1).sum())),
            *_check_row_order(release, policy, sorted(groups)),
            none_of("counterfeits are fewer than the records of their group", odd),
            none_of(
                "no group with a single person shows exact quasi-identifiers",
                _count_exposed_groups(
                    release, policy, {g for g, n in counterfeits.items() if sizes.get(g, 0) - n == 1}
                ),
            ),
        )
    )


def _check_counterfeits(release: Published) -> list[Finding]:
    """Check that the table of counterfeits has one count per group and nothing else."""
    counterfeits = release.coded["counterfeits"]
    unexpected = {"group", "count"} ^ set(counterfeits.column_names)
    findings = [none_of("the table 'counterfeits' has the columns group and count", len(unexpected))]
    if unexpected:
        return findings
    repeats = counterfeits.num_rows - len(codes(counterfeits["group"])[1])
    return [
        *findings,
        none_of("the table 'counterfeits' lists a group once", repeats),
        check_number_notation(counterfeits["group"], counterfeits["count"]),
    ]


def _counterfeits(release: Published) -> dict[int, int]:
    """Return the number of counterfeits of each group that has any."""
    columns = (map(int, release.tables["counterfeits"].column(name).to_pylist()) for name in ("group", "count"))
    return dict(zip(*columns, strict=True))


def _check_row_order(release: Published, policy: Policy, groups: list[int]) -> list[Finding]:
    """Check that rows are sorted by group and text, so that their order discloses nothing, and groups numbered from 1."""
    tables = {"data": [policy.sensitive[0]], "counterfeits": [], "plain": list(policy.plain)}
    unexpected = sum(group != place for place, group in enumerate(groups, 1))
    findings = [none_of("groups are numbered from 1", unexpected)]
    for name, columns in tables.items():
        table = release.tables.get(name)
        if table is not None and {"group", *columns} <= set(table.column_names):
            findings += check_table_order(table, name, columns)
    return findings


def _check_plain_table(release: Published, policy: Policy, records: Mapping[int, int]) -> list[Finding]:
    """Check the table of plain columns: the plain columns and the group, one row per record of a group."""
    plain = release.tables.get("plain")
    if plain is None:
        return [none_of("plain columns are in a separate table", len(policy.plain))]
    names = {"group", *policy.plain}
    lines = Counter(map(int, plain.column("group").to_pylist() if "group" in plain.column_names else ()))
    return [
        none_of("the table 'plain' has the columns group and all plain columns", len(names ^ set(plain.column_names))),
        none_of(
            "the table 'plain' has a row for each record of a group",
            sum(lines[g] != records.get(g, 0) for g in {*lines, *records}),
        ),
    ]


def verify_series(releases: Sequence[Published], policy: Policy, ledger: Ledger | None = None) -> VerificationResult:
    """Verify several releases together, with persons linked by the ledger."""
    series = [release for release in releases if release.shape == SHAPE]
    if not series:
        return VerificationResult(())
    if ledger is None:
        return VerificationResult((), unchecked=(NEEDS_LEDGER,) if len(series) > 1 else ())
    views, updates = link_releases(series, policy, ledger)
    reversals = sum(later.number <= before.number for before, later in pairwise(views))
    findings = [
        none_of("the ledger matches the persons of each release", sum(v.miscounts for v in views)),
        none_of("releases are given in the order of their numbers", reversals),  # updates have a direction
    ]
    if not all(finding.holds for finding in findings):
        return VerificationResult(
            tuple(findings), notes=("The ledger does not belong to these releases, so persons cannot be linked.",)
        )
    findings += _check_persons(views, updates, policy, still=series[-1].method == _STATIC_METHOD)
    return VerificationResult(tuple(replace(f, where=f.where or "over the series") for f in findings))


def link_releases(series: Sequence[Published], policy: Policy, ledger: Ledger) -> tuple[list[LinkedRelease], Updates]:
    """Return the releases with their persons, and the possible updates of values."""
    column = policy.sensitive[0]
    values = dict.fromkeys(value for release in series for value in codes(release.coded["data"][column])[1])
    updates = updates_of(policy, column, values, constant=series[-1].method == _STATIC_METHOD)
    return [_link_release(release, policy, ledger, updates, place) for place, release in enumerate(series)], updates


@dataclass(frozen=True, repr=False)
class LinkedRelease:
    """One release as seen by an attacker who knows the group of each person."""

    number: int
    person: UInt64s
    group: Int64s
    groups: CandidatesByGroup
    miscounts: int


def _link_release(release: Published, policy: Policy, ledger: Ledger, updates: Updates, place: int) -> LinkedRelease:
    """Link one release to its persons by the ledger; without persons if the ledger does not have the release."""
    number = release.explain.get("release", place + 1)
    data = release.coded["data"]
    (row, names), (place_of, values) = codes(data["group"]), codes(data[policy.sensitive[0]])
    slot = np.array([updates.codes[value] for value in values], dtype=np.int64)[place_of]
    slots = slot[np.lexsort((slot, row))].tolist()
    ends = np.cumsum(np.bincount(row, minlength=len(names))).tolist()
    groups = {int(name or ""): tuple(slots[a:b]) for name, a, b in zip(names, [0, *ends], ends, strict=False)}
    if not isinstance(number, int) or not 0 < number <= len(ledger):
        return LinkedRelease(
            place + 1, np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64), groups, data.num_rows
        )
    person, group = ledger.persons[number - 1], ledger.groups[number - 1]
    fake = _counterfeits(release)
    seen = dict(zip(*(part.tolist() for part in np.unique(group, return_counts=True)), strict=True))
    miscounts = sum(seen.get(g, 0) + fake.get(g, 0) != len(values) for g, values in groups.items())
    miscounts += sum(g not in groups for g in seen) + len(person) - len(np.unique(person))
    return LinkedRelease(number, person, group, groups, miscounts)


def _group_paths(views: list[LinkedRelease]) -> tuple[UInt64s, Int64s, list[GroupPath]]:
    """Return all persons, the path number of each, and the paths; many persons share a path."""
    persons = np.unique(np.concatenate([view.person for view in views]))
    path, paths = np.zeros(len(persons), dtype=np.int64), [GroupPath()]
    for place, view in enumerate(views):
        at, (groups, group) = np.searchsorted(persons, view.person), np.unique(view.group, return_inverse=True)
        numbers: dict[tuple[int, ...], int] = {}
        shown = [numbers.setdefault(view.groups[group], len(numbers)) for group in groups.tolist()]
        steps_taken, own = np.unique(
            path[at] * len(groups) + np.array(shown, dtype=np.int64)[group], return_inverse=True
        )
        path[at] = len(paths) + own
        candidates = list(numbers)
        steps = (divmod(step, len(groups)) for step in steps_taken.tolist())
        paths += [(*paths[before], (place, candidates[now])) for before, now in steps]
    last, path = np.unique(path, return_inverse=True)
    return persons, path, [paths[at] for at in last.tolist()]


def _check_persons(views: list[LinkedRelease], updates: Updates, policy: Policy, *, still: bool) -> list[Finding]:
    rows = updates.matrix
    sets = [frozenset(rows.indices[rows.indptr[v] : rows.indptr[v + 1]].tolist()) for v in range(len(updates))]
    known: dict[tuple[tuple[int, ...], tuple[int, ...]], bool] = {}
    _, path, paths = _group_paths(views)
    illegal = 0
    for steps, persons in zip(paths, np.bincount(path).tolist(), strict=True):
        for pair in pairwise(candidates for _, candidates in steps):
            if pair not in known:
                known[pair] = can_match([sets[value] for value in pair[0]], pair[1])
            illegal += 0 if known[pair] else persons
    claim = "a person's groups show the same values" if still else "candidates are a legal update instance, one to one"
    largest = float(_largest_path_shares(paths, views, updates).max(initial=0.0))
    limit = policy.series.limit
    return [
        none_of(claim, illegal),
        Finding("no candidate has a share above max_risk", largest <= limit + TOLERANCE, round(largest, 9), limit),
    ]


def can_match(sets: Sequence[frozenset[int]], values: Sequence[int]) -> bool:
    """Return whether the values can be matched one to one to the sets that contain them."""
    places = [[at for at, value in enumerate(values) if value in one] for one in sets]
    return len(sets) == len(values) == matching_size(places)


def largest_shares(views: list[LinkedRelease], updates: Updates) -> dict[int, float]:
    """Return for each person the largest share of a candidate in any release (equation (2), forward-backward sums)."""
    persons, path, paths = _group_paths(views)
    return dict(zip(persons.tolist(), _largest_path_shares(paths, views, updates)[path].tolist(), strict=True))


def _largest_path_shares(paths: list[GroupPath], views: list[LinkedRelease], updates: Updates) -> Floats:
    """Return the largest share of a candidate for each path."""
    shapes: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for at, path in enumerate(paths):
        shape = tuple((views[place].number, len(candidates)) for place, candidates in path)
        shapes.setdefault(shape, []).append(at)
    powers: dict[int, Floats] = {1: updates.matrix.toarray()}
    worst = np.zeros(len(paths))
    for shape, alike in shapes.items():
        layers = [np.array([paths[at][step][1] for at in alike]) for step in range(len(shape))]
        gaps = [b[0] - a[0] for a, b in pairwise(shape)]
        for gap in gaps:
            if gap not in powers:
                powers[gap] = np.linalg.matrix_power(powers[1], gap)
        worst[alike] = _forward_backward(layers, [powers[gap] for gap in gaps])
    return worst


def _forward_backward(layers: list[Int64s], steps: list[Floats]) -> Floats:
    """Compute largest shares for paths of the same shape; a path without a feasible update counts as disclosed."""
    edges = [step[a[:, :, None], b[:, None, :]] for step, a, b in zip(steps, layers[:-1], layers[1:], strict=True)]
    forward = [np.full(layers[0].shape, 1.0)]
    for edge in edges:
        forward.append(normalize_rows(np.einsum("nu,nuv->nv", forward[-1], edge)))
    backward = np.full(layers[-1].shape, 1.0)
    worst = np.zeros(len(layers[0]))
    for i in range(len(layers) - 1, -1, -1):
        weight = forward[i] * backward
        total = weight.sum(axis=1)
        largest = np.divide(weight.max(axis=1), total, out=np.ones_like(total), where=total > 0)
        worst = np.maximum(worst, largest)
        if i:
            backward = normalize_rows(np.einsum("nuv,nv->nu", edges[i - 1], backward))
    return worst


def _count_exposed_groups(release: Published, policy: Policy, lone: set[int]) -> int:
    """Count groups of one person whose varying quasi-identifiers are all exact."""
    data = release.coded["data"]
    row, names = codes(data["group"])
    first = dict(zip((int(name or "") for name in names), np.unique(row, return_index=True)[1].tolist(), strict=True))
    columns = {name: codes(data[name]) for name in policy.quasi}
    varying = {name: cells for name, cells in columns.items() if len(cells[1]) > 1}
    return sum(
        bool(varying)
        and all(is_exact(values[code[first[group]]], policy, name) for name, (code, values) in varying.items())
        for group in lone
    )
