"""The rows of linked tables by number: their persons, and the slot of each row among its person's rows.

A slot is the position of a row: the number of the visit, and the number of the row within the visit. Rows of the same
slot are generalized together. In an uncounted table, rows have the slot of their visit. Rows without a person in the
table of persons are suppressed and counted.
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
# A single code may match by chance; a column is dates only if most values match.
_COMPACT = r"^(19|20)\d{2}(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])"
_MAX_ROWS = 1 << 20
"""Most rows of one person in one table; slots are numbered within this range."""


@dataclass(frozen=True, repr=False)
class Column:
    """An encoded column: the code of each row, the values, and for a quasi-identifier its hierarchy and value ranks."""

    codes: Int64s
    values: pa.Array
    hierarchy: HierarchyLevels | None = None
    ranks: Int64s | None = None


@dataclass(frozen=True, repr=False)
class Rows:
    """One table, its rows sorted by person and slot.

    Attributes:
        layout: the layout of the table.
        origin: the source row of each row.
        person: the person number of each row.
        visit: the visit number of each row; -1 for none.
        slot: the slot number of each row, below `slots`; in an uncounted table the number of its visit, from 1.
        slots: the number of slots.
        start: the first row of each person, followed by the number of rows.
        columns: the columns by name.
        counted: whether an attacker may know how many rows a person has.
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
        """Return the positions of all rows of these persons."""
        first, counts = self.start[members], self.start[members + 1] - self.start[members]
        shift = np.repeat(first - np.cumsum(counts) + counts, counts)
        return shift + np.arange(int(counts.sum()))

    def shared_places(self, members: Int64s, visits: int) -> Int64s:
        """Return the positions of the rows whose slot all these persons have; each has at least `visits` visits."""
        places = self.places_of(members)
        slots = self.slot[places]
        if not self.counted:
            return np.asarray(places[slots <= visits])
        return np.asarray(places[np.bincount(slots, minlength=self.slots)[slots] == len(members)])


@dataclass(frozen=True, repr=False)
class People:
    """All persons with their rows in each table; `suppressed` counts by table and reason the rows with a problem."""

    count: int
    visits: int
    tables: Mapping[str, Rows]
    input_rows: Mapping[str, int]
    suppressed: Mapping[str, int]

    def visit_counts(self) -> Int64s:
        """Return the number of visits of each person."""
        visits = next((rows for rows in self.tables.values() if rows.layout.of_visits), None)
        return np.zeros(self.count, dtype=np.int64) if visits is None else np.diff(visits.start)


def people_of(tables: Mapping[str, pa.Table], policy: Policy, secret: bytes) -> People:
    """Return the persons of linked tables.

    `secret` is the key for shifting dates without a key file: one for all tables, used for this release only.

    Raises:
        DataError: a table or a column is missing, or the tables have no persons.
    """
    assert policy.tables is not None  # noqa: S101 - every caller has checked
    assert policy.person is not None  # noqa: S101 - the policy was checked
    layout = policy.tables.layout(policy.released)
    absent = [name for name in layout if name not in tables]
    if absent:
        raise DataError(
            f"The table '{absent[0]}' is missing.", hint="Provide every table that has columns of the policy."
        )
    tables = {name: _check_table(tables[name], spec, policy, secret) for name, spec in layout.items()}
    persons, visits = _keys(tables, layout, policy.person)
    suppressed: Counter[str] = Counter()
    visit_order = None
    rows_by_table: dict[str, Rows] = {}
    visit_owners: Int64s | None = None
    for name, spec in layout.items():
        rows = _match_rows(tables[name], spec, policy, (persons, visits), visit_owners, suppressed)
        if spec.of_visits:
            visit_order = _visit_order(rows, tables[name], policy, len(visits))
        rows_by_table[name] = _assign_slots(rows, tables[name], policy, visit_order, len(persons))
        if spec.of_visits:
            visit_owners = _visit_owners(rows_by_table[name], len(visits))
    if not len(persons):
        raise DataError("The tables have no persons.", hint="Check the person column in the policy.")
    sizes = {name: table.num_rows for name, table in tables.items()}
    return People(len(persons), len(visits), rows_by_table, sizes, dict(+suppressed))


