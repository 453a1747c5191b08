"""Finds the rows of an input again in a release: by their values, as far as these tell.

A row may stand where its quasi-identifiers fit and its sensitive value is offered. Rows with the fewest such places choose
first, and take the narrowest; rows that find none must be the suppressed ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from reticent.audit.cover import covered
from reticent.audit.groups import codes, numbered
from reticent.audit.relation import Relation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from reticent.audit.published import Published
    from reticent.policy import Policy

_CELLS = 1 << 26
_EDGES = 1 << 23
Seat = tuple[int, tuple[str | None, ...]]


def find_places(
    release: Published, policy: Policy, table: pa.Table, counted: NDArray[np.int64]
) -> tuple[NDArray[np.int64] | None, int]:
    """For each published row a row of the input (-1 where none fits), and how many rows of the input had a choice.

    None where the rows of the input are too much alike to be told apart.
    """
    source = table.take(pa.array(counted))
    rows = release.tables["qit" if release.shape == "anatomy" else "data"]
    quasi = [n for n in policy.quasi if n in rows.column_names and policy.columns[n].identifier is None]
    if release.shape == "anatomy":
        stalls, offers = _anatomy(release, rows, quasi, policy)
        places = _fits(source, rows, quasi, stalls, policy)
        texts: list[tuple[str | None, ...]] = [(value,) for value in source[policy.sensitive[0]].to_pylist()]
        return _take_anatomy(source, rows, stalls[0], places, (offers, texts), counted, policy)
    stalls = numbered(rows, quasi)
    words = [name for name in (*policy.sensitive, *policy.plain) if name in rows.column_names]
    words = [name for name in words if policy.columns[name].identifier is None]
    open_: dict[Seat, list[int]] = {}
    for place, key in enumerate(zip(stalls[0].tolist(), _tuples(rows, words), strict=True)):
        open_.setdefault(key, []).append(place)
    places = _fits(source, rows, quasi, stalls, policy)
    return _take(_tuples(source, words), places, open_, rows.num_rows, counted)


def fits(values: Sequence[str | None], labels: Sequence[str | None], policy: Policy, name: str) -> Relation:
    """Whether label j may stand for value i: by the hierarchy, a range, or a published set of values."""
    return Relation.of(covered(values, labels, policy, name), len(values), len(labels))


def _tuples(table: pa.Table, names: list[str]) -> list[tuple[str | None, ...]]:
    return list(zip(*(table[name].to_pylist() for name in names), strict=True)) or [()] * table.num_rows


def _anatomy(
    release: Published, qit: pa.Table, quasi: list[str], policy: Policy
) -> tuple[tuple[NDArray[np.int64], int], dict[tuple[str, str], int]]:
    names = [*quasi, *(name for name in policy.plain if name in qit.column_names), "group"]
    st = release.tables["st"]
    cells = zip(st["group"].to_pylist(), st["value"].to_pylist(), st["count"].to_pylist(), strict=True)
    return numbered(qit, names), {(group, value or ""): int(count) for group, value, count in cells}


def _fits(
    source: pa.Table, rows: pa.Table, quasi: list[str], stalls: tuple[NDArray[np.int64], int], policy: Policy
) -> list[NDArray[np.int64]]:
    """Per combination of quasi-identifiers in the input, the classes that may hold it; then by row of the input."""
    stall, size = stalls
    first = np.zeros(size, dtype=np.int64)
    first[stall[::-1]] = np.arange(len(stall))[::-1]
    kinds, count = numbered(source, quasi)
    head = np.zeros(count, dtype=np.int64)
    head[kinds[::-1]] = np.arange(len(kinds))[::-1]
    parts = []
    for name in quasi:
        (value, values), (label, labels) = codes(source[name]), codes(rows[name])
        parts.append((value[head], fits(values, labels, policy, name), label[first]))
    step = max(1, _CELLS // max(1, size))
    places: list[NDArray[np.int64]] = []
    for start in range(0, count, step):
        fit = np.ones((min(step, count - start), size), dtype=np.bool_)
        for value, allowed, label in parts:
            fit &= allowed.block(value[start : start + step])[:, label]
        places += [np.flatnonzero(row) for row in fit]
    width = np.zeros(size, dtype=np.int64)
    for place in places:
        width[place] += 1
    places = [place[np.argsort(width[place], kind="stable")] for place in places]
    return [places[kind] for kind in kinds]


def _take(
    texts: list[tuple[str | None, ...]],
    fits: list[NDArray[np.int64]],
    open_: dict[Seat, list[int]],
    size: int,
    counted: NDArray[np.int64],
) -> tuple[NDArray[np.int64] | None, int]:
    choices = [[s for s in fits[row].tolist() if (s, texts[row]) in open_] for row in range(len(texts))]
    seats = np.full(size, -1, dtype=np.int64)
    wishes: dict[Seat, int] = {}
    for row, stalls in enumerate(choices):
        for stall in stalls:
            key = (stall, texts[row])
            wishes[key] = wishes.get(key, 0) + 1
    room = {key: len(places) for key, places in open_.items()}
    doubt = sum(
        len(stalls) > 1 or any(wishes[s, texts[row]] > room[s, texts[row]] for s in stalls)
        for row, stalls in enumerate(choices)
    )
    left = {key: list(places) for key, places in open_.items()}
    for row in sorted(range(len(choices)), key=lambda row: len(choices[row])):
        for stall in choices[row]:
            if left[stall, texts[row]]:
                seats[left[stall, texts[row]].pop()] = counted[row]
                break
    if (seats >= 0).all():
        return seats, doubt
    # Who chose first may have taken the only place of another: nobody is a stranger before all ways were tried.
    return _moved(choices, texts, open_, size, counted), doubt


def _moved(
    choices: list[list[int]],
    texts: list[tuple[str | None, ...]],
    open_: dict[Seat, list[int]],
    size: int,
    counted: NDArray[np.int64],
) -> NDArray[np.int64] | None:
    """A largest assignment of rows to places; None where there are too many ways to look at."""
    if sum(len(open_[s, texts[row]]) for row, stalls in enumerate(choices) for s in stalls) > _EDGES:
        return None
    from scipy.sparse import csr_array  # of the extra `audit`, as below
    from scipy.sparse.csgraph import maximum_bipartite_matching

    pairs = [(place, row) for row, stalls in enumerate(choices) for s in stalls for place in open_[s, texts[row]]]
    right, left = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    graph = csr_array((np.ones(len(left), dtype=np.int8), (right, left)), shape=(size, len(choices)))
    taken = maximum_bipartite_matching(graph, perm_type="column").astype(np.int64)
    return np.where(taken >= 0, counted[np.maximum(taken, 0)], -1)


def _take_anatomy(
    source: pa.Table,
    rows: pa.Table,
    stall: NDArray[np.int64],
    fits: list[NDArray[np.int64]],
    values: tuple[dict[tuple[str, str], int], list[tuple[str | None, ...]]],
    counted: NDArray[np.int64],
    policy: Policy,
) -> tuple[NDArray[np.int64] | None, int]:
    from scipy.sparse import csr_array  # of the extra `audit`: large matchings, asked for with the original only
    from scipy.sparse.csgraph import maximum_bipartite_matching

    offers, texts = values
    plain = [n for n in policy.plain if n in rows.column_names and policy.columns[n].identifier is None]
    shown, own = _tuples(rows, plain), _tuples(source, plain)
    groups = rows["group"].to_pylist()
    open_: dict[int, list[int]] = {}
    for place, number in enumerate(stall.tolist()):
        open_.setdefault(number, []).append(place)
    left, right, doubt = [], [], 0
    for row, stalls in enumerate(fits):
        alike = [s for s in stalls.tolist() if shown[open_[s][0]] == own[row]]
        seats = [place for s in alike if (groups[open_[s][0]], texts[row][0] or "") in offers for place in open_[s]]
        left += [row] * len(seats)
        right += seats
        doubt += len(alike) > 1 or len(seats) > 1
        if len(left) > _EDGES:
            return None, len(fits)
    # A seat that nobody can be given is no row of the input; who sits where among equals stays open.
    graph = csr_array((np.ones(len(left), dtype=np.int8), (right, left)), shape=(rows.num_rows, len(fits)))
    taken = maximum_bipartite_matching(graph, perm_type="column").astype(np.int64)
    return np.where(taken >= 0, counted[np.maximum(taken, 0)], -1), doubt
