"""A pilot run on a sample of persons: whom it takes, what it finds, and that the release is searched on all records."""

import numpy as np
import pyarrow as pa
import pytest

from reticent import anonymize, verify
from reticent.arrays import distinct
from reticent.engine.table import mondrian, pilot_run
from reticent.engine.table.encoded_table import EncodedTable
from reticent.policy import Policy

COLUMNS = {
    "patient": "identifier",
    "born": "quasi",
    "town": {"role": "quasi", "hierarchy": {"prefix": 2}},
    "day": "quasi",
    "ill": "sensitive",
}


def policy(method="auto", **table):
    privacy = {"k": 3, "l": 3, "suppression": 0.05}
    rules = {"version": 1, "person": "patient", "columns": COLUMNS, "privacy": privacy}
    return Policy.from_dict(rules | {"table": {"method": method} | table})


def visits(persons=1500, seed=1):
    """Persons who come back one to six times, on other days and often with another illness."""
    rng = np.random.default_rng(seed)
    who = rng.permutation(np.repeat(np.arange(persons), rng.integers(1, 7, persons)))
    born, town = rng.integers(1930, 2010, persons), rng.integers(10, 40, persons)
    ill = rng.choice(list("abcdefghij"), len(who), p=np.arange(10, 0, -1) / 55)
    day = rng.integers(0, 360, len(who))
    return pa.table(
        {"patient": who, "born": born[who], "town": town[who].astype(str), "day": day, "ill": ill.astype(str)}
    )


@pytest.fixture
def large(monkeypatch):
    monkeypatch.setattr(pilot_run, "LARGE_TABLE", 1000)
    monkeypatch.setattr(pilot_run, "SAMPLE", 800)


@pytest.fixture
def runs(monkeypatch):
    """Rows and asked persons of every cut."""
    seen = []

    def partition(encoded, *, sets=None, cut=mondrian.partition):
        seen.append((encoded.rows, encoded.linked_k))
        return cut(encoded, sets=sets)

    monkeypatch.setattr(mondrian, "partition", partition)
    return seen


def test_the_sample_has_whole_persons_whatever_the_order_of_rows(large):
    table = visits()
    other = table.take(pa.array(np.random.default_rng(2).permutation(table.num_rows)))
    some = [pilot_run.sample_persons(EncodedTable.from_table(policy(), rows)) for rows in (table, other)]
    assert 500 < some[0].rows < 1200
    cells = [sorted(zip(*(part.codes(name) for name in part.quasi), strict=True)) for part in some]
    assert cells[0] == cells[1]
    whole = EncodedTable.from_table(policy(), table)
    sizes, parts = (set(np.bincount(part.people.persons).tolist()) for part in (whole, some[0]))
    assert parts <= sizes
    assert int(some[0].people.times.sum()) == some[0].rows


def test_the_search_of_all_records_starts_where_the_pilot_run_ended(large, runs):
    """Otherwise wrong starts on all records take most of the time, and a large table loses much more."""
    table = visits()
    release = anonymize(table, policy("mondrian"), seed=1)
    whole = [persons for rows, persons in runs if rows == table.num_rows]
    assert min(whole) > 6  # without a pilot run: 3, then 12
    assert whole[-1] == 1500  # by whole persons
    assert verify(release, policy("mondrian"), original=table).holds


def test_a_search_that_cannot_finish_in_time_is_not_started(large, monkeypatch):
    monkeypatch.setattr(pilot_run, "_seconds_since", lambda *_: 1000.0)
    table = visits()
    tried = anonymize(table, policy(), seed=1).explain["tried"]
    assert len(tried) == 1
    assert not tried[0]["stopped"]


def test_the_release_of_a_large_table_loses_no_more(large, monkeypatch):
    table = visits()
    with_pilot = anonymize(table, policy(), seed=1)
    assert verify(with_pilot, policy(), original=table).holds
    monkeypatch.setattr(pilot_run, "LARGE_TABLE", 10**9)
    assert with_pilot.metrics["loss"] <= 1.05 * anonymize(table, policy(), seed=1).metrics["loss"]


def test_small_tables_are_searched_as_they_are(large):
    assert pilot_run.sample_persons(EncodedTable.from_table(policy(), visits(100))) is None


def test_tables_of_single_records_get_a_pilot_run_too(large):
    names = ("born", "town", "day", "ill")
    once = visits().group_by("patient", use_threads=False).aggregate([(name, "first") for name in names])
    once = once.rename_columns(["patient", *names])
    sample = pilot_run.sample_persons(EncodedTable.from_table(policy(), once))
    assert 700 < sample.rows < 900
    release = anonymize(once, policy(), seed=1)
    assert verify(release, policy(), original=once).holds
    losses = [entry["loss"] for entry in release.explain["tried"]]
    assert losses[0] == min(losses)


@pytest.mark.parametrize("numbers", [[], [3], [3, 1, 3, 2, 1]])
def test_different_numbers_ascending(numbers):
    assert distinct(np.array(numbers, dtype=np.int64)).tolist() == sorted(set(numbers))
