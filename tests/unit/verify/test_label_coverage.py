"""Which labels may stand for which values."""

import numpy as np
import pyarrow as pa
import pytest
from labels_reference import covers

from reticent.policy import Policy
from reticent.verify.labels.coverage import coverage_matrix, stands_for

COLUMNS = {
    "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20]}},
    "zip": {"role": "quasi", "hierarchy": {"prefix": 5}},
    "day": {"role": "quasi", "hierarchy": {"dates": ["day", "year"]}},
    "town": "quasi",
    "ill": "sensitive",
}
POLICY = Policy.from_dict({"version": 1, "columns": COLUMNS, "privacy": {"k": 2}})


def covered(column, value, labels):
    row = coverage_matrix([value], labels, POLICY, column).toarray()[0]
    return [label for label, inside in zip(labels, row, strict=True) if inside]


def test_the_value_its_nodes_ranges_and_the_root():
    labels = ["24", "[20, 30)", "[30, 40)", "[20, 24]", "[21, 23]", "*"]
    assert covered("age", "24", labels) == ["24", "[20, 30)", "[20, 24]", "*"]
    assert covered("zip", "12345", ["123**", "124**", "12345"]) == ["123**", "12345"]
    assert covered("town", "rome", ["rome", "oslo", "*"]) == ["rome", "*"]


def test_ranges_of_dates_and_texts():
    labels = ["[2024-01-01, 2024-06-30]", "[2024-07-01, 2024-12-31]", "2024"]
    assert covered("day", "2024-03-05", labels) == ["[2024-01-01, 2024-06-30]", "2024"]
    assert covered("town", "oslo", ["[a, m]", "[n, z]"]) == ["[n, z]"]


def test_an_unknown_value_does_not_affect_others():
    rows = coverage_matrix(["24", "old"], ["[20, 30)", "*"], POLICY, "age").toarray().tolist()
    assert rows == [[True, True], [False, True]]


def test_a_missing_value_is_covered_by_itself_and_the_root():
    assert coverage_matrix([None], [None, "*", "rome"], POLICY, "town").toarray()[0].tolist() == [True, True, False]


def test_a_cell_that_may_have_been_empty_covers_an_empty_one_besides():
    labels = ["[20, 24]", "[20, 24] or missing", "24 or missing", "[30, 40] or missing", None]
    assert covered("age", "24", labels) == ["[20, 24]", "[20, 24] or missing", "24 or missing"]
    assert covered("age", None, labels) == ["[20, 24] or missing", "24 or missing", "[30, 40] or missing", None]


def test_the_last_day_of_an_interval_holds_its_hours():
    labels = ["[2024-01-01, 2024-03-05]", "[2024-03-06, 2024-04-01]"]
    assert covered("day", "2024-03-05 23:59:00", labels) == labels[:1]


ROWS = {
    "age": (["20", "24", "31", None, "old"], ["[20, 30)", "[20, 24] or missing", "*", "24", None, "[30, 40]", "old"]),
    "zip": (["12345", "12400", None], ["123**", "12***", "* or missing", "12345", "[12000, 12350]", "1****"]),
    "day": (
        ["2024-03-05", "2024-03-05 23:59:00", "1999-12-31", None, "never"],
        ["2024-03-05", "2024", "1999", "[2024-01-01, 2024-03-05]", "[1999-01-01, 2024-01-01] or missing", "never", "*"],
    ),
    "town": (
        ["rome", "oslo", "a, b", "", None],
        ["{rome, oslo}", "{a, b, rome}", "[n, z]", "", "rome or missing", None],
    ),
}


@pytest.mark.parametrize("column", ROWS)
def test_row_by_row_and_all_pairs_give_the_reference_result(column):
    values, labels = ROWS[column]
    value, label = (part.reshape(-1).tolist() for part in np.indices((len(values), len(labels))))
    cells, shown = (
        pa.chunked_array([pa.array([texts[at] for at in code], pa.string())])
        for texts, code in ((values, value), (labels, label))
    )
    holds = stands_for(cells, shown, POLICY, column)
    every = zip(cells.to_pylist(), shown.to_pylist(), strict=True)
    assert holds.tolist() == [covers(cell, text, POLICY, column) for cell, text in every]
    assert (coverage_matrix(values, labels, POLICY, column).toarray().reshape(-1) == holds).all()
