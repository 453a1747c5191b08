"""The rows of linked tables by number: whose they are, and the slot that each takes in its person's course.

A slot says where a row stands: the how-manieth visit, and the how-manieth row of the table within it. Rows of the same slot
are laid side by side when persons are made alike. In a table that nobody counts rows take the slot of their visit. Rows without a person of the table of persons are left out and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reticent.arrays import Bools, Int64s
from reticent.encode.columns import normalize_names
from reticent.engine.identifiers import prepare, refuse_overall_demands
from reticent.engine.value_variants import merge_variants
from reticent.errors import DataError, PolicyError
from reticent.policy import Policy
from reticent.policy.cells import encode_cells, without_markers
from reticent.policy.hierarchy import HierarchyLevels, build_levels
from reticent.policy.settings.linked import VISIT, Layout

_DAY = r"^\s*(\d{4}[-/.]\d{2}[-/.]\d{2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4})"
# A single code may look so; where most values do, they are dates.
_COMPACT = r"^(19|20)\d{2}(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])"
_MAX_ROWS = 1 << 20
"""Of one person in one table; slots are numbered within this."""


@dataclass(frozen=True, repr=False)
class Column:
    """A column by codes: each row's value, the values, and where it is a quasi-identifier its hierarchy and their order."""

    codes: Int64s
    values: pa.Array
    hierarchy: HierarchyLevels | None = None
    ranks: Int64s | None = None


@dataclass(frozen=True, repr=False)
class Rows:
    """One table, its rows sorted by person and slot.

    Attributes:
        layout: which table it is.
        origin: the row of the input that each row is.
        person: of each row, by number.
        visit: of each row, by number; -1 for none.
        slot: of each row, by number: 0 to `slots`; in a table that nobody counts the number of its visit, from 1.
        counted: whether readers may know how many rows a person has.
        start: where the rows of each person begin, and in the end their number.
        columns: by name.
    """

    layout: Layout
    origin: Int64s
    person: Int64s
    visit: Int64s
    slot: Int64s
    slots: int
    start: Int64s
    columns: Mapping[str, Column]
    counted: bool = True

    def places_of(self, members: Int64s) -> Int64s:
        """The places of all rows of these persons."""
        first, counts = self.start[members], self.start[members + 1] - self.start[members]
        shift = np.repeat(first - np.cumsum(counts) + counts, counts)
        return shift + np.arange(int(counts.sum()))

    def shared_places(self, members: Int64s, visits: int) -> Int64s:
        """The places of the rows whose slot all these persons have, who have at least so many visits each."""
        places = self.places_of(members)
        slots = self.slot[places]
        if not self.counted:
            return np.asarray(places[slots <= visits])
        return np.asarray(places[np.bincount(slots, minlength=self.slots)[slots] == len(members)])


@dataclass(frozen=True, repr=False)
class People:
    """All persons with their rows in each table; `left_out` says by table and reason how many rows have lost their place."""

    count: int
    visits: int
    tables: Mapping[str, Rows]
    rows_in: Mapping[str, int]
    suppressed: Mapping[str, int]

    def visit_counts(self) -> Int64s:
        """How many visits each person has."""
        visits = next((rows for rows in self.tables.values() if rows.layout.of_visits), None)
        return np.zeros(self.count, dtype=np.int64) if visits is None else np.diff(visits.start)


def people_of(tables: Mapping[str, pa.Table], policy: Policy, secret: bytes) -> People:
    """The persons of linked tables; see the module. `secret` shifts dates that have no key file: one for all tables, for this release alone.

    Raises:
        DataError: a table is missing, lacks a column, or nobody is in them.
    """
    assert policy.tables is not None  # noqa: S101 - the caller looked
    assert policy.person is not None  # noqa: S101 - the policy was checked
    layout = policy.tables.layout(policy.released)
    absent = [name for name in layout if name not in tables]
    if absent:
        raise DataError(
            f"There is no table '{absent[0]}'.", hint="Give every table that the policy's columns stand in."
        )
    tables = {name: _check_table(tables[name], one, policy, secret) for name, one in layout.items()}
    persons, visits = _keys(tables, layout, policy.person)
    left: Counter[str] = Counter()
    order = None
    out: dict[str, Rows] = {}
    home: Int64s | None = None
    for name, one in layout.items():
        rows = _match_rows(tables[name], one, policy, (persons, visits), home, left)
        if one.of_visits:
            order = _visit_order(rows, tables[name], policy, len(visits))
        out[name] = _assign_slots(rows, tables[name], policy, order, len(persons))
        if one.of_visits:
            home = _visit_owners(out[name], len(visits))
    if not len(persons):
        raise DataError("There is nobody in the tables.", hint="Check which column names the person.")
    sizes = {name: table.num_rows for name, table in tables.items()}
    return People(len(persons), len(visits), out, sizes, dict(+left))


