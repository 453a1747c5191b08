from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from reticent.datasets import series
from reticent.datasets.draw import BLOCK
from reticent.errors import PolicyError


@pytest.fixture(scope="module")
def releases() -> list[dict[str, dict]]:
    """One {patient_id: row} per release."""
    return [{row["patient_id"]: row for row in table.to_pylist()} for table in series.generate(4_000, 5, seed=7)]


@pytest.fixture(scope="module")
def graph() -> dict[str, dict[str, float]]:
    edges: dict[str, dict[str, float]] = defaultdict(dict)
    for row in series.updates().to_pylist():
        edges[row["value"]][row["next"]] = row["probability"]
    return edges


def test_first_release_has_all_its_persons(releases):
    assert len(releases[0]) == 4_000


def test_probabilities_sum_to_one(graph):
    assert set(graph) == set(series.VALUES)
    for following in graph.values():
        assert sum(following.values()) == pytest.approx(1, abs=1e-9)
        assert min(following.values()) > 0


def test_graph_is_reflexive_and_transitive(graph):
    for value, following in graph.items():
        assert value in following
        for middle in following:
            assert set(graph[middle]) <= set(following)


def test_worse_never_becomes_better_where_it_cannot(graph):
    assert set(graph["severe asthma"]) == {"severe asthma"}
    assert "influenza" in graph["pneumonia"]


def test_every_change_is_in_the_graph_even_after_an_absence(releases, graph):
    last: dict[str, str] = {}
    changed = 0
    for release in releases:
        for person, row in release.items():
            if person in last:
                assert row["diagnosis"] in graph[last[person]]
                changed += row["diagnosis"] != last[person]
            last[person] = row["diagnosis"]
    assert changed > 1_000


def test_changes_follow_the_probabilities(releases, graph):
    pairs = [
        (old[p]["diagnosis"], new[p]["diagnosis"]) for old, new in pairwise(releases) for p in old.keys() & new.keys()
    ]
    mild = [new for old, new in pairs if old == "mild asthma"]
    assert mild.count("mild asthma") / len(mild) == pytest.approx(graph["mild asthma"]["mild asthma"], abs=0.08)


def test_people_age_move_leave_return_and_arrive(releases):
    moved = left = returned = arrived = 0
    seen: set[str] = set()
    for old, new in pairwise(releases):
        seen |= old.keys()
        left += len(old.keys() - new.keys())
        returned += len((new.keys() - old.keys()) & seen)
        arrived += len(new.keys() - seen)
        for person in old.keys() & new.keys():
            assert new[person]["age"] == min(old[person]["age"] + 1, 100)
            assert new[person]["sex"] == old[person]["sex"]
            assert new[person]["name"] == old[person]["name"]
            moved += new[person]["postcode"] != old[person]["postcode"]
    assert min(moved, left, returned, arrived) > 100


def test_no_diagnosis_is_too_frequent_for_m_four(releases):
    for release in releases:
        values = [row["diagnosis"] for row in release.values()]
        assert max(values.count(value) for value in series.VALUES) / len(values) < 0.1


def test_same_seed_same_releases_and_more_releases_change_nothing():
    few, many = series.generate(500, 2, seed=1), series.generate(500, 4, seed=1)
    assert all(a.equals(b) for a, b in zip(few, many, strict=False))
    assert not few[0].equals(series.generate(500, 2, seed=2)[0])


def test_blocks_join_without_losing_anyone():
    tables = series.generate(BLOCK + 100, 2, seed=1)
    assert tables[0].num_rows == BLOCK + 100
    assert all(len(pc.unique(table["patient_id"])) == len(table) for table in tables)


def test_parts_come_in_the_order_of_the_rows():
    parts = [table for number, table in series.batches(BLOCK + 100, 2, seed=1) if number == 1]
    assert pa.concat_tables(parts).combine_chunks().equals(series.generate(BLOCK + 100, 2, seed=1)[0])


def test_tiny_series_work():
    assert len(series.generate(1, 8, seed=0)) == 8


@pytest.mark.parametrize(("n", "releases"), [(0, 1), (1, 0)])
def test_nothing_is_refused(n, releases):
    with pytest.raises(PolicyError):
        series.generate(n, releases)


def test_the_old_have_other_illnesses():
    table = series.generate(20_000, 1, seed=3)[0]
    old = table["age"].to_numpy() >= 60
    recurring = {value for family in series.FAMILIES[len(series.PROGRESSIVE) :] for value in family}
    mild = np.array([value in recurring for value in table["diagnosis"].to_pylist()])
    assert mild[old].mean() < 0.8 * mild[~old].mean()


def test_what_cannot_be_never_is():
    """Nobody is demented at thirty or has worn joints as a child, in no release."""
    least = {
        "dementia": 50,
        "cognitive": 50,
        "angina": 30,
        "infarction": 30,
        "arthrosis": 30,
        "glaucoma": 30,
        "liver": 15,
    }
    for table in series.generate(20_000, 3, seed=3):
        age, values = table["age"].to_numpy(), np.array(table["diagnosis"].to_pylist())
        for word, youngest in least.items():
            assert age[np.char.find(values, word) >= 0].min() >= youngest