def _check_table(table: pa.Table, layout: Layout, policy: Policy, secret: bytes) -> pa.Table:
    needed = [str(policy.person), *([VISIT] if VISIT in layout.link_columns else ()), *layout.columns]
    for name in needed:
        if name not in table.column_names:
            raise DataError(
                f"The table '{layout.name}' has no column '{name}'.", hint="Correct the name in the policy."
            )
    table = without_markers(table.select(needed), policy.missing)
    # A row without a person is suppressed later; until then it must not stop the date shift of the others.
    person = normalize_names(table.column(needed[0]).cast(pa.string()))
    table = prepare(table.set_column(0, needed[0], pc.fill_null(person, "nobody")), policy, secret)
    known = pc.if_else(person.is_valid(), table.column(needed[0]), None)
    return merge_variants(table.set_column(table.column_names.index(needed[0]), needed[0], known), policy)


def _keys(tables: Mapping[str, pa.Table], layout: Mapping[str, Layout], person: str) -> tuple[pa.Array, pa.Array]:
    """Return the keys of all persons and all visits, from their own tables if there are any, else from all tables."""

    def keys(column: str, own_tables: list[str], all_tables: list[str]) -> pa.Array:
        cells = [tables[name].column(column).cast(pa.string()).combine_chunks() for name in own_tables or all_tables]
        known = pc.drop_null(pc.unique(pa.chunked_array(cells, pa.string())))
        return known.filter(pc.not_equal(known, ""))

    linked = [name for name, spec in layout.items() if VISIT in spec.link_columns]
    return (
        keys(person, [name for name, spec in layout.items() if spec.of_persons], list(layout)),
        keys(VISIT, [name for name, spec in layout.items() if spec.of_visits], linked),
    )


def _number_keys(column: pa.ChunkedArray, keys: pa.Array) -> Int64s:
    """Return the number of each key; -1 for an unknown key."""
    places = pc.index_in(column.cast(pa.string()).combine_chunks(), value_set=keys)
    return np.asarray(pc.fill_null(places, -1).to_numpy(zero_copy_only=False), dtype=np.int64)


@dataclass(frozen=True, repr=False)
class _MatchedRows:
    """Rows with a person: their positions in the table, their persons and visits."""

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
    suppressed[f"{layout.name}: without a person, suppressed"] += int((~good).sum())
    if layout.of_visits:
        suppressed[f"{layout.name}: without a key, suppressed"] += int((good & (visit < 0)).sum())
        good &= visit >= 0
    elif visit_owners is not None and linked:
        unknown = good & (visit < 0) & np.asarray(pc.is_valid(table.column(VISIT)).to_numpy(), dtype=np.bool_)
        suppressed[f"{layout.name}: of an unknown visit, released without the visit"] += int(unknown.sum())
        mismatched = good & (visit >= 0) & (visit_owners[visit] != person)
        suppressed[f"{layout.name}: of a visit of another person, or of a suppressed visit, suppressed"] += int(
            mismatched.sum()
        )
        good &= ~mismatched
    if layout.of_persons or layout.of_visits:
        repeated = good & ~_is_first(person if layout.of_persons else visit, good)
        suppressed[f"{layout.name}: with a repeated key, suppressed"] += int(repeated.sum())
        good &= ~repeated
    at = np.flatnonzero(good)
    return _MatchedRows(layout, at, person[at], visit[at])


def _is_first(keys: Int64s, good: Bools) -> Bools:
    """Return which good rows are the first with their key."""
    rows = np.flatnonzero(good)
    first = np.zeros(len(keys), dtype=np.bool_)
    first[rows[np.unique(keys[rows], return_index=True)[1]]] = True
    return first


def _visit_owners(rows: Rows, visits: int) -> Int64s:
    """Return the person of each visit; -2 for a visit whose row was suppressed."""
    owners = np.full(visits, -2, dtype=np.int64)
    owners[rows.visit] = rows.person
    return owners