def _check_table(table: pa.Table, layout: Layout, policy: Policy, secret: bytes) -> pa.Table:
    needed = [str(policy.person), *([VISIT] if VISIT in layout.link_columns else ()), *layout.columns]
    for name in needed:
        if name not in table.column_names:
            raise DataError(
                f"The table '{layout.name}' has no column '{name}'.", hint="Correct the name in the policy."
            )
    table = without_markers(table.select(needed), policy.missing)
    # A row without a person is left out below; until then it must not stop the shift of the others.
    person = normalize_names(table.column(needed[0]).cast(pa.string()))
    table = prepare(table.set_column(0, needed[0], pc.fill_null(person, "nobody")), policy, secret)
    known = pc.if_else(person.is_valid(), table.column(needed[0]), None)
    return merge_variants(table.set_column(table.column_names.index(needed[0]), needed[0], known), policy)


def _keys(tables: Mapping[str, pa.Table], layout: Mapping[str, Layout], person: str) -> tuple[pa.Array, pa.Array]:
    """The keys of all persons and all visits: those of their own tables where there are such, otherwise of any."""

    def keys(column: str, of_them: list[str], all_of_them: list[str]) -> pa.Array:
        cells = [tables[name].column(column).cast(pa.string()).combine_chunks() for name in of_them or all_of_them]
        known = pc.drop_null(pc.unique(pa.chunked_array(cells, pa.string())))
        return known.filter(pc.not_equal(known, ""))

    linked = [name for name, one in layout.items() if VISIT in one.link_columns]
    return (
        keys(person, [name for name, one in layout.items() if one.of_persons], list(layout)),
        keys(VISIT, [name for name, one in layout.items() if one.of_visits], linked),
    )


def _number_keys(column: pa.ChunkedArray, keys: pa.Array) -> Int64s:
    """The number of each key; -1 where it is none of them."""
    places = pc.index_in(column.cast(pa.string()).combine_chunks(), value_set=keys)
    return np.asarray(pc.fill_null(places, -1).to_numpy(zero_copy_only=False), dtype=np.int64)


@dataclass(frozen=True, repr=False)
class _MatchedRows:
    """Rows that have a person: their places in the table, their persons and visits."""

    layout: Layout
    origin: Int64s
    person: Int64s
    visit: Int64s


def _match_rows(
    table: pa.Table,
    layout: Layout,
    policy: Policy,
    keys: tuple[pa.Array, pa.Array],
    visit_owners: Int64s | None,
    suppressed: Counter[str],
) -> _MatchedRows:
    person = _number_keys(table.column(str(policy.person)), keys[0])
    linked = VISIT in layout.link_columns
    visit = _number_keys(table.column(VISIT), keys[1]) if linked else np.full(table.num_rows, -1, dtype=np.int64)
    good = person >= 0
    suppressed[f"{layout.name}: without a person, left out"] += int((~good).sum())
    if layout.of_visits:
        suppressed[f"{layout.name}: without a key, left out"] += int((good & (visit < 0)).sum())
        good &= visit >= 0
    elif visit_owners is not None and linked:
        nowhere = good & (visit < 0) & np.asarray(pc.is_valid(table.column(VISIT)).to_numpy(), dtype=np.bool_)
        suppressed[f"{layout.name}: of a visit that is not there, kept without it"] += int(nowhere.sum())
        stranger = good & (visit >= 0) & (visit_owners[visit] != person)
        suppressed[f"{layout.name}: of a visit of another person, or of one without a place, left out"] += int(
            stranger.sum()
        )
        good &= ~stranger
    if layout.of_persons or layout.of_visits:
        again = good & ~_is_first(person if layout.of_persons else visit, good)
        suppressed[f"{layout.name}: with a key that came before, left out"] += int(again.sum())
        good &= ~again
    at = np.flatnonzero(good)
    return _MatchedRows(layout, at, person[at], visit[at])


def _is_first(keys: Int64s, good: Bools) -> Bools:
    """Which good rows are the first with their key."""
    rows = np.flatnonzero(good)
    first = np.zeros(len(keys), dtype=np.bool_)
    first[rows[np.unique(keys[rows], return_index=True)[1]]] = True
    return first


def _visit_owners(rows: Rows, visits: int) -> Int64s:
    """The person of each visit; -2 for a visit whose row was left out."""
    home = np.full(visits, -2, dtype=np.int64)
    home[rows.visit] = rows.person
    return home


def _visit_order(rows: _MatchedRows, table: pa.Table, policy: Policy, visits: int) -> Int64s:
    """The how-manieth of its person each visit is, by its first date, otherwise as they come."""
    moments = _visit_times(table, rows, policy)
    by = np.lexsort((rows.origin, moments, rows.person))
    order = np.full(visits, -1, dtype=np.int64)
    order[rows.visit[by]] = _rank_in_run(rows.person[by])
    return order


