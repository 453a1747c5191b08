"""Persons: recompute what a release claims about persons, with the input.

The release alone does not show which person a record belongs to. In the gate, the engine says which input row each published
row comes from; the verifier compares the rows before it relies on that. `verify --original` finds the rows by their values
and reports how many input rows fit several published rows.

Guarantee: if all findings hold, every published row is a generalized row of the input, and all rows are accounted for. An
    attacker who knows a person's quasi-identifiers sees classes of k persons, diverse and close as required when each person
    has weight 1. All classes of a person have at least l values in common.
Not covered: a wrong input (most of its rows will not fit).
Cost: one sort of the rows, one matching per class that has persons with several records.
Reference: H. Kuhn, "The Hungarian method", 1955 (augmenting paths).
Differences from the paper: none.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reticent.policy.labels import days_of
from reticent.verify.groups import (
    Groups,
    arrow_codes,
    codes,
    common_codes,
    distinct_numbers,
    encode_column,
    encode_table,
    histograms,
    rank_texts,
)
from reticent.verify.labels.coverage import stands_for
from reticent.verify.original.order_leak import check_order_leak
from reticent.verify.requirements import check_l, check_size, check_t, policy_requirements
from reticent.verify.result import Finding, FormCheck, VerificationResult, none_of
from reticent.verify.row_order import check_shuffle
from reticent.verify.variants import canonical_text, merge_person_names

if TYPE_CHECKING:
    from reticent.arrays import Bools, Int64s
    from reticent.policy import Policy
    from reticent.verify.published import Published
    from reticent.verify.requirements import Requirement

_EXACT = 2**60
_GRID = 2**44
"""Weights with a larger common denominator are rounded to this fraction of a person."""
_SAMPLE_SIZE = 64
"""Rows to compare first; all rows follow only if these do not decide."""
_DENSE = 64
"""Bytes per record that a lookup table of all pairs of group and value may take."""
AMBIGUOUS_NOTE = "claims about persons: {:,} input rows fit several published rows"


@dataclass(frozen=True, repr=False)
class Input:
    """The input of a release, and the input row of each published row, if known."""

    table: pa.Table
    source_rows: Int64s | None = None


class InputColumns:
    """The columns of an input by name, dictionary-encoded as text on first use."""

    def __init__(self, table: pa.Table, rows: Int64s | None = None) -> None:
        self.raw, self._rows, self._coded = table, rows, dict[str, pa.ChunkedArray]()
        self.num_rows = table.num_rows if rows is None else len(rows)

    def __getitem__(self, name: str) -> pa.ChunkedArray:
        if name not in self._coded:
            self._coded[name] = encode_column(self.raw[name])
        return self._coded[name] if self._rows is None else self._coded[name].take(pa.array(self._rows))

    def take(self, rows: Int64s) -> InputColumns:
        """Return the given rows."""
        part = InputColumns(self.raw, rows)
        part._coded = self._coded
        return part


def compare_with_original(release: Published, policy: Policy, original: Input) -> VerificationResult:
    """Compare the release of a table with its input, and recompute its claims about persons."""
    name = {"generalized": "data", "anatomy": "qit"}.get(release.shape)
    rows = release.coded.get(name or "")
    if rows is None:
        return VerificationResult((), (), ("claims about persons",) if policy.person else ())
    needed = {*(column for column in rows.column_names if column in policy.columns), *filter(None, [policy.person])}
    absent = needed - set(original.table.column_names)
    if absent:
        return VerificationResult(
            (), (), (f"claims about persons: the original lacks {len(absent)} columns of the policy",)
        )
    needed |= {*policy.sensitive, *([policy.persons.events] if policy.persons and policy.persons.events else [])}
    table = original.table.select([column for column in original.table.column_names if column in needed])
    release, table = _merge_variants(release, merge_person_names(table, policy.person), policy)
    cells = InputColumns(table)
    released = select_records(cells, policy)
    places, ambiguous, unique = original.source_rows, 0, np.zeros(0, dtype=np.bool_)
    if places is None:
        from reticent.verify.original.row_assignment import assign_rows  # the gate knows the rows already

        places, ambiguous, unique = assign_rows(release, policy, encode_table(table), released)
    findings = check_record_counts(release, cells.num_rows, released)
    if places is None:
        return VerificationResult(tuple(findings), (), (AMBIGUOUS_NOTE.format(ambiguous),))
    findings += _check_origin(release, name or "", policy, cells, released, places)
    if release.shape == "generalized" and original.source_rows is not None:  # only the gate can tell equal rows apart
        findings.append(check_shuffle(places))
    if release.shape == "generalized" and original.source_rows is None and not release.no_manifest:
        findings += check_order_leak(release.tables["data"], cells, np.where(unique, places, -1), policy)
    if any(not finding.holds for finding in findings) or policy.person is None or release.kind == "evolving":
        return VerificationResult(tuple(findings))  # methods for evolving tables claim nothing about persons
    claims = _check_claims(release, policy, cells.take(places), cells.take(released))
    if ambiguous and any(not finding.holds for finding in claims):
        return VerificationResult(tuple(findings), (), (AMBIGUOUS_NOTE.format(ambiguous),))
    return VerificationResult((*findings, *claims))


def _merge_variants(release: Published, table: pa.Table, policy: Policy) -> tuple[Published, pa.Table]:
    """Return both sides with one form per value if the policy merges variants."""
    names = [name for name in policy.sensitive if policy.columns[name].normalize]
    if not names:
        return release, table
    tables = {key: _fold_variants(part, [*names, "value"]) for key, part in release.tables.items()}
    return replace(release, tables=tables), _fold_variants(table, names)


def _fold_variants(table: pa.Table, names: list[str]) -> pa.Table:
    for name in names:
        if name in table.column_names:
            code, values = codes(encode_column(table[name]))
            words = pa.array([canonical_text(value) for value in values], pa.string()).take(pa.array(code))
            table = table.set_column(table.column_names.index(name), name, words)
    return table


def select_records(table: pa.Table | InputColumns, policy: Policy) -> Int64s:
    """Return the rows that the policy's `person` section releases: all, or the first or last of each person."""
    settings = policy.persons
    everything = np.arange(table.num_rows)
    if settings is None or settings.records == "all":
        return everything
    owner = table[settings.column].to_pylist()
    moments = everything.tolist()
    if settings.events is not None:
        moments = _moments(table[settings.events].to_pylist(), policy, settings.events)
    last = settings.records == "last"
    best: dict[str | None, int] = {}
    for row, person in enumerate(owner):
        before = best.get(person)
        if before is None or (moments[row] >= moments[before] if last else moments[row] < moments[before]):
            best[person] = row
    return np.array(sorted(best.values()), dtype=np.int64)


