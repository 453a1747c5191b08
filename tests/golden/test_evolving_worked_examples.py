"""Temuujin, Ahn, Im: Tables 1 to 5 (a table, its generalisation, its classes, and what Anatomy publishes of them), and Algorithms 1 and 2 on them."""

import numpy as np
import pyarrow as pa
import pytest

from reticent import _core
from reticent.api import anonymize
from reticent.engine.rng import Rng
from reticent.engine.table.anatomy import Anatomy
from reticent.policy import Policy
from reticent.verify.groups import histograms, number_rows

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

    def _draw_eligible_rows(self, codes, domain, l):
        return np.arange(len(codes))

    def _group(self, codes, domain, l):
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
    rows, size = number_rows(TABLE_2, QUASI)
    groups = histograms(rows, size, TABLE_2.column("disease"))
    assert groups.sizes().tolist() == [2, 2, 2]
    assert groups.distinct().tolist() == [2, 2, 2]


def test_local_recoding_makes_table_2_of_table_1():
    """Up to the ages: [45-23] and [35-51] overlap, so no hierarchy has both, and ours shows `*`."""
    columns = {"age": "quasi", "gender": "quasi", "zip": {"role": "quasi", "hierarchy": {"prefix": 5}}}
    rules = {"version": 1, "columns": columns | {"disease": "sensitive"}, "privacy": {"k": 2, "l": 2}}
    release = anonymize(TABLE_1, Policy.from_dict(rules | {"table": {"method": "local"}}), seed=1)
    expected = [row | {"age": "33" if row["age"] == "33" else "*"} for row in TABLE_2.to_pylist()]
    assert sorted(release.tables["data"].to_pylist(), key=repr) == sorted(expected, key=repr)


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


DISEASES = ("Pneumonia", "Bronchitis", "Flu", "Gastritis", "Dyspepsia")


@pytest.fixture(params=["enc", "encc", "indexed"])
def classes(request):
    """Table 3 under a method that keeps classes, l = 2."""
    core = _core.evolving.Classes(request.param, l=2, scale=[0.0])
    codes = [DISEASES.index(disease) for disease in TABLE_1.column("disease").to_pylist()]
    rows = np.arange(6, dtype=np.uint32)
    core.load(rows, np.array(codes, np.int32), np.zeros((6, 1), np.int32), np.array(TABLE_3, np.int32))
    return core


def insert(core, *diseases):
    rows = np.arange(6, 6 + len(diseases), dtype=np.uint32)
    codes = np.array([DISEASES.index(disease) for disease in diseases], np.int32)
    return core.insert(rows, codes, np.zeros((len(rows), 1), np.int32), key=bytes(32))


def test_algorithm_1_makes_a_class_of_l_distinct_values(classes):
    change = insert(classes, "Flu", "Dyspepsia")
    (made,) = set(change.classes.tolist())
    assert (change.rows.tolist(), made not in TABLE_3) == ([6, 7], True)
    assert classes.classes_of(np.arange(6, dtype=np.uint32)).tolist() == list(TABLE_3)


def test_algorithm_1_adds_what_has_fewer_to_the_smallest_class(classes):
    assert insert(classes, "Flu", "Flu").classes.tolist() == [0, 1]  # line 11 asks anew for every tuple
    assert classes.classes_of(np.arange(6, dtype=np.uint32)).tolist() == list(TABLE_3)


def test_algorithm_2_joins_two_nonsatisfied_classes(classes):
    """Without tuples 1 and 3 the classes {bronchitis} and {gastritis} are left: the smallest goes into the other (lines 12 to 18)."""
    change = classes.delete(np.array([0, 2], dtype=np.uint32), key=bytes(32))
    first, second, *rest = classes.classes_of(np.array([1, 3, 4, 5], dtype=np.uint32)).tolist()
    assert (first, rest) == (second, [2, 2])
    assert (change.dissolved, change.relocated, change.withheld) == (1, 1, 0)


def test_algorithm_2_gives_the_last_nonsatisfied_class_to_the_smallest(classes):
    """Without tuple 1 bronchitis is left alone and joins one of the satisfied classes (lines 25 to 30)."""
    change = classes.delete(np.array([0], dtype=np.uint32), key=bytes(32))
    assert classes.classes_of(np.array([1, 2, 3, 4, 5], dtype=np.uint32)).tolist() == [1, 1, 1, 2, 2]
    assert (change.dissolved, change.relocated, change.withheld) == (1, 1, 0)