def _visit_times(table: pa.Table, rows: _MatchedRows, policy: Policy) -> Int64s:
    for name in rows.layout.columns:
        spec = policy.columns[name].hierarchy
        if spec is not None and spec.kind == "dates":
            column = _column(table.column(name).take(pa.array(rows.origin)), policy, name)
            assert column.ranks is not None  # noqa: S101 - it has a hierarchy
            return column.ranks[column.codes]
    return np.zeros(len(rows.origin), dtype=np.int64)


def _rank_in_run(groups: Int64s) -> Int64s:
    """The place of each entry in its run of equal neighbours."""
    if not len(groups):
        return groups
    heads = np.flatnonzero(np.diff(groups, prepend=groups[0] - 1))
    return np.arange(len(groups)) - np.repeat(heads, np.diff(np.append(heads, len(groups))))


def _assign_slots(
    rows: _MatchedRows, table: pa.Table, policy: Policy, visit_order: Int64s | None, persons: int
) -> Rows:
    """The rows sorted by person and slot; rows beyond the most of a person are left out."""
    source = table.take(pa.array(rows.origin))
    columns = {name: _column(source.column(name), policy, name) for name in rows.layout.columns}
    turn = np.where(rows.visit >= 0, rows.visit if visit_order is None else visit_order[rows.visit], -1)
    ranks = [column.ranks[column.codes] for column in columns.values() if column.ranks is not None]
    by = np.lexsort((rows.origin, *reversed(ranks), turn, rows.person))
    person, turn = rows.person[by], turn[by]
    place = _rank_in_run(person * (int(turn.max(initial=0)) + 2) + turn + 1)
    assert policy.tables is not None  # noqa: S101
    most = policy.tables.rows.get(rows.layout.name, _MAX_ROWS)
    few = _rank_in_run(person) < most
    by, person, turn, place = by[few], person[few], turn[few], place[few]
    counted = rows.layout.name not in policy.tables.uncounted
    names, slot = np.unique((turn + 1) * _MAX_ROWS + place, return_inverse=True)
    if not counted:
        slot = turn + 1
    start = np.searchsorted(person, np.arange(persons + 1))
    picked = {
        name: Column(column.codes[by], column.values, column.hierarchy, column.ranks)
        for name, column in columns.items()
    }
    return Rows(
        rows.layout, rows.origin[by], person, rows.visit[by], slot.reshape(-1), len(names), start, picked, counted
    )


def _column(cells: pa.ChunkedArray, policy: Policy, name: str) -> Column:
    places, values = encode_cells(cells)
    codes = places.astype(np.int64)
    if name not in policy.quasi:
        _refuse_dates(values, name)
        return Column(codes, values)
    rungs = build_levels(policy.columns[name].hierarchy, values, column=name, base=policy.base)
    return Column(codes, values, rungs, _ranks(rungs))


def _refuse_dates(values: pa.Array, name: str) -> None:
    """Refuses dates that would be published as they are: whoever knows a visit finds its rows by them, in any table."""
    kind = values.type
    days = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind):
        texts = values.cast(pa.string())
        compact = pc.sum(pc.match_substring_regex(texts, _COMPACT)).as_py() or 0
        days = bool(pc.any(pc.match_substring_regex(texts, _DAY)).as_py()) or 2 * compact > len(texts)
    if days:
        raise PolicyError(
            f"columns.{name} holds dates, which lead from table to table.",
            hint="Give it the role quasi and a hierarchy {dates: [day, month, year]}, or the role identifier.",
        )


def _ranks(hierarchy: HierarchyLevels) -> Int64s:
    """The place of each value in an order that keeps the nodes of its hierarchy together: numbers by size, others by text."""
    if hierarchy.numeric is not None:
        return np.argsort(np.argsort(np.nan_to_num(hierarchy.numeric, nan=-np.inf), kind="stable"))
    # The last key, the root, counts most; the first is each value by itself.
    keys = [
        _text_ranks(labels.to_pylist())[table]
        for table, labels in zip(hierarchy.node_ids, hierarchy.labels, strict=True)
    ]
    return np.argsort(np.lexsort(keys))


def _text_ranks(values: list[object]) -> Int64s:
    return np.argsort(sorted(range(len(values)), key=lambda at: (values[at] is not None, str(values[at]))))


def refuse_other_demands(policy: Policy) -> None:
    """Refuses a policy that asks for nothing, or for what linked tables do not keep."""
    refuse_overall_demands(policy)
    if policy.privacy.k is None and policy.privacy.l is None:
        raise PolicyError("The policy asks for nothing that linked tables keep.", hint="Write k or l in privacy.")
