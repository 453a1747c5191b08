"""The judge counts with numbers; here the same is said cell by cell, and both must agree on tables of any kind."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from labels_reference import covers

from reticent.policy import Policy
from reticent.verify.labels.coverage import coverage_matrix, stands_for
from reticent.verify.row_order import check_row_order

CELLS = st.sampled_from([None, "", "a", "b", "ä", "\U0001f600", "\uffff", "a b"])
GROUPS = st.sampled_from(["0", "1", "2", "10", "01", "x", None, "\u0663", str(10**30)])
COLUMNS: dict[str, tuple[Any, list[str | None], list[str | None]]] = {
    "dates": (
        {"dates": ["month", "quarter", "year"]},
        ["2020-01-05", "2020-02-01", "2021-11-30", None, "x"],
        [
            "2020-01-05",
            "2020-01",
            "2020-Q1",
            "2020",
            "*",
            "[2020-01-01, 2020-02-01]",
            "2020 or missing",
            None,
            "{x, y}",
        ],
    ),
    "numbers": (
        {"intervals": [5, 10]},
        ["1", "7", "12", None, "zz", "-3"],
        ["1", "[0, 5)", "[5, 10)", "[0, 10)", "*", "[1, 7]", "{1, 7}", "{1, 7} or missing", None],
    ),
    "tree": (
        {"tree": {"A": ["a", "b, c"], "B": ["d"]}},
        ["a", "b, c", "d", None, "q"],
        ["a", "A", "B", "*", "{a, b, c}", "{a, d}", None, "A or missing", "* or missing"],
    ),
}


def plain_order(qit: pa.Table, values: pa.Table) -> list[int]:
    """What `check_order` counts, row by row."""

    def key(cell: str | None) -> tuple[bool, str]:
        return cell is not None, cell or ""

    def numbers(table: pa.Table) -> list[int]:
        return [int(cell) if cell is not None and cell.isdecimal() else -1 for cell in table["group"].to_pylist()]

    lines = list(zip(numbers(values), map(key, values["value"].to_pylist()), strict=True))
    names = [name for name in qit.column_names if name != "group"]
    rows = [tuple(key(row[name]) for name in names) for row in qit.to_pylist()]
    placed = list(zip(numbers(qit), rows, strict=True))
    lists = {group: sorted(row for at, row in placed if at == group) for group in sorted({g for g, _ in placed})}
    written = [cell for column in (qit["group"], values["group"], values["count"]) for cell in set(column.to_pylist())]
    return [
        sum(a > b for a, b in pairwise(lines)),
        sum(a > b for a, b in pairwise(placed)),
        sum(a != b for a, b in enumerate(lists)),
        sum(a > b for a, b in pairwise(lists.values())),
        sum(not re.fullmatch("0|[1-9][0-9]*", cell or "") for cell in written),
    ]


@settings(max_examples=200, deadline=None)
@given(
    qit=st.lists(st.tuples(GROUPS, CELLS, CELLS), max_size=12),
    values=st.lists(st.tuples(GROUPS, CELLS, GROUPS), max_size=8),
    in_order=st.booleans(),
)
def test_orders_are_counted_as_cell_by_cell(qit: list[Any], values: list[Any], in_order: bool) -> None:
    if in_order:
        qit = sorted(qit, key=lambda row: [(cell is not None, cell or "") for cell in row])
    first = pa.table(
        {name: pa.array([row[at] for row in qit], pa.string()) for at, name in enumerate(("group", "a", "b"))}
    )
    second = pa.table(
        {
            name: pa.array([row[at] for row in values], pa.string())
            for at, name in enumerate(("group", "value", "count"))
        }
    )
    assert [finding.measured or 0 for finding in check_row_order(first, second)] == plain_order(first, second)


@settings(max_examples=200, deadline=None)
@given(kind=st.sampled_from(sorted(COLUMNS)), data=st.data())
def test_a_label_stands_for_a_cell_as_is_said_plainly(kind: str, data: st.DataObject) -> None:
    hierarchy, cells, shown = COLUMNS[kind]
    columns = {"c": {"role": "quasi", "hierarchy": hierarchy}, "s": "sensitive"}
    policy = Policy.from_dict({"version": 1, "columns": columns, "privacy": {"k": 2}})
    values = data.draw(st.lists(st.sampled_from(cells), min_size=1, unique=True))
    labels = data.draw(st.lists(st.sampled_from(shown), min_size=1, unique=True))
    at = np.array([(v, label) for v in range(len(values)) for label in range(len(labels))], dtype=np.int64)
    rows = (
        pa.chunked_array([pa.array(texts, pa.string()).take(pa.array(at[:, i]))])
        for i, texts in enumerate((values, labels))
    )
    plainly = [covers(values[v], labels[label], policy, "c") for v, label in at.tolist()]
    assert stands_for(*rows, policy, "c").tolist() == plainly
    assert coverage_matrix(values, labels, policy, "c").toarray().reshape(-1).tolist() == plainly
