"""Assign the rows of an input to published rows by their values.

An input row fits a published row that covers its quasi-identifiers and offers its sensitive value. Input rows with the fewest
choices are assigned first, each to the published row with the fewest candidates. Unassigned rows must be the suppressed ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from reticent.arrays import Bools, Int64s
from reticent.policy import Policy
from reticent.verify.groups import codes
from reticent.verify.labels.coverage import Segments, expand_counts
from reticent.verify.labels.row_matching import Field, RowMatch, match_rows
from reticent.verify.published import Published

_MAX_EDGES = 1 << 24


class RowAssignment(NamedTuple):
    """The input row of each published row.

    Attributes:
        source_rows: -1 if no input row fits; None if too many pairs of rows fit.
        ambiguous: number of input rows with several choices.
        unique: the published rows that only one input row fits and that no other row equals; none for Anatomy.
    """

    source_rows: Int64s | None
    ambiguous: int
    unique: Bools


def assign_rows(release: Published, policy: Policy, table: pa.Table, released: Int64s) -> RowAssignment:
    """Assign the released rows of an input to the rows of a release."""
    source = table.take(pa.array(released))
    rows = release.tables["qit" if release.shape == "anatomy" else "data"]
    names = [name for name in rows.column_names if name in policy.columns and policy.columns[name].transform is None]
    fields = [Field.from_labels(source, rows, policy, name) for name in policy.quasi if name in names]
    fields += [Field.from_equal_texts(source[name], rows[name]) for name in policy.plain if name in names]
    if release.shape == "anatomy":
        assigned, ambiguous = _assign_anatomy(release, source, rows, fields, policy)
        unique = np.zeros(rows.num_rows, dtype=np.bool_)
    else:
        fields += [Field.from_equal_texts(source[name], rows[name]) for name in policy.sensitive if name in names]
        match = match_rows(fields, source.num_rows, rows.num_rows)
        assigned, ambiguous = _assign_table(match)
        unique = (match.candidate_counts == 1) & (match.published_counts[match.published_kind] == 1)
    return RowAssignment(
        None if assigned is None else np.where(assigned >= 0, released[np.maximum(assigned, 0)], -1), ambiguous, unique
    )


def _offer_field(st: pa.Table, source: pa.ChunkedArray, groups: pa.ChunkedArray) -> Field:
    """Return a field in which a group covers the values that it offers; a missing value equals an empty text."""
    (value, values), (label, labels) = codes(source), codes(groups)
    number = {group: code for code, group in enumerate(labels)}
    own: dict[str, list[int]] = {}
    for code, text in enumerate(values):
        own.setdefault(text or "", []).append(code)
    pairs = {
        (code, number[group])
        for group, text in zip(st["group"].to_pylist(), st["value"].to_pylist(), strict=True)
        if group in number
        for code in own.get(text or "", ())
    }
    known, shown = np.array(list(pairs), dtype=np.int64).reshape(-1, 2).T
    return Field(value, label, Segments.from_pairs(known, shown, np.arange(len(values)), len(labels)))


def _assign_table(match: RowMatch) -> tuple[Int64s | None, int]:
    (kind, place), rows, room = match.pairs, match.source_counts, match.published_counts
    crowded = np.bincount(place, weights=rows[kind], minlength=len(room)) > room
    choices = np.bincount(kind, minlength=len(rows))
    ambiguous = (choices > 1) | (np.bincount(kind, weights=crowded[place], minlength=len(rows)) > 0)
    assigned = _assign_greedily(match)
    # The greedy choice may have taken the only place of another row, so a maximum matching decides.
    return _largest_assignment(match) if (assigned < 0).any() else assigned, int(rows[ambiguous].sum())


def _assign_greedily(match: RowMatch) -> Int64s:
    """Assign input rows with the fewest choices first, each to the published row with the fewest candidates."""
    (kind, place), rows, room = match.pairs, match.source_counts, match.published_counts
    width, choices = np.bincount(place, minlength=len(room)), np.bincount(kind, minlength=len(rows))
    order = np.lexsort((width[place], kind, choices[kind]))
    here, there = np.argsort(match.source_kind, kind="stable"), np.argsort(match.published_kind, kind="stable")
    at, until = (np.cumsum(rows) - rows).tolist(), np.cumsum(rows).tolist()
    free, full = (np.cumsum(room) - room).tolist(), np.cumsum(room).tolist()
    assigned = np.full(len(there), -1, dtype=np.int64)
    for one, seat in zip(kind[order].tolist(), place[order].tolist(), strict=True):
        many = min(until[one] - at[one], full[seat] - free[seat])
        if many:
            assigned[there[free[seat] : free[seat] + many]] = here[at[one] : at[one] + many]
            at[one] += many
            free[seat] += many
    return assigned


def _largest_assignment(match: RowMatch) -> Int64s | None:
    """Return a maximum assignment of input rows to published rows; None if too many pairs fit."""
    edges = edges_of(match)
    return None if edges is None else maximum_assignment(*edges, len(match.source_kind), len(match.published_kind))


def maximum_assignment(row: Int64s, seat: Int64s, rows: int, seats: int) -> Int64s:
    """Return a maximum matching: the row of each seat, -1 for none."""
    from scipy.sparse import csr_array  # in the extra `audit`; needed only with the original
    from scipy.sparse.csgraph import maximum_bipartite_matching

    graph = csr_array((np.ones(len(row), dtype=np.int8), (seat, row)), shape=(seats, rows))
    return np.asarray(maximum_bipartite_matching(graph, perm_type="column"), dtype=np.int64)


def edges_of(match: RowMatch) -> tuple[Int64s, Int64s] | None:
    """Return the pairs of an input row and a published row that fit; None if they are too many."""
    (kind, place), rows, room = match.pairs, match.source_counts, match.published_counts
    pairs_of_kind = rows[kind] * room[place]
    if int(pairs_of_kind.sum()) > _MAX_EDGES:
        return None
    pair, at = expand_counts(pairs_of_kind)
    here, there = np.argsort(match.source_kind, kind="stable"), np.argsort(match.published_kind, kind="stable")
    left = here[(np.cumsum(rows) - rows)[kind[pair]] + at // room[place[pair]]]
    right = there[(np.cumsum(room) - room)[place[pair]] + at % room[place[pair]]]
    return left, right


def _assign_anatomy(
    release: Published, source: pa.Table, rows: pa.Table, fields: list[Field], policy: Policy
) -> tuple[Int64s | None, int]:
    """Assign input rows to the rows of 'qit'; a row that no input row can take gets -1."""
    offered = _offer_field(release.tables["st"], source[policy.sensitive[0]], rows["group"])
    alike = match_rows(fields, source.num_rows, rows.num_rows)
    groups = _count_labels(alike.published_kind, offered.labels)
    (kind, place) = alike.pairs
    several = np.bincount(kind, weights=groups[place], minlength=len(alike.source_counts))[alike.source_kind] > 1
    match = match_rows([*fields, offered], source.num_rows, rows.num_rows)
    assigned, (kind, place) = _largest_assignment(match), match.pairs
    if assigned is None:
        return None, source.num_rows
    seats = np.bincount(kind, weights=match.published_counts[place], minlength=len(match.source_counts))[
        match.source_kind
    ]
    return assigned, int((several | (seats > 1)).sum())


def _count_labels(kind: Int64s, label: Int64s) -> Int64s:
    """Count the distinct labels of each kind."""
    width = int(label.max(initial=0)) + 1
    return np.bincount(np.unique(kind * width + label) // width)