def _visit_order(rows: _MatchedRows, table: pa.Table, policy: Policy, visits: int) -> Int64s:
    """Return the position of each visit among its person's visits, by the first date column, else by row order."""
    times = _visit_times(table, rows, policy)
    by = np.lexsort((rows.origin, times, rows.person))
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
    """Return the position of each entry in its run of equal neighbors."""
    if not len(groups):
        return groups
    heads = np.flatnonzero(np.diff(groups, prepend=groups[0] - 1))
    return np.arange(len(groups)) - np.repeat(heads, np.diff(np.append(heads, len(groups))))


def _assign_slots(
    rows: _MatchedRows, table: pa.Table, policy: Policy, visit_order: Int64s | None, persons: int
) -> Rows:
    """Sort the rows by person and slot; rows beyond a person's limit are suppressed."""
    source = table.take(pa.array(rows.origin))
    columns = {name: _column(source.column(name), policy, name) for name in rows.layout.columns}
    visit = np.where(rows.visit >= 0, rows.visit if visit_order is None else visit_order[rows.visit], -1)
    ranks = [column.ranks[column.codes] for column in columns.values() if column.ranks is not None]
    by = np.lexsort((rows.origin, *reversed(ranks), visit, rows.person))
    person, visit = rows.person[by], visit[by]
    place = _rank_in_run(person * (int(visit.max(initial=0)) + 2) + visit + 1)
    assert policy.tables is not None  # noqa: S101
    limit = policy.tables.rows.get(rows.layout.name, _MAX_ROWS)
    within = _rank_in_run(person) < limit
    by, person, visit, place = by[within], person[within], visit[within], place[within]
    counted = rows.layout.name not in policy.tables.uncounted
    slots, slot = np.unique((visit + 1) * _MAX_ROWS + place, return_inverse=True)
    if not counted:
        slot = visit + 1
    start = np.searchsorted(person, np.arange(persons + 1))
    sorted_columns = {
        name: Column(column.codes[by], column.values, column.hierarchy, column.ranks)
        for name, column in columns.items()
    }
    return Rows(
        rows.layout,
        rows.origin[by],
        person,
        rows.visit[by],
        slot.reshape(-1),
        len(slots),
        start,
        sorted_columns,
        counted,
    )


def _column(cells: pa.ChunkedArray, policy: Policy, name: str) -> Column:
    places, values = encode_cells(cells)
    codes = places.astype(np.int64)
    if name not in policy.quasi:
        _refuse_dates(values, name)
        return Column(codes, values)
    levels = build_levels(policy.columns[name].hierarchy, values, column=name, base=policy.base)
    return Column(codes, values, levels, _ranks(levels))


def _refuse_dates(values: pa.Array, name: str) -> None:
    """Refuse dates that would be published unchanged: an attacker who knows a visit finds its rows in every table."""
    kind = values.type
    days = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind):
        texts = values.cast(pa.string())
        compact = pc.sum(pc.match_substring_regex(texts, _COMPACT)).as_py() or 0
        days = bool(pc.any(pc.match_substring_regex(texts, _DAY)).as_py()) or 2 * compact > len(texts)
    if days:
        raise PolicyError(
            f"columns.{name} contains dates, which link the rows of a visit across tables.",
            hint="Give it the role quasi and a hierarchy {dates: [day, month, year]}, or the role identifier.",
        )


def _ranks(hierarchy: HierarchyLevels) -> Int64s:
    """Return the rank of each value: numbers by size, others by text within the nodes of the hierarchy."""
    if hierarchy.numeric is not None:
        return np.argsort(np.argsort(np.nan_to_num(hierarchy.numeric, nan=-np.inf), kind="stable"))
    # lexsort: the last key (the root) is the primary one, the first key is the value itself.
    keys = [
        _text_ranks(labels.to_pylist())[table]
        for table, labels in zip(hierarchy.node_ids, hierarchy.labels, strict=True)
    ]
    return np.argsort(np.lexsort(keys))


def _text_ranks(values: list[object]) -> Int64s:
    return np.argsort(sorted(range(len(values)), key=lambda at: (values[at] is not None, str(values[at]))))


def refuse_other_demands(policy: Policy) -> None:
    """Refuse a policy without k and l, or with requirements that linked tables cannot meet."""
    refuse_overall_demands(policy)
    if policy.privacy.k is None and policy.privacy.l is None:
        raise PolicyError("The policy has no requirement for linked tables.", hint="Write k or l in privacy.")
