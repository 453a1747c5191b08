"""A veiled table against its input: whose rows these are, whether the truth is offered, and how many persons make a crowd.

Inside the gate the judge is told which row of the input each published row was made from, and believes nothing of it before it
has compared the rows. `verify --original` looks for the rows by their values: as many truths as any assignment could offer.

Guarantee: what the findings say: every published row is a row of the input, each used once, at the published level or above; a
    first sight has the row of the prior that its fields have (not in later publications of an evolving table); the truth is among the candidates but for the stated share eta,
    up to the noise in it; every published combination holds k persons.
Not covered: from the files alone, truths that were exchanged between records that read alike; the probability of sets.
Cost: one sort of the rows; without places a matching over all pairs of an input row and a published row that fit.
Reference: matchings by J. Hopcroft and R. Karp, SIAM J. Comput. 2, 1973 (scipy).
Differences from the paper: none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.arrays import Bools, Floats, Int64s
from reticent.policy import Policy
from reticent.verify.groups import codes, number_rows, present_columns
from reticent.verify.labels.coverage import Segments, levels
from reticent.verify.labels.row_matching import Field, match_rows
from reticent.verify.original.persons import AMBIGUOUS_NOTE, Input, check_record_counts, distinct_tuples, select_records
from reticent.verify.original.row_assignment import edges_of, maximum_assignment
from reticent.verify.published import Published, text_table
from reticent.verify.requirements import check_size, policy_requirements
from reticent.verify.result import Finding, VerificationResult, none_of
from reticent.verify.row_order import check_shuffle
from reticent.verify.variants import merge_person_names
from reticent.verify.veil import verifier as veil
from reticent.verify.veil.metadata import compare_counts, noisy_counts_of
from reticent.verify.veil.true_values import true_value_codes
from reticent.verify.veil.verifier import CumulativeLine

_RARE = 1e-9
"""Noise that is less likely than this is none."""
_LEAST_EPSILON = 0.1
_DRIFT = 5.0
"""Standard deviations: a random order is beyond them once in a million and more."""
Labels = set[str | None]


def compare_with_original(release: Published, policy: Policy, original: Input) -> VerificationResult:
    """Compare a veiled table with its input."""
    data, line = release.tables.get("data"), veil.line_of(release)
    table = text_table(merge_person_names(original.table, policy.person))
    if data is None or line is None or not {"stratum", "event"} <= set(data.column_names):
        return VerificationResult(())  # refuted elsewhere
    absent = {*policy.quasi, *policy.plain, *policy.sensitive, *filter(None, [policy.person])} - set(table.column_names)
    if absent:
        return VerificationResult(
            (), (), (f"claims of persons: the original lacks {len(absent)} columns of the policy",)
        )
    counted = select_records(table, policy)
    findings = check_record_counts(release, table.num_rows, counted)
    # Fields that were corrected since a person was first shown leave the row that was shown.
    begun = release.kind != "evolving" or release.explain.get("publication") == 1
    desk = _Comparison(line, data, policy, table.take(pa.array(counted)), is_first=begun)
    if original.source_rows is not None:
        return VerificationResult((*findings, *_check_known_rows(desk, release, original.source_rows, counted)))
    seats, doubt = desk.assign_rows()
    if seats is None:
        return VerificationResult(tuple(findings), (), (AMBIGUOUS_NOTE.format(doubt),))
    findings += [
        none_of(_ORIGIN, int((seats < 0).sum())),
        *_check_omissions(desk.omission_mask(), desk.strata, desk.weights(seats), release.metadata[veil.SHAPE]),
        _check_order_by_value(desk.unique_true_values(), release.kind),
    ]
    if not (seats < 0).any():
        findings += desk.check_noisy_counts(seats, release.metadata[veil.SHAPE])
    crowds = _check_classes(desk, seats) if not (seats < 0).any() else []
    if doubt and any(not finding.holds for finding in crowds):
        return VerificationResult(tuple(findings), (), (AMBIGUOUS_NOTE.format(doubt),))
    return VerificationResult((*findings, *crowds))


_ORIGIN = "every published record is one of the input"


def _check_known_rows(desk: _Comparison, release: Published, source_rows: Int64s, counted: Int64s) -> list[Finding]:
    """The findings where somebody says which row of the input stands where."""
    if len(source_rows) != len(desk.strata) or not np.isin(source_rows, counted).all():
        return [none_of(_ORIGIN, abs(len(desk.strata) - int(np.isin(source_rows, counted).sum())) or 1)]
    seats = np.searchsorted(counted, source_rows)
    wrong = ~desk.rows_fit(seats)
    wrong[np.setdiff1d(np.arange(len(seats)), np.unique(seats, return_index=True)[1])] = True
    lost = ~desk.is_offered(seats, np.arange(len(seats)))
    return [
        none_of(_ORIGIN, int(wrong.sum())),
        check_shuffle(seats),
        none_of("a first sight has the row of its fields", int(desk.wrong_strata(seats).sum())),
        *_check_omissions(lost, desk.strata, desk.weights(seats), release.metadata[veil.SHAPE]),
        _check_order_by_value(desk.true_values(seats), release.kind),
        *desk.check_noisy_counts(seats, release.metadata[veil.SHAPE]),
        *_check_classes(desk, seats),
    ]


def _check_order_by_value(true_values: Int64s, kind: str) -> Finding:
    """Whether those who have a value stand before or behind the others, by the mean of their places; a stream stands as it came."""
    claim, size = "lines do not stand by their truths", len(true_values)
    code, times = np.unique(true_values, return_inverse=True, return_counts=True)[1:]
    if kind == "stream" or len(times) < 2:
        return Finding(claim, holds=True)
    off = np.bincount(code.reshape(-1), np.arange(size)) / times - (size - 1) / 2
    worst = float(np.max(np.abs(off) / np.sqrt((size + 1) * (size - times) / (12 * times))))
    limit = math.sqrt(_DRIFT**2 + 2 * math.log(len(times)))  # as rare for many values as for one
    return Finding(claim, worst < limit, round(worst, 2), round(limit, 2))


def _check_omissions(lost: Bools, strata: Int64s, weights: Floats, metadata: Mapping[str, Any]) -> list[Finding]:
    """The truths that are not offered are the stated share of persons, up to the noise in it; by row of the prior, and in all."""
    claim = "every person's truth is among the candidates but for the stated share"
    try:
        eta = np.array(metadata["omission_rate"], dtype=np.float64)
        decay = math.exp(-max(float(metadata["omission_rate_epsilon"]), _LEAST_EPSILON) / 2)
    except (KeyError, TypeError, ValueError):
        return [Finding(claim, holds=False, where="no share is stated")]
    if eta.ndim != 1 or len(eta) <= int(strata.max(initial=0)) or not ((eta >= 0) & (eta <= 1)).all():
        return [Finding(claim, holds=False, where="no share is stated")]
    stated = eta * np.bincount(strata, weights, minlength=len(eta))
    number = np.bincount(strata[lost], weights[lost], minlength=len(eta))
    slack = math.log(_RARE / len(eta)) / math.log(decay)
    # The noise of many rows averages out: what the sum may be off by grows with the root of their number.
    spread = math.sqrt(2 * decay * len(eta)) / (1 - decay)
    most = float(stated.sum()) + slack + 6 * spread
    missed = float(number.sum())
    holds = bool((number <= stated + slack).all()) and missed <= most
    return [Finding(claim, holds, round(missed, 1), round(most, 1), "persons whose truth is not offered")]


def _check_classes(desk: _Comparison, seats: Int64s) -> list[Finding]:
    """Crowds of persons, where the policy asks for it and names them."""
    policy = desk.policy
    if policy.person is None:
        return []
    person = codes(desk.source[policy.person])[0][seats]
    rows, size = veil.record_classes(desk.data, policy)
    heads = np.bincount(distinct_tuples(rows, person)[0], minlength=size)
    rules = [rule for rule in policy_requirements(policy, persons=True) if rule.model == "k"]
    return [check_size(heads, rule, "") for rule in rules]


class _Comparison:
    """Input and release side by side: what may stand where, and what is offered there."""

    def __init__(
        self, line: CumulativeLine, data: pa.Table, policy: Policy, source: pa.Table, *, is_first: bool
    ) -> None:
        self.line, self.data, self.policy, self.source = line, data, policy, source
        self.strata = np.clip(veil.whole_numbers(data["stratum"]), 0, len(line.strata) - 1)
        self._first, self._is_first = veil.whole_numbers(data["event"]) == 0, is_first
        self._candidates = veil.candidate_codes(line, data)
        self._true_codes = true_value_codes(line.domain, source[line.sensitive], policy, line.sensitive)
        self._expected_strata = strata_of_fields(line, policy, source)
        self._edges: tuple[Int64s, Int64s] = (np.zeros(0, np.int64), np.zeros(0, np.int64))

    def rows_fit(self, seats: Int64s) -> Bools:
        """Whether published record i may be row seats[i] of the input."""
        fit = np.ones(len(seats), dtype=np.bool_)
        for field in self._fields.values():
            fit &= field.fits.covers(field.values[seats], field.labels)
        return fit

    def is_offered(self, row: Int64s, seat: Int64s) -> Bools:
        """Whether the truth of an input row is among the candidates of a published one."""
        truth = self._true_codes[row]
        return np.asarray((truth >= 0) & (self._candidates[seat] == truth[:, None]).any(axis=1))

    def true_values(self, seats: Int64s) -> Int64s:
        """The true values of published records, in the order of the lines."""
        return np.asarray(self._true_codes[seats])

    def unique_true_values(self) -> Int64s:
        """The same, of those that only one row of the input can be."""
        row, seat = self._edges
        single = (np.bincount(row)[row] == 1) & (np.bincount(seat)[seat] == 1)
        return np.asarray(self._true_codes[row[single][np.argsort(seat[single])]])

    def wrong_strata(self, seats: Int64s) -> Bools:
        """First sights under another row of the prior than that of their fields."""
        return np.asarray(self._first & (self._expected_strata[seats] != self.strata))

    def weights(self, seats: Int64s) -> Floats:
        """The part of its person that each published record is; of nobody known, a whole one."""
        weights = np.ones(len(seats))
        if self.policy.person is not None:
            known = seats >= 0
            person = codes(self.source[self.policy.person])[0][seats[known]]
            weights[known] = 1 / np.bincount(person)[person]
        return weights

    def check_noisy_counts(self, seats: Int64s, metadata: Mapping[str, Any]) -> list[Finding]:
        """The totals beside the input, where there are some: of first sights, one of a person."""
        totals = noisy_counts_of(metadata, *self.line.segments.shape)
        return (
            []
            if totals is None
            else compare_counts(totals, self.strata[self._first], self._true_codes[seats[self._first]])
        )

    def omission_mask(self) -> Bools:
        """Published records whose candidates no assignment of input rows can make true; at least so many truths are lost."""
        row, seat = self._edges
        true = self.is_offered(row, seat)
        return maximum_assignment(row[true], seat[true], self.source.num_rows, len(self.strata)) < 0

    def assign_rows(self) -> tuple[Int64s | None, int]:
        """For each published record a row of the input (-1: none fits), and how many input rows had a choice of classes."""
        meeting = match_rows([*self._fields.values(), *self._class_fields()], self.source.num_rows, len(self.strata))
        (kind, place), here = meeting.pairs, meeting.source_counts
        there = np.bincount(kind, meeting.published_counts[place], minlength=len(here))
        doubt = int(here[(np.bincount(kind, minlength=len(here)) > 1) | (there < here)].sum())
        edges = edges_of(meeting)
        if edges is None:
            return None, doubt
        self._edges = edges
        return maximum_assignment(*edges, self.source.num_rows, len(self.strata)), doubt

    def _class_fields(self) -> list[Field]:
        """What makes other classes of published records: the row of the prior, and what only the key can tell of."""
        size = len(self.line.strata) + 1
        if self._is_first and self._first.all():
            every = np.arange(size)  # -1, no row at all, is that of no published record
            fields = [Field(self._expected_strata + 1, self.strata + 1, Segments.from_pairs(every, every, every, size))]
        else:
            fields = [self._wildcard_field(self.strata, size)]
        names = present_columns((*self.policy.quasi, *self.policy.plain), self.data)
        hidden = [codes(self.data[name]) for name in names if name not in self._fields]
        return fields + [self._wildcard_field(label, len(labels)) for label, labels in hidden]

    def _wildcard_field(self, label: Int64s, size: int) -> Field:
        """Labels that may stand for whatever the input has."""
        nothing = np.zeros(size, dtype=np.int64)
        fits = Segments.from_pairs(nothing, np.arange(size), nothing[:1], size)
        return Field(np.zeros(self.source.num_rows, dtype=np.int64), label, fits)

    @cached_property
    def _fields(self) -> dict[str, Field]:
        """Published cells stand at the published level of the input's values or above; plain ones are the same."""
        names = [n for n in self.data.column_names if n in self.policy.columns]
        names = [name for name in names if self.policy.columns[name].transform is None]
        fields = {name: self._level_field(name) for name in names if name in self.policy.quasi}
        # Nothing and an empty text are one.
        plain = {
            n: [table[n].fill_null("") for table in (self.source, self.data)] for n in self.policy.plain if n in names
        }
        return fields | {name: Field.from_equal_texts(*cells) for name, cells in plain.items()}

    def _level_field(self, name: str) -> Field:
        (value, values), (label, labels) = codes(self.source[name]), codes(self.data[name])
        places = {text: at for at, text in enumerate(labels)}
        # Without k no cell climbs: a coarser one would be coarser for what its person has.
        above = publishable_labels(
            self.policy, name, values, self.policy.columns[name].level, climbs=self.policy.privacy.k is not None
        )
        pairs = [(at, places[text]) for at, nodes in enumerate(above) for text in nodes if text in places]
        known, shown = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        return Field(value, label, Segments.from_pairs(known, shown, np.arange(len(values)), len(labels)))


