"""Records of a person are events in the order of time, however times are written; by their letters visit 10 came before visit 9."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from reticent import EvolvingTable, Policy, anonymize, verify
from reticent.errors import DataError

VALUES = [f"v{i}" for i in range(9)]
ORDERS = {
    "numbers": ["9", " 10", "11.0"],
    "fractions": ["9.5", "9.75", "10"],
    "days": ["2021-01-09", "2021-01-10", "2021-02-01"],
    "times": ["2021-01-01T23:00:00+00:00", "2021-01-01T22:00:00-05:00", "2021-01-02T05:00:00+00:00"],
    "days and times": ["2021-01-01", "2021-01-01T08:00", "2021-01-02 07:00:00"],
    "types": [dt.date(2021, 1, 9), dt.date(2021, 1, 10), dt.date(2021, 2, 1)],
}
NONE = {
    "names": ["V9", "V10", "V11"],
    "the day in front": ["3.1.2021", "20.1.2021", "1.2.2021"],
    "the month in front": ["12/30/2020", "12/31/2020", "01/01/2021"],
    "a word": ["9", "10", "eleven"],
    "no number": [9.0, float("nan"), 11.0],
    "some with a zone": ["2021-01-01T23:00:00", "2021-01-01T22:00:00-05:00", "2021-01-02T05:00:00"],
}


def policy(base, **more):
    (base / "prior.csv").write_text("value,count\n" + "".join(f"{value},9\n" for value in VALUES))
    (base / "kernel.csv").write_text("value,stay,within\n" + "".join(f"{value},0.9,0.0\n" for value in VALUES))
    columns = {"pid": "identifier", "day": "identifier", "visit": "plain", "ill": "sensitive", "sex": "quasi"} | more
    prior = {"file": "prior.csv", "kernel": {"file": "kernel.csv"}}
    person = {"column": "pid", "events": "day"}
    rules = {"version": 1, "person": person, "columns": columns, "privacy": {"l": 3}, "prior": prior}
    return rules | {"table": {"method": "veil"}, "evolving": {"method": "veil"}}


def visits(days, persons=40):
    """Each of the persons on each of the days, the last first."""
    size, days = len(days) * persons, list(enumerate(days))[::-1]
    cells = {
        "pid": [f"p{i}" for _ in days for i in range(persons)],
        "day": [day for _, day in days for _ in range(persons)],
    }
    cells |= {"visit": [f"n{at}" for at, _ in days for _ in range(persons)], "sex": ["f"] * size}
    return pa.table(cells | {"ill": [VALUES[i % 9] for _ in days for i in range(persons)]})


def in_time(release):
    return {(row["visit"], row["event"]) for row in release.tables["data"].to_pylist()} == {
        ("n0", 0),
        ("n1", 1),
        ("n2", 2),
    }


@pytest.mark.parametrize("how", ORDERS)
def test_events_stand_in_the_order_of_time(tmp_path, how):
    rules = Policy.from_dict(policy(tmp_path), base=tmp_path)
    release = anonymize(visits(ORDERS[how]), rules, store=tmp_path / "t.db")
    assert in_time(release)
    assert verify(release, rules, original=visits(ORDERS[how])).holds
    changing = EvolvingTable(tmp_path / "e.db", rules)
    if how != "fractions":
        changing.insert(visits(ORDERS[how]))
        assert in_time(changing.publish())


@pytest.mark.parametrize("how", NONE)
def test_what_is_no_time_says_no_order(tmp_path, how):
    rules = policy(tmp_path)
    once = rules | {"person": rules["person"] | {"records": "last"}, "table": {"method": "optimal"}}
    for one in (rules, once):
        with pytest.raises(DataError, match=r"'day' .*does not give the order|'day' is empty"):
            anonymize(visits(NONE[how]), Policy.from_dict(one, base=tmp_path), store=tmp_path / "t.db")
    with pytest.raises(DataError, match=r"'day' .*does not give the order|'day' is empty"):
        EvolvingTable(tmp_path / "e.db", Policy.from_dict(rules, base=tmp_path)).insert(visits(NONE[how]))


def test_days_as_the_policy_says_they_are_written(tmp_path):
    days = {"role": "quasi", "hierarchy": {"dates": ["day", "month", "year"], "format": "DD.MM.YYYY"}, "level": 3}
    rules = policy(tmp_path, day=days)
    table = visits(["03.01.2021", "20.01.2021", "01.02.2021"])
    assert in_time(anonymize(table, Policy.from_dict(rules, base=tmp_path), store=tmp_path / "t.db"))
    last = rules | {"person": rules["person"] | {"records": "last"}}
    last = Policy.from_dict(last, base=tmp_path)
    release = anonymize(table, last, store=tmp_path / "l.db")
    assert set(release.tables["data"]["visit"].to_pylist()) == {"n2"}
    assert verify(release, last, original=table).holds


def test_the_same_moment_written_in_two_ways_is_one_event(tmp_path):
    """As two it was a visit at which the true value stayed for certain while false candidates moved."""
    rules = Policy.from_dict(policy(tmp_path), base=tmp_path)
    table = visits(["2021-01-01", "2021-01-01T00:00:00", "2021-01-02"])
    events = anonymize(table, rules, store=tmp_path / "t.db").tables["data"]["event"].to_pylist()
    assert sorted(set(events)) == [0, 1]
