"""Finds the rows of an input again in a release: by their values, as far as these tell.

A row may stand where its quasi-identifiers fit and its sensitive value is offered. Rows with the fewest such places choose
first, and take the narrowest; rows that find none must be the suppressed ones.
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
    """For each published row a row of the input.

    Attributes:
        rows: -1 where none fits; None where the rows of the input are too much alike to be told apart.
        doubt: how many rows of the input had a choice.
        sure: which published rows can be one row of the input only, and read like no other; none where groups share values.
    """

    source_rows: Int64s | None
    ambiguous: int
    unique: Bools


def assign_rows(release: Published, policy: Policy, table: pa.Table, counted: Int64s) -> RowAssignment:
    """The rows of an input that count, found again in a release."""
    source = table.take(pa.array(counted))
    rows = release.tables["qit" if release.shape == "anatomy" else "data"]
    there = [name for name in rows.column_names if name in policy.columns and policy.columns[name].transform is None]
    fields = [Field.from_labels(source, rows, policy, name) for name in policy.quasi if name in there]
    fields += [Field.from_equal_texts(source[name], rows[name]) for name in policy.plain if name in there]
    if release.shape == "anatomy":
        taken, doubt = _assign_anatomy(release, source, rows, fields, policy)
        sure = np.zeros(rows.num_rows, dtype=np.bool_)
    else:
        fields += [Field.from_equal_texts(source[name], rows[name]) for name in policy.sensitive if name in there]
        meeting = match_rows(fields, source.num_rows, rows.num_rows)
        taken, doubt = _assign_table(meeting)
        sure = (meeting.candidate_counts == 1) & (meeting.published_counts[meeting.published_kind] == 1)
    return RowAssignment(
        None if taken is None else np.where(taken >= 0, counted[np.maximum(taken, 0)], -1), doubt, sure
    )


def _offer_field(st: pa.Table, source: pa.ChunkedArray, groups: pa.ChunkedArray) -> Field:
    """A group may stand for the values it offers; nothing and an empty text are one."""
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


def _assign_table(meeting: RowMatch) -> tuple[Int64s | None, int]:
    (kind, place), rows, room = meeting.pairs, meeting.source_counts, meeting.published_counts
    crowded = np.bincount(place, weights=rows[kind], minlength=len(room)) > room
    choices = np.bincount(kind, minlength=len(rows))
    doubt = (choices > 1) | (np.bincount(kind, weights=crowded[place], minlength=len(rows)) > 0)
    taken = _assign_greedily(meeting)
    # Who chose first may have taken the only place of another: nobody is a stranger before all ways were tried.
    return _largest_assignment(meeting) if (taken < 0).any() else taken, int(rows[doubt].sum())


def _assign_greedily(meeting: RowMatch) -> Int64s:
    """Rows with the fewest places choose first, the narrowest place."""
    (kind, place), rows, room = meeting.pairs, meeting.source_counts, meeting.published_counts
    width, choices = np.bincount(place, minlength=len(room)), np.bincount(kind, minlength=len(rows))
    order = np.lexsort((width[place], kind, choices[kind]))
    here, there = np.argsort(meeting.source_kind, kind="stable"), np.argsort(meeting.published_kind, kind="stable")
    at, until = (np.cumsum(rows) - rows).tolist(), np.cumsum(rows).tolist()
    free, full = (np.cumsum(room) - room).tolist(), np.cumsum(room).tolist()
    taken = np.full(len(there), -1, dtype=np.int64)
    for one, seat in zip(kind[order].tolist(), place[order].tolist(), strict=True):
        many = min(until[one] - at[one], full[seat] - free[seat])
        if many:
            taken[there[free[seat] : free[seat] + many]] = here[at[one] : at[one] + many]
            at[one] += many
            free[seat] += many
    return taken


def _largest_assignment(meeting: RowMatch) -> Int64s | None:
    """A largest assignment of rows to places; None where there are too many ways to look at."""
    edges = edges_of(meeting)
    return None if edges is None else maximum_assignment(*edges, len(meeting.source_kind), len(meeting.published_kind))


def maximum_assignment(row: Int64s, seat: Int64s, rows: int, seats: int) -> Int64s:
    """A largest matching: the row of each seat, -1 for none."""
    from scipy.sparse import csr_array  # of the extra `audit`: large matchings, asked for with the original only
    from scipy.sparse.csgraph import maximum_bipartite_matching

    graph = csr_array((np.ones(len(row), dtype=np.int8), (seat, row)), shape=(seats, rows))
    return np.asarray(maximum_bipartite_matching(graph, perm_type="column"), dtype=np.int64)


def edges_of(meeting: RowMatch) -> tuple[Int64s, Int64s] | None:
    """Pairs of a row and a published row that fit, from pairs of their kinds; None where they are too many."""
    (kind, place), rows, room = meeting.pairs, meeting.source_counts, meeting.published_counts
    ways = rows[kind] * room[place]
    if int(ways.sum()) > _MAX_EDGES:
        return None
    pair, at = expand_counts(ways)
    here, there = np.argsort(meeting.source_kind, kind="stable"), np.argsort(meeting.published_kind, kind="stable")
    left = here[(np.cumsum(rows) - rows)[kind[pair]] + at // room[place[pair]]]
    right = there[(np.cumsum(room) - room)[place[pair]] + at % room[place[pair]]]
    return left, right


def _assign_anatomy(
    release: Published, source: pa.Table, rows: pa.Table, fields: list[Field], policy: Policy
) -> tuple[Int64s | None, int]:
    """Who sits where among equals stays open; a seat that nobody can be given is no row of the input."""
    offered = _offer_field(release.tables["st"], source[policy.sensitive[0]], rows["group"])
    alike = match_rows(fields, source.num_rows, rows.num_rows)
    groups = _count_labels(alike.published_kind, offered.labels)
    (kind, place) = alike.pairs
    several = np.bincount(kind, weights=groups[place], minlength=len(alike.source_counts))[alike.source_kind] > 1
    meeting = match_rows([*fields, offered], source.num_rows, rows.num_rows)
    taken, (kind, place) = _largest_assignment(meeting), meeting.pairs
    if taken is None:
        return None, source.num_rows
    seats = np.bincount(kind, weights=meeting.published_counts[place], minlength=len(meeting.source_counts))[
        meeting.source_kind
    ]
    return taken, int((several | (seats > 1)).sum())


def _count_labels(kind: Int64s, label: Int64s) -> Int64s:
    """How many different labels each kind has."""
    width = int(label.max(initial=0)) + 1
    return np.bincount(np.unique(kind * width + label) // width)
