"""What m-Invariance can cover, and what a person alone among counterfeits shows."""

import numpy as np
import pyarrow as pa

from reticent.engine import publisher
from reticent.engine.rng import Rng
from reticent.engine.series.grouping import Grouping
from reticent.policy import Policy
from reticent.release.wording import claims_in_words
from reticent.verify import verify

COLUMNS = {"who": "identifier", "age": "quasi", "zip": {"role": "quasi", "hierarchy": {"prefix": 3}}}


def series():
    rules = {"version": 1, "person": "who", "columns": COLUMNS | {"ill": "sensitive"}}
    rules |= {"series": {"method": "m-invariance", "m": 2, "max_risk": 1.0, "max_withheld": 1.0}}
    policy = Policy.from_dict(rules)
    return policy, publisher(policy, "series", "m-invariance", rng=Rng.from_seed(1))


def people(*rows):
    names = ("who", "age", "zip", "ill")
    return pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)})


def publish(engine, table):
    engine.push(table)
    return engine.cut()[0]


FIRST = people(("a", 20, "101", "flu"), ("b", 30, "102", "cold"))


def test_a_value_that_the_group_showed_is_covered():
    """Two persons who change places: the group's set stays as it was (section I-A.2)."""
    _, engine = series()
    publish(engine, FIRST)
    release = publish(engine, people(("a", 20, "101", "cold"), ("b", 30, "102", "flu")))
    assert (release.records.withheld, release.metrics["counterfeits"]) == (0, 0)


def test_a_value_that_the_group_did_not_show_is_withheld():
    _, engine = series()
    publish(engine, FIRST)
    release = publish(engine, people(("a", 20, "101", "cancer"), ("b", 30, "102", "flu")))
    assert release.explain["withheld"] == {"no legal place": 1}
    assert sorted(release.tables["data"].column("ill").to_pylist()) == ["cold", "flu"]


def test_a_person_alone_among_counterfeits_shows_no_exact_quasi_identifiers(monkeypatch):
    table = people(("a", 20, "101", "flu"), ("c", 44, "201", "gout"), ("d", 47, "203", "burn"))
    policy, engine = series()
    publish(engine, FIRST)
    release = publish(engine, table)
    assert verify([release], policy).holds
    lone = release.tables["counterfeits"].column("group").to_pylist()
    cells = {(row["age"], row["zip"]) for row in release.tables["data"].to_pylist() if row["group"] in lone}
    assert cells == {("[20, 44]", "*")}
    monkeypatch.setattr(Grouping, "hide_single_persons", lambda self, _: self)
    policy, engine = series()
    publish(engine, FIRST)
    result = verify([publish(engine, table)], policy)
    assert "no group with a single person shows exact quasi-identifiers" in {
        finding.claim for finding in result.refuted
    }


def test_the_nearest_record_that_differs_most_lends_its_place():
    where = np.array([[0.0, 0.0], [0.0, 0.9], [0.5, 0.5], [0.4, 0.4]], dtype=np.float32)
    grouping = Grouping(
        np.array([0, 2, 5], dtype=np.int64),
        np.array([0, -1, 1, 2, 3], dtype=np.int32),
        np.array([0, 1, 0, 1, 2], dtype=np.int32),
        np.array([0, 0, 1, 2, 3], dtype=np.int32),
        np.zeros(4, dtype=np.uint8),
    )
    assert grouping.hide_single_persons(where).donor.tolist() == [0, 3, 1, 2, 3]


def test_a_series_without_a_limit_says_so():
    """`max_risk: 1` is the paper's: that no value is more likely than 1 would be no promise."""
    _, engine = series()
    sentences = claims_in_words(publish(engine, FIRST).guarantee.claims)
    assert "all releases together set no limit on the probability of a value of a person" in sentences


ONE_WAY = """\
flu;flu
flu;pneumonia
pneumonia;pneumonia
dyspepsia;dyspepsia
"""


def test_what_is_left_of_two_groups_shares_one_without_counterfeits(tmp_path):
    """Flu may become pneumonia: {flu, dyspepsia} and {dyspepsia, pneumonia} meet in the second (Algorithm 2, lines 7 to 12)."""
    (tmp_path / "updates.csv").write_text(ONE_WAY)
    ill = {"role": "sensitive", "updates": {"file": "updates.csv"}}
    settings = {"method": "m-distinct", "m": 2, "max_risk": 1.0, "spread": False}
    rules = {"version": 1, "person": "who", "columns": COLUMNS | {"ill": ill}, "series": settings}
    policy = Policy.from_dict(rules, base=tmp_path)
    engine = publisher(policy, "series", "m-distinct", rng=Rng.from_seed(1))
    rows = [("a", 20, "101", "flu"), ("b", 30, "102", "dyspepsia"), ("c", 40, "201", "dyspepsia")]
    first = publish(engine, people(*rows, ("d", 50, "202", "pneumonia")))
    shown = first.tables["data"].to_pylist()
    groups = {}
    for row in shown:
        groups.setdefault(row["group"], set()).add(row["ill"])
    assert sorted(map(sorted, groups.values())) == [["dyspepsia", "flu"], ["dyspepsia", "pneumonia"]]
    # The one of b and c who is not in the group of a; the illness of a has progressed.
    (ages,) = {row["age"] for row in shown if "pneumonia" in groups[row["group"]]}
    stays = rows[1] if ages.startswith("[30") else rows[2]
    second = publish(engine, people(("a", 21, "101", "pneumonia"), stays))
    assert (second.records.published, second.records.withheld, second.metrics["counterfeits"]) == (2, 0, 0)
    assert verify([first, second], policy).holds