def _moments(texts: list[str | None], policy: Policy, name: str) -> list[Any]:
    """Return sort keys for the times of records: times if all are times, else ranks of their texts."""
    spec = policy.columns[name].hierarchy if name in policy.columns else None
    days = days_of(texts, spec) if spec is not None and spec.format else texts
    try:
        times = [dt.datetime.fromisoformat((day or "").strip()) for day in days]
        sorted(times)  # raises TypeError if only some times have a zone
    except (ValueError, TypeError):
        return list(rank_texts(texts))
    return times


def check_record_counts(release: Published, rows: int, released: Int64s) -> list[Finding]:
    """Check that the counts of the manifest match the input; a table without a manifest states none."""
    if release.no_manifest:
        return []
    if release.kind == "evolving":  # records that the policy suppresses never enter the table
        rows = len(released)
    given, suppressed = release.counts.get("input"), rows - len(released)
    stated = release.explain.get("suppressed_further_records", 0)
    return [
        FormCheck("the manifest states the rows of the input", given == rows, rows, _number(given)),
        Finding(
            "the manifest states the records that the policy suppresses",
            stated == suppressed,
            suppressed,
            _number(stated),
        ),
    ]


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) else None


def _check_origin(
    release: Published, name: str, policy: Policy, cells: InputColumns, released: Int64s, places: Int64s
) -> list[Finding]:
    """Check that every published row comes from a released input row, used once, and that its labels cover the values."""
    shown, rows, size = release.coded[name], release.coded[name].num_rows, cells.num_rows
    counts = np.zeros(size + 1, dtype=np.bool_)
    counts[released] = True
    known = counts[np.where((places >= 0) & (places < size), places, size)]
    if len(places) != rows or not known.all():
        return [none_of("every published record comes from the input", abs(rows - int(known.sum())) or 1)]
    first = np.empty(size, dtype=np.int64)
    first[places[::-1]] = np.arange(len(places))[::-1]
    wrong = first[places] != np.arange(len(places))  # the input row was published before
    source = cells.take(places)
    for column in shown.column_names:
        if column not in policy.columns or policy.columns[column].transform is not None:
            continue  # a pseudonym or a shifted date: derived with the key
        if column in policy.identifiers:
            continue
        climbs = column in policy.quasi and release.shape != "anatomy"  # Anatomy publishes exact cells
        changed = _find_changes(cells.raw[column], release.raw[name][column], places, most=climbs)
        if not len(changed):
            continue
        if len(changed) == rows:
            cell, label = source[column], shown[column]
        else:
            cell, label = (
                encode_column(cells.raw[column].take(pa.array(places[changed]))),
                shown[column].take(pa.array(changed)),
            )
        wrong[changed] |= ~(stands_for(cell, label, policy, column) if climbs else cells_equal(cell, label))
    findings = [none_of("every published record comes from the input", int(wrong.sum()))]
    if release.shape == "anatomy":
        findings += [_check_offers(release, policy, source)]
    return findings


