"""Temuujin, Ahn, Im: Tables 1 to 5 (a table, its generalisation, its classes, and what Anatomy publishes of them)."""

import numpy as np
import pyarrow as pa
import pytest

from reticent.audit.groups import histograms, numbered
from reticent.engine.rng import Rng
from reticent.engine.table.anatomy import Anatomy
from reticent.policy import Policy

QUASI = ("age", "gender", "zip")
TABLE_1 = pa.table(
    {
        "age": [45, 23, 51, 35, 33, 33],
        "gender": ["Male", "Male", "Female", "Female", "Female", "Male"],
        "zip": ["35124", "35113", "35001", "35066", "35246", "35243"],
        "disease": ["Pneumonia", "Bronchitis", "Flu", "Gastritis", "Dyspepsia", "Pneumonia"],
    }
)
TABLE_2 = pa.table(
    {
        "age": ["[45-23]", "[45-23]", "[35-51]", "[35-51]", "33", "33"],
        "gender": ["Male", "Male", "Female", "Female", "*", "*"],
        "zip": ["351**", "351**", "350**", "350**", "3524*", "3524*"],
        "disease": TABLE_1.column("disease"),
    }
)
TABLE_3 = (0, 0, 1, 1, 2, 2)
TABLE_5 = {
    1: {"Pneumonia": 1, "Bronchitis": 1},
    2: {"Flu": 1, "Gastritis": 1},
    3: {"Dyspepsia": 1, "Pneumonia": 1},
}


class Given(Anatomy):
    """Anatomy with the classes of Table 3."""

    def _kept(self, codes, domain, l):
        return np.arange(len(codes))

    def _grouped(self, codes, domain, l):
        return np.array(TABLE_3, dtype=np.int64)


@pytest.fixture(params=[Given, Anatomy])
def release(request):
    columns = dict.fromkeys(QUASI, "quasi") | {"disease": "sensitive"}
    policy = Policy.from_dict({"version": 1, "columns": columns, "privacy": {"l": 2}, "table": {"method": "anatomy"}})
    return request.param, request.param(policy, rng=Rng.from_seed(1)).release(TABLE_1)


def tables(release):
    """Rows and values of each group, whatever its number."""
    rows, values = {}, {}
    for row in release.tables["qit"].to_pylist():
        rows.setdefault(row["group"], []).append(tuple(row[name] for name in QUASI))
    for row in release.tables["st"].to_pylist():
        values.setdefault(row["group"], {})[row["value"]] = row["count"]
    return rows, values


def test_table_2_is_2_anonymous_and_2_diverse_in_three_classes():
    rows, size = numbered(TABLE_2, QUASI)
    groups = histograms(rows, size, TABLE_2.column("disease"))
    assert groups.sizes().tolist() == [2, 2, 2]
    assert groups.distinct().tolist() == [2, 2, 2]


def test_anatomy_of_table_3_publishes_tables_4_and_5(release):
    engine, made = release
    rows, values = tables(made)
    if engine is Given:
        own = [tuple(row[name] for name in QUASI) for row in TABLE_1.to_pylist()]
        expected = {frozenset(own[2 * g : 2 * g + 2]): TABLE_5[g + 1] for g in range(3)}
        assert {frozenset(rows[group]): values[group] for group in rows} == expected
    assert sorted(row for group in rows.values() for row in group) == sorted(
        tuple(row[name] for name in QUASI) for row in TABLE_1.to_pylist()
    )


def test_the_person_of_tuple_1_keeps_two_diseases_of_equal_share(release):
    _, made = release
    rows, values = tables(made)
    (group,) = [group for group, members in rows.items() if (45, "Male", "35124") in members]
    counts = values[group]
    assert "Pneumonia" in counts
    assert counts["Pneumonia"] / sum(counts.values()) == 0.5
