"""Persons: what a release claims of persons, recomputed against the input it was made from.

The release alone cannot show whose records it holds. Inside the gate the judge is told which row of the input each
published row was made from; it believes nothing of that before it has compared the rows. `verify --original` finds the rows
again by their values; where several fit, it says how many cannot be told apart.

Guarantee: what the findings say: every published row is a row of the input, generalised; all rows are accounted for; every
    class holds k persons, is as diverse and as close as asked when each person has weight 1, and what all classes of a
    person have in common is at least l values.
Not covered: an input that is not the one the release was made from (most of its rows will not fit).
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
from reticent.verify.result import Finding, VerificationResult, none_of
from reticent.verify.row_order import check_shuffle
from reticent.verify.variants import canonical_text, merge_person_names

if TYPE_CHECKING:
    from reticent.arrays import Bools, Int64s
    from reticent.policy import Policy
    from reticent.verify.published import Published
    from reticent.verify.requirements import Requirement

_EXACT = 2**60
_GRID = 2**44
"""Weights whose common denominator is too large are rounded to this part of a person."""
_SAMPLE_SIZE = 64
"""Rows that are looked at before all are."""
_DENSE = 64
"""Marks of one byte per record, up to which a list of all pairs of group and value is looked up instead of searched."""
AMBIGUOUS_NOTE = "claims of persons: {:,} records of the input fit several published rows"


@dataclass(frozen=True, repr=False)
class Input:
    """The input of a release: its columns as text, and the row each published row was made from, if somebody knows."""

    table: pa.Table
    source_rows: Int64s | None = None


class InputColumns:
    """The columns of an input by name, as text; numbered when somebody asks for them, which most need not be."""

    def __init__(self, table: pa.Table, rows: Int64s | None = None) -> None:
        self.raw, self._rows, self._coded = table, rows, dict[str, pa.ChunkedArray]()
        self.num_rows = table.num_rows if rows is None else len(rows)

    def __getitem__(self, name: str) -> pa.ChunkedArray:
        if name not in self._coded:
            self._coded[name] = encode_column(self.raw[name])
        return self._coded[name] if self._rows is None else self._coded[name].take(pa.array(self._rows))

    def take(self, rows: Int64s) -> InputColumns:
        """Some of the rows."""
        some = InputColumns(self.raw, rows)
        some._coded = self._coded
        return some


def compare_with_original(release: Published, policy: Policy, original: Input) -> VerificationResult:
    """Compare a table's release with its input, and recompute its claims of persons."""
    name = {"generalized": "data", "anatomy": "qit"}.get(release.shape)
    rows = release.coded.get(name or "")
    if rows is None:
        return VerificationResult((), (), ("claims of persons",) if policy.person else ())
    needed = {*(column for column in rows.column_names if column in policy.columns), *filter(None, [policy.person])}
    absent = needed - set(original.table.column_names)
    if absent:
        return VerificationResult(
            (), (), (f"claims of persons: the original lacks {len(absent)} columns of the policy",)
        )
    needed |= {*policy.sensitive, *([policy.persons.events] if policy.persons and policy.persons.events else [])}
    table = original.table.select([column for column in original.table.column_names if column in needed])
    release, table = _merge_variants(release, merge_person_names(table, policy.person), policy)
    cells = InputColumns(table)
    counted = select_records(cells, policy)
    places, doubt, sure = original.source_rows, 0, np.zeros(0, dtype=np.bool_)
    if places is None:
        from reticent.verify.original.row_assignment import assign_rows  # not where the gate knows

        places, doubt, sure = assign_rows(release, policy, encode_table(table), counted)
    findings = check_record_counts(release, cells.num_rows, counted)
    if places is None:
        return VerificationResult(tuple(findings), (), (AMBIGUOUS_NOTE.format(doubt),))
    findings += _check_origin(release, name or "", policy, cells, counted, places)
    if (
        release.shape == "generalized" and original.source_rows is not None
    ):  # among rows that read alike nobody else can tell
        findings.append(check_shuffle(places))
    if release.shape == "generalized" and original.source_rows is None and not release.no_manifest:
        findings += check_order_leak(release.tables["data"], cells, np.where(sure, places, -1), policy)
    if any(not finding.holds for finding in findings) or policy.person is None or release.kind == "evolving":
        return VerificationResult(tuple(findings))  # the methods of evolving tables claim nothing of persons
    claims = _check_claims(release, policy, cells.take(places), cells.take(counted))
    if doubt and any(not finding.holds for finding in claims):
        return VerificationResult(tuple(findings), (), (AMBIGUOUS_NOTE.format(doubt),))
    return VerificationResult((*findings, *claims))