def _find_changes(column: pa.ChunkedArray, shown: pa.ChunkedArray, places: Int64s, *, most: bool) -> Int64s:
    """Return the rows whose cell changed; all rows if more than half changed, or if the types cannot be compared.

    With `most`, a sample is compared first.
    """
    everything = np.arange(len(places))
    kind = column.type
    plain = pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_date(kind)
    if kind != shown.type or not plain:
        return everything
    for end in (_SAMPLE_SIZE, len(places)) if most else (len(places),):
        cells, labels = column.take(pa.array(places[:end])), shown.slice(0, end)
        if cells.equals(labels):
            changed = everything[:0]
            continue
        changed = np.flatnonzero(~pc.equal(cells, labels).fill_null(fill_value=False).to_numpy())
        if 2 * len(changed) > end:
            return everything
    return changed


def cells_equal(left: pa.ChunkedArray, right: pa.ChunkedArray) -> Bools:
    """Return where two columns agree; a missing cell equals an empty text."""
    (here, there), _ = _common_cell_codes(left, right)
    return np.asarray(here == there)


def _check_offers(release: Published, policy: Policy, source: InputColumns) -> Finding:
    """Check that every person's true value is among the values of their group."""
    (offer, true_value), values = _common_cell_codes(release.coded["st"]["value"], source[policy.sensitive[0]])
    here, there, groups = release.group_codes
    needed, offered = here * values + true_value, there * values + offer
    if groups * values <= _DENSE * len(needed):
        is_offered = np.zeros(groups * values, dtype=np.bool_)
        is_offered[offered] = True
        among = is_offered[needed]
    else:
        among = pc.is_in(pa.array(needed), value_set=pa.array(offered)).to_numpy(zero_copy_only=False)
    return none_of("every person's true value is among the values of their group", len(among) - int(among.sum()))


def _common_cell_codes(*columns: pa.ChunkedArray) -> tuple[list[Int64s], int]:
    """Return common codes for columns, a missing cell like an empty text, and an upper bound on the codes."""
    parts = [arrow_codes(column) for column in columns]
    common = common_codes(*(texts.cast(pa.string()).fill_null("") for _, texts in parts))
    return [own[code] for own, (code, _) in zip(common, parts, strict=True)], sum(map(len, common)) + 1


def _check_claims(release: Published, policy: Policy, source: InputColumns, table: InputColumns) -> list[Finding]:
    """Check the policy's requirements on persons for the published rows of the input."""
    if release.shape == "anatomy":
        rows, size = release.classes("qit", ["group"])
    else:
        columns = release.coded["data"].column_names
        rows, size = release.classes("data", [name for name in policy.quasi if name in columns])
    person = arrow_codes(source[policy.person or ""])[0]
    findings = [_check_once(rows, person)] if release.shape == "anatomy" else []
    heads = np.bincount(rows if _has_single_records(person) else distinct_tuples(rows, person)[0], minlength=size)
    for requirement in policy_requirements(policy, persons=True):
        if requirement.model == "k" and release.shape != "anatomy":
            findings.append(check_size(heads, requirement, ""))
        names = policy.sensitive if requirement.model != "k" else ()
        findings += [_check_diversity(requirement, policy, name, (rows, size, person), source, table) for name in names]
    return findings + [
        _check_common_values(policy, rows, person, source[name], name) for name in _columns_with_l(policy)
    ]


def _has_single_records(person: Int64s) -> bool:
    """Return whether every person has one record: then records count as persons."""
    return int(np.bincount(person).max(initial=0)) <= 1


def _columns_with_l(policy: Policy) -> tuple[str, ...]:
    return policy.sensitive if policy.privacy.l is not None else ()


def distinct_tuples(*columns: Int64s) -> list[Int64s]:
    """Return the distinct tuples of whole numbers, sorted, column by column."""
    widths = [int(column.max(initial=0)) + 1 for column in columns]
    if math.prod(widths) >= _EXACT:
        return list(np.unique(np.stack(columns), axis=1))
    key = columns[0]
    for column, width in zip(columns[1:], widths[1:], strict=True):
        key = key * width + column
    return _split_key(distinct_numbers(key), widths)


def _split_key(key: Int64s, widths: list[int]) -> list[Int64s]:
    out = []
    for width in reversed(widths[1:]):
        out.append(key % width)
        key = key // width
    return [key, *reversed(out)]


def _check_once(rows: Int64s, person: Int64s) -> Finding:
    repeats = 0 if _has_single_records(person) else len(rows) - len(distinct_tuples(rows, person)[0])
    return none_of("no group has two records of one person", repeats)


