"""Compare a veiled table with its input: origin of rows, omitted true values, and persons per equivalence class.

In the gate, the engine says which input row each published row comes from; the verifier compares the rows before it relies on
that. `verify --original` assigns the rows by their values so that as many true values as possible are offered.

Guarantee: if all findings hold, every published row is a row of the input, used once, at the published level or above. A first
    event has the stratum of its fields (except in later publications of an evolving table). The true value is among the
    candidates except at the stated omission rate, up to its noise. An attacker who knows a person's published fields sees k
    persons with them.
Not covered: without known rows, true values exchanged between equal records; the probability of sets.
Cost: one sort of the rows; without known rows, a matching over all pairs of an input row and a published row that fit.
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
"""Noise less likely than this counts as impossible."""
_LEAST_EPSILON = 0.1
_DRIFT = 5.0
"""Standard deviations that a random order exceeds less than once in a million cases."""
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
            (), (), (f"claims about persons: the original lacks {len(absent)} columns of the policy",)
        )
    released = select_records(table, policy)
    findings = check_record_counts(release, table.num_rows, released)
    # Later publications keep the first stratum of a person even if fields were corrected since.
    is_first = release.kind != "evolving" or release.explain.get("publication") == 1
    comparison = _Comparison(line, data, policy, table.take(pa.array(released)), is_first=is_first)
    if original.source_rows is not None:
        return VerificationResult((*findings, *_check_known_rows(comparison, release, original.source_rows, released)))
    seats, ambiguous = comparison.assign_rows()
    if seats is None:
        return VerificationResult(tuple(findings), (), (AMBIGUOUS_NOTE.format(ambiguous),))
    findings += [
        none_of(_ORIGIN, int((seats < 0).sum())),
        *_check_omissions(
            comparison.omission_mask(), comparison.strata, comparison.weights(seats), release.metadata[veil.SHAPE]
        ),
        _check_order_by_value(comparison.unique_true_values(), release.kind),
    ]
    if not (seats < 0).any():
        findings += comparison.check_noisy_counts(seats, release.metadata[veil.SHAPE])
    classes = _check_classes(comparison, seats) if not (seats < 0).any() else []
    if ambiguous and any(not finding.holds for finding in classes):
        return VerificationResult(tuple(findings), (), (AMBIGUOUS_NOTE.format(ambiguous),))
    return VerificationResult((*findings, *classes))


_ORIGIN = "every published record comes from the input"


def _check_known_rows(
    comparison: _Comparison, release: Published, source_rows: Int64s, released: Int64s
) -> list[Finding]:
    """Return the findings if the input row of every published row is known."""
    if len(source_rows) != len(comparison.strata) or not np.isin(source_rows, released).all():
        return [none_of(_ORIGIN, abs(len(comparison.strata) - int(np.isin(source_rows, released).sum())) or 1)]
    seats = np.searchsorted(released, source_rows)
    wrong = ~comparison.rows_fit(seats)
    wrong[np.setdiff1d(np.arange(len(seats)), np.unique(seats, return_index=True)[1])] = True
    omitted = ~comparison.is_offered(seats, np.arange(len(seats)))
    return [
        none_of(_ORIGIN, int(wrong.sum())),
        check_shuffle(seats),
        none_of("every first event has the stratum of its fields", int(comparison.wrong_strata(seats).sum())),
        *_check_omissions(omitted, comparison.strata, comparison.weights(seats), release.metadata[veil.SHAPE]),
        _check_order_by_value(comparison.true_values(seats), release.kind),
        *comparison.check_noisy_counts(seats, release.metadata[veil.SHAPE]),
        *_check_classes(comparison, seats),
    ]


def _check_order_by_value(true_values: Int64s, kind: str) -> Finding:
    """Check that records with the same true value have no typical position; a stream keeps the order of its input."""
    claim, size = "the order of records does not follow their true values", len(true_values)
    code, times = np.unique(true_values, return_inverse=True, return_counts=True)[1:]
    if kind == "stream" or len(times) < 2:
        return Finding(claim, holds=True)
    off = np.bincount(code.reshape(-1), np.arange(size)) / times - (size - 1) / 2
    worst = float(np.max(np.abs(off) / np.sqrt((size + 1) * (size - times) / (12 * times))))
    limit = math.sqrt(_DRIFT**2 + 2 * math.log(len(times)))  # corrects for testing many values
    return Finding(claim, worst < limit, round(worst, 2), round(limit, 2))


def _check_omissions(omitted: Bools, strata: Int64s, weights: Floats, metadata: Mapping[str, Any]) -> list[Finding]:
    """Check that omissions match the stated rate up to its noise, in each stratum of the prior and in total."""
    claim = "the true value is among the candidates except at the stated omission rate"
    try:
        rates = np.array(metadata["omission_rate"], dtype=np.float64)
        decay = math.exp(-max(float(metadata["omission_rate_epsilon"]), _LEAST_EPSILON) / 2)
    except (KeyError, TypeError, ValueError):
        return [Finding(claim, holds=False, where="no valid omission rate is stated")]
    if rates.ndim != 1 or len(rates) <= int(strata.max(initial=0)) or not ((rates >= 0) & (rates <= 1)).all():
        return [Finding(claim, holds=False, where="no valid omission rate is stated")]
    stated = rates * np.bincount(strata, weights, minlength=len(rates))
    number = np.bincount(strata[omitted], weights[omitted], minlength=len(rates))
    slack = math.log(_RARE / len(rates)) / math.log(decay)
    # The noise of many strata averages out: the error of the sum grows with the root of their number.
    spread = math.sqrt(2 * decay * len(rates)) / (1 - decay)
    most = float(stated.sum()) + slack + 6 * spread
    missed = float(number.sum())
    holds = bool((number <= stated + slack).all()) and missed <= most
    return [Finding(claim, holds, round(missed, 1), round(most, 1), "persons whose true value is omitted")]


def _check_classes(comparison: _Comparison, seats: Int64s) -> list[Finding]:
    """Check the persons per equivalence class if the policy requires k and names persons."""
    policy = comparison.policy
    if policy.person is None:
        return []
    person = codes(comparison.source[policy.person])[0][seats]
    rows, size = veil.record_classes(comparison.data, policy)
    heads = np.bincount(distinct_tuples(rows, person)[0], minlength=size)
    rules = [rule for rule in policy_requirements(policy, persons=True) if rule.model == "k"]
    return [check_size(heads, rule, "") for rule in rules]


class _Comparison:
    """Input and release together: which input row fits which published row, and which values are offered."""

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
        """Return whether published record i may come from input row seats[i]."""
        fit = np.ones(len(seats), dtype=np.bool_)
        for field in self._fields.values():
            fit &= field.fits.covers(field.values[seats], field.labels)
        return fit

    def is_offered(self, rows: Int64s, seats: Int64s) -> Bools:
        """Return whether the true value of an input row is among the candidates of a published record."""
        codes = self._true_codes[rows]
        return np.asarray((codes >= 0) & (self._candidates[seats] == codes[:, None]).any(axis=1))

    def true_values(self, seats: Int64s) -> Int64s:
        """Return the true values of published records, in their order."""
        return np.asarray(self._true_codes[seats])

    def unique_true_values(self) -> Int64s:
        """Return the true values of records that only one input row fits."""
        row, seat = self._edges
        single = (np.bincount(row)[row] == 1) & (np.bincount(seat)[seat] == 1)
        return np.asarray(self._true_codes[row[single][np.argsort(seat[single])]])

    def wrong_strata(self, seats: Int64s) -> Bools:
        """Return which first events have a stratum other than that of their fields."""
        return np.asarray(self._first & (self._expected_strata[seats] != self.strata))

    def weights(self, seats: Int64s) -> Floats:
        """Return the weight of each published record: 1 / records of its person; 1 if the person is unknown."""
        weights = np.ones(len(seats))
        if self.policy.person is not None:
            known = seats >= 0
            person = codes(self.source[self.policy.person])[0][seats[known]]
            weights[known] = 1 / np.bincount(person)[person]
        return weights

    def check_noisy_counts(self, seats: Int64s, metadata: Mapping[str, Any]) -> list[Finding]:
        """Compare the noisy counts, if there are any, with the first events of the input."""
        totals = noisy_counts_of(metadata, *self.line.segments.shape)
        return (
            []
            if totals is None
            else compare_counts(totals, self.strata[self._first], self._true_codes[seats[self._first]])
        )

    def omission_mask(self) -> Bools:
        """Return records that stay without a true value in the best assignment: a lower bound on omissions."""
        row, seat = self._edges
        true = self.is_offered(row, seat)
        return maximum_assignment(row[true], seat[true], self.source.num_rows, len(self.strata)) < 0

    def assign_rows(self) -> tuple[Int64s | None, int]:
        """Return an input row for each published record (-1: none), and the number of input rows that fit several classes."""
        match = match_rows([*self._fields.values(), *self._class_fields()], self.source.num_rows, len(self.strata))
        (kind, place), here = match.pairs, match.source_counts
        there = np.bincount(kind, match.published_counts[place], minlength=len(here))
        ambiguous = int(here[(np.bincount(kind, minlength=len(here)) > 1) | (there < here)].sum())
        edges = edges_of(match)
        if edges is None:
            return None, ambiguous
        self._edges = edges
        return maximum_assignment(*edges, self.source.num_rows, len(self.strata)), ambiguous

    def _class_fields(self) -> list[Field]:
        """Return the fields that further split classes: the stratum of the prior, and columns derived with the key."""
        size = len(self.line.strata) + 1
        if self._is_first and self._first.all():
            every = np.arange(size)  # -1 (no stratum) fits no published record
            fields = [Field(self._expected_strata + 1, self.strata + 1, Segments.from_pairs(every, every, every, size))]
        else:
            fields = [self._wildcard_field(self.strata, size)]
        names = present_columns((*self.policy.quasi, *self.policy.plain), self.data)
        hidden = [codes(self.data[name]) for name in names if name not in self._fields]
        return fields + [self._wildcard_field(label, len(labels)) for label, labels in hidden]

    def _wildcard_field(self, label: Int64s, size: int) -> Field:
        """Return a field whose labels cover every input value."""
        nothing = np.zeros(size, dtype=np.int64)
        fits = Segments.from_pairs(nothing, np.arange(size), nothing[:1], size)
        return Field(np.zeros(self.source.num_rows, dtype=np.int64), label, fits)

    @cached_property
    def _fields(self) -> dict[str, Field]:
        """Fields to compare: quasi-identifiers at the published level or above, plain columns unchanged."""
        names = [n for n in self.data.column_names if n in self.policy.columns]
        names = [name for name in names if self.policy.columns[name].transform is None]
        fields = {name: self._level_field(name) for name in names if name in self.policy.quasi}
        # A missing cell equals an empty text.
        plain = {
            n: [table[n].fill_null("") for table in (self.source, self.data)] for n in self.policy.plain if n in names
        }
        return fields | {name: Field.from_equal_texts(*cells) for name, cells in plain.items()}

    def _level_field(self, name: str) -> Field:
        (value, values), (label, labels) = codes(self.source[name]), codes(self.data[name])
        places = {text: at for at, text in enumerate(labels)}
        # Without k, no cell is above its level: a coarser cell could disclose the value.
        above = publishable_labels(
            self.policy, name, values, self.policy.columns[name].level, climbs=self.policy.privacy.k is not None
        )
        pairs = [(at, places[text]) for at, nodes in enumerate(above) for text in nodes if text in places]
        known, shown = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        return Field(value, label, Segments.from_pairs(known, shown, np.arange(len(values)), len(labels)))


def strata_of_fields(line: CumulativeLine, policy: Policy, source: pa.Table) -> Int64s:
    """Return for each record the first stratum of the prior that covers its fields; -1 for none."""
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
    """Return the labels that may be published for each value: its nodes from the level up and `*`, or its node only."""
    steps = levels(pa.array(values, pa.string()), policy, name)[level:]
    named = [(nodes, names.to_pylist()) for nodes, names in (steps if climbs else steps[:1])]
    return [{names[nodes[at]] for nodes, names in named} | ({"*"} if climbs else set()) for at in range(len(values))]