def strata_of_fields(line: CumulativeLine, policy: Policy, source: pa.Table) -> Int64s:
    """The first row of the prior whose cells stand above the fields of each record; -1 for none."""
    names = [name for name in line.by if name in source.column_names]
    kind, count = number_rows(source, names) if names else (np.zeros(source.num_rows, np.int64), 1)
    first = np.unique(kind, return_index=True)[1]
    fields: list[list[Labels]] = []
    for name in names:
        code, values = codes(source[name])
        level = policy.columns[name].level if name in policy.quasi else 0
        above = [{text or "" for text in nodes} | {"*"} for nodes in publishable_labels(policy, name, values, level)]
        fields.append([set(above[at]) for at in code[first]])
    strata = np.full(count, -1, dtype=np.int64)
    for at in range(min(count, len(first))):
        nodes = [field[at] for field in fields]
        fits = (
            row
            for row, cells in enumerate(line.strata)
            if all(cell in here for cell, here in zip(cells, nodes, strict=False))
        )
        strata[at] = next(fits, -1)
    return strata[kind]


def publishable_labels(
    policy: Policy, name: str, values: Sequence[str | None], level: int, *, climbs: bool = True
) -> list[Labels]:
    """Per value what may be published for it: its nodes from the level upwards, and `*`; without climbing, its node there."""
    steps = levels(pa.array(values, pa.string()), policy, name)[level:]
    named = [(nodes, names.to_pylist()) for nodes, names in (steps if climbs else steps[:1])]
    return [{names[nodes[at]] for nodes, names in named} | ({"*"} if climbs else set()) for at in range(len(values))]
