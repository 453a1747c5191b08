"""Records of one person in a table: events in the order of a column, the same fact again, first or last."""

import pyarrow as pa
import pytest

from reticent.errors import DataError
from reticent.policy import Policy
from reticent.publication import table
from reticent.verify import verify

ILLS = ("asthma", "croup", "flu", "gout", "hiv")


def policy(folder, **person):
    (folder / "prior.csv").write_text("value,count\n" + "".join(f"{ill},10\n" for ill in ILLS))
    steps = "".join(f"{a},{b},{0.6 if a == b else 0.1}\n" for a in ILLS for b in ILLS)
    (folder / "kernel.csv").write_text("value,next,probability\n" + steps)
    return Policy.from_dict(
        {
            "version": 1,
            "person": {"column": "id", **person},
            "columns": {"id": "identifier", "visit": "plain", "line": "plain", "ill": "sensitive"},
            "privacy": {"l": 3},
            "prior": {"file": "prior.csv", "kernel": {"file": "kernel.csv"}},
            "table": {"method": "veil"},
        },
        base=folder,
    )


def visits(*rows):
    names = ("id", "visit", "ill")
    columns = {name: [row[at] for row in rows] for at, name in enumerate(names)}
    return pa.table(columns | {"line": list(range(len(rows)))})


def published(rows, rules, seed=1):
    release = table.publish(rows, rules, seed=seed).release
    assert verify(release, rules).holds
    return sorted(release.tables["data"].to_pylist(), key=lambda row: row["line"]), release


def sets(rows):
    return [tuple(row[f"ill_{slot}"] for slot in (1, 2, 3)) for row in rows]


ROWS = (("p", "10", "flu"), ("q", "3", "gout"), ("p", "9", "hiv"), ("p", "9", "hiv"), ("p", "2", "flu"))


def test_a_persons_records_are_events_in_the_order_of_the_column(tmp_path):
    rows, release = published(visits(*ROWS), policy(tmp_path, events="visit"))
    assert [row["event"] for row in rows] == [2, 0, 1, 1, 0]
    assert release.records.published == 5
    # The same parameter set and person: only the order of the events matters, not that of the input.
    again, _ = published(visits(*ROWS[::-1]), policy(tmp_path, events="visit"))
    assert sets(again)[::-1] == sets(rows)


def test_the_same_event_again_is_the_same_fact(tmp_path):
    for seed in range(20):
        rows, _ = published(visits(*ROWS), policy(tmp_path, events="visit"), seed)
        assert sets(rows)[2] == sets(rows)[3]
        assert all(row[2] in cells for row, cells in zip(ROWS, sets(rows), strict=True))


def test_an_event_with_two_values_is_refused(tmp_path):
    with pytest.raises(DataError, match="1 records repeat an event"):
        published(visits(*ROWS, ("q", "3", "flu")), policy(tmp_path, events="visit"))


def test_records_in_no_order_are_refused_with_a_hint(tmp_path):
    with pytest.raises(DataError, match=r"3 records are further records.*events: COLUMN.*records: first"):
        published(visits(*ROWS), policy(tmp_path))
    with pytest.raises(DataError, match="'visit' is empty in 1 records"):
        published(visits(*ROWS, ("q", None, "flu")), policy(tmp_path, events="visit"))


@pytest.mark.parametrize(
    ("person", "lines"),
    [
        ({"records": "first"}, [0, 1]),
        ({"records": "last"}, [1, 4]),
        ({"records": "first", "events": "visit"}, [1, 4]),
        ({"records": "last", "events": "visit"}, [0, 1]),
    ],
)
def test_first_and_last_records(tmp_path, person, lines):
    rows, release = published(visits(*ROWS), policy(tmp_path, **person))
    assert [row["line"] for row in rows] == lines
    assert {row["event"] for row in rows} == {0}
    assert (release.records.published, release.records.suppressed) == (2, 3)


@pytest.mark.parametrize("seed", range(4))
def test_a_person_counts_once_in_the_omission_rate(tmp_path, seed):
    """Noise for one record does not hide forty: the rate would disclose that a person with many visits has a rare value."""
    rules = policy(tmp_path, events="visit")
    visits_of = [("p", str(visit), "a rare one") for visit in range(40)]
    rows = visits(*visits_of, *((f"q{i}", "1", ILLS[i % 5]) for i in range(400)))
    _, release = published(rows, rules, seed=seed)
    (share,) = release.metadata["veil"]["omission_rate"]
    assert share * 401 < 20  # one, and noise of scale 2