def _merge_variants(release: Published, table: pa.Table, policy: Policy) -> tuple[Published, pa.Table]:
    """Both sides with one spelling per value, where the policy merges spellings."""
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
    """The rows that the policy's `person` section lets out: all, or each person's first or last."""
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
    """When the records came: by numbers or times where all are, else by their text."""
    spec = policy.columns[name].hierarchy if name in policy.columns else None
    days = days_of(texts, spec) if spec is not None and spec.format else texts
    try:
        times = [dt.datetime.fromisoformat((day or "").strip()) for day in days]
        sorted(times)  # refuses times of which only some have a zone
    except (ValueError, TypeError):
        return list(rank_texts(texts))
    return times


def check_record_counts(release: Published, rows: int, counted: Int64s) -> list[Finding]:
    """All persons are accounted for: the counts are those of the input. A table without a manifest states none."""
    if release.no_manifest:
        return []
    if release.kind == "evolving":  # what the policy leaves out never came into the table
        rows = len(counted)
    came, left = release.counts.get("input"), rows - len(counted)
    stated = release.explain.get("suppressed_further_records", 0)
    return [
        Finding("rows in = rows of the input", came == rows, rows, _number(came)),
        Finding("records left out by the policy are stated", stated == left, left, _number(stated)),
    ]


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) else None


def _check_origin(
    release: Published, name: str, policy: Policy, cells: InputColumns, counted: Int64s, places: Int64s
) -> list[Finding]:
    """Every published row is a row of the input that counts, each used once, with its values under what is published."""
    shown, rows, size = release.coded[name], release.coded[name].num_rows, cells.num_rows
    counts = np.zeros(size + 1, dtype=np.bool_)
    counts[counted] = True
    known = counts[np.where((places >= 0) & (places < size), places, size)]
    if len(places) != rows or not known.all():
        return [none_of("every published record is one of the input", abs(rows - int(known.sum())) or 1)]
    first = np.empty(size, dtype=np.int64)
    first[places[::-1]] = np.arange(len(places))[::-1]
    wrong = first[places] != np.arange(len(places))  # a row of the input that came out before
    source = cells.take(places)
    for column in shown.column_names:
        if column not in policy.columns or policy.columns[column].transform is not None:
            continue  # a pseudonym or a shifted date: the key tells, not the value
        if column in policy.identifiers:
            continue
        climbs = column in policy.quasi and release.shape != "anatomy"  # a coarser cell there would be one by its value
        some = _find_changes(cells.raw[column], release.raw[name][column], places, most=climbs)
        if not len(some):
            continue
        if len(some) == rows:
            cell, label = source[column], shown[column]
        else:
            cell, label = (
                encode_column(cells.raw[column].take(pa.array(places[some]))),
                shown[column].take(pa.array(some)),
            )
        wrong[some] |= ~(stands_for(cell, label, policy, column) if climbs else cells_equal(cell, label))
    findings = [none_of("every published record is one of the input", int(wrong.sum()))]
    if release.shape == "anatomy":
        findings += [_check_offers(release, policy, source)]
    return findings