def _check_diversity(
    requirement: Requirement,
    policy: Policy,
    name: str,
    peopled: tuple[Int64s, int, Int64s],
    source: InputColumns,
    table: InputColumns,
) -> Finding:
    rows, size, person = peopled
    if requirement.model == "l" and requirement.kind == "distinct":
        return check_size(
            matching_sizes(rows, size, person, arrow_codes(source[name])[0]), requirement, f"column '{name}'"
        )
    groups = weight_by_person(rows, size, person, source[name])
    if requirement.model == "l":
        return check_l(groups, requirement, f"column '{name}'")
    everybody = arrow_codes(table[policy.person or ""])[0]
    whole = weight_by_person(np.zeros(table.num_rows, dtype=np.int64), 1, everybody, table[name])
    return check_t(groups, requirement, whole.totals(), policy, name)


def weight_by_person(rows: Int64s, size: int, person: Int64s, column: pa.ChunkedArray) -> Groups:
    """Return the histogram in which every person has weight 1 per group, spread over their records, as whole numbers."""
    if _has_single_records(person) or len(distinct_tuples(rows, person)[0]) == len(
        rows
    ):  # one record each: plain histogram
        return histograms(rows, size, column)
    value, values = codes(column)
    triples, times = np.unique(np.stack([rows, person, value]), axis=1, return_counts=True)
    _, at = np.unique(triples[:2], axis=1, return_inverse=True)
    at = at.reshape(-1)
    records = np.bincount(at, weights=times).astype(np.int64)[at]
    scale = np.zeros(size, dtype=np.int64)
    bounds = np.searchsorted(triples[0], np.arange(size + 1))
    for group in range(size):
        part = records[bounds[group] : bounds[group + 1]]
        common = math.lcm(*(int(n) for n in np.unique(part))) if len(part) else 1
        scale[group] = common if common * max(1, len(part)) < _EXACT else _GRID
    exact = scale[triples[0]] % records == 0
    share = np.where(exact, times * (scale[triples[0]] // records), np.rint(times * (scale[triples[0]] / records)))
    width = max(1, len(values))
    pairs, inverse = np.unique(triples[0] * width + triples[2], return_inverse=True)
    sums = np.zeros(len(pairs), dtype=np.int64)
    np.add.at(sums, inverse.reshape(-1), share.astype(np.int64))
    return Groups(pairs // width, pairs % width, sums, size, values)


def matching_sizes(rows: Int64s, size: int, person: Int64s, value: Int64s) -> Int64s:
    """Return for each group the size of a maximum matching of persons with distinct values."""
    if _has_single_records(person) or len(distinct_tuples(rows, person)[0]) == len(
        rows
    ):  # one record each: the number of distinct values
        return np.bincount(distinct_tuples(rows, value)[0], minlength=size)
    from reticent.verify.original.maximum_matching import matching_size  # needed only if persons have several records

    edges = np.stack(distinct_tuples(rows, person, value))
    bounds = np.searchsorted(edges[0], np.arange(size + 1))
    out = np.zeros(size, dtype=np.int64)
    for group in range(size):
        part = edges[1:, bounds[group] : bounds[group + 1]]
        heads, left = np.unique(part[0], return_inverse=True)
        distinct, right = np.unique(part[1], return_inverse=True)
        if len(heads) == part.shape[1]:  # one value each: the number of distinct values
            out[group] = len(distinct)
            continue
        choices: list[list[int]] = [[] for _ in heads]
        for head, choice in zip(left.tolist(), right.tolist(), strict=True):
            choices[head].append(choice)
        out[group] = matching_size(choices)
    return out


def _check_common_values(policy: Policy, rows: Int64s, person: Int64s, column: pa.ChunkedArray, name: str) -> Finding:
    """Check how many values all classes of a person have in common, for persons in several classes."""
    heads, homes = distinct_tuples(person, rows) if not _has_single_records(person) else (person[:0], rows[:0])
    several = np.bincount(heads)[heads] > 1
    groups: dict[int, list[int]] = {}
    for head, group in zip(heads[several].tolist(), homes[several].tolist(), strict=True):
        groups.setdefault(head, []).append(group)
    values: dict[int, set[int]] = {}
    pairs = distinct_tuples(rows, arrow_codes(column)[0]) if groups else []
    for group, value in zip(*(part.tolist() for part in pairs), strict=True):
        values.setdefault(group, set()).add(value)
    common = [len(set.intersection(*(values[g] for g in own))) for own in groups.values()]
    bound = math.ceil(policy.privacy.l.l) if policy.privacy.l is not None else 1
    few = sum(number < bound for number in common)
    where = f"column '{name}'" + (f": {few} of {len(common)} persons in several classes have fewer" if few else "")
    return Finding(
        "all classes of a person have at least l values in common", few == 0, min(common, default=None), bound, where
    )