def _find_changes(column: pa.ChunkedArray, shown: pa.ChunkedArray, places: Int64s, *, most: bool) -> Int64s:
    """The rows whose cell did not come out as it is, as far as that can be seen without its text; all where most of some did not.

    Where `most` may have changed, some are looked at first.
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
    """Where two columns agree; nothing and an empty text are one."""
    (here, there), _ = _common_cell_codes(left, right)
    return np.asarray(here == there)


def _check_offers(release: Published, policy: Policy, source: InputColumns) -> Finding:
    """The truth of every person is among the values of his or her group."""
    (offer, truth), values = _common_cell_codes(release.coded["st"]["value"], source[policy.sensitive[0]])
    here, there, groups = release.group_codes
    asked, offered = here * values + truth, there * values + offer
    if groups * values <= _DENSE * len(asked):
        marks = np.zeros(groups * values, dtype=np.bool_)
        marks[offered] = True
        among = marks[asked]
    else:
        among = pc.is_in(pa.array(asked), value_set=pa.array(offered)).to_numpy(zero_copy_only=False)
    return none_of("every person's value is among those of the group", len(among) - int(among.sum()))


def _common_cell_codes(*columns: pa.ChunkedArray) -> tuple[list[Int64s], int]:
    """Columns under common numbers, nothing and an empty text as one, and a bound on the numbers."""
    parts = [arrow_codes(column) for column in columns]
    common = common_codes(*(texts.cast(pa.string()).fill_null("") for _, texts in parts))
    return [own[code] for own, (code, _) in zip(common, parts, strict=True)], sum(map(len, common)) + 1


def _check_claims(release: Published, policy: Policy, source: InputColumns, table: InputColumns) -> list[Finding]:
    """What the policy asks of persons, on the rows of the input that were published."""
    if release.shape == "anatomy":
        rows, size = release.classes("qit", ["group"])
    else:
        there = release.coded["data"].column_names
        rows, size = release.classes("data", [name for name in policy.quasi if name in there])
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
    """Whether everybody has one record: then records are persons, whatever the groups."""
    return int(np.bincount(person).max(initial=0)) <= 1


def _columns_with_l(policy: Policy) -> tuple[str, ...]:
    return policy.sensitive if policy.privacy.l is not None else ()


def distinct_tuples(*columns: Int64s) -> list[Int64s]:
    """The different tuples of whole numbers, sorted, column by column."""
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
    again = 0 if _has_single_records(person) else len(rows) - len(distinct_tuples(rows, person)[0])
    return none_of("a group holds a person once", again)


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
    """The histogram in which every person spreads weight 1 over his or her records in a group, in whole parts."""
    if _has_single_records(person) or len(distinct_tuples(rows, person)[0]) == len(
        rows
    ):  # one record each: the usual histogram
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
    """Per group, the most persons that can be matched with as many different values."""
    if _has_single_records(person) or len(distinct_tuples(rows, person)[0]) == len(
        rows
    ):  # one record each: every value finds a person of its own
        return np.bincount(distinct_tuples(rows, value)[0], minlength=size)
    from reticent.verify.original.maximum_matching import matching_size  # asked for where persons have several records

    edges = np.stack(distinct_tuples(rows, person, value))
    bounds = np.searchsorted(edges[0], np.arange(size + 1))
    out = np.zeros(size, dtype=np.int64)
    for group in range(size):
        part = edges[1:, bounds[group] : bounds[group + 1]]
        heads, left = np.unique(part[0], return_inverse=True)
        seen, right = np.unique(part[1], return_inverse=True)
        if len(heads) == part.shape[1]:  # everybody has one value: each value finds a person of its own
            out[group] = len(seen)
            continue
        wishes: list[list[int]] = [[] for _ in heads]
        for head, wish in zip(left.tolist(), right.tolist(), strict=True):
            wishes[head].append(wish)
        out[group] = matching_size(wishes)
    return out


def _check_common_values(policy: Policy, rows: Int64s, person: Int64s, column: pa.ChunkedArray, name: str) -> Finding:
    """The values common to all classes of a person, for persons in several."""
    heads, homes = distinct_tuples(person, rows) if not _has_single_records(person) else (person[:0], rows[:0])
    several = np.bincount(heads)[heads] > 1
    groups: dict[int, list[int]] = {}
    for head, group in zip(heads[several].tolist(), homes[several].tolist(), strict=True):
        groups.setdefault(head, []).append(group)
    values: dict[int, set[int]] = {}
    pairs = distinct_tuples(rows, arrow_codes(column)[0]) if groups else []
    for group, value in zip(*(part.tolist() for part in pairs), strict=True):
        values.setdefault(group, set()).add(value)
    common = [len(set.intersection(*(values[g] for g in some))) for some in groups.values()]
    bound = math.ceil(policy.privacy.l.l) if policy.privacy.l is not None else 1
    few = sum(number < bound for number in common)
    where = f"column '{name}'" + (f": {few} of {len(common)} persons in several classes" if few else "")
    return Finding("values common to all records of a person", few == 0, min(common, default=None), bound, where)
