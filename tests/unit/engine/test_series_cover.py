"""What m-Invariance can cover, and what a person alone among counterfeits shows."""

import numpy as np
import pyarrow as pa

from reticent.audit import verify
from reticent.engine import publisher
from reticent.engine.rng import Rng
from reticent.engine.series.grouping import NO_PLACE, Grouping
from reticent.policy import Policy
from reticent.release.wording import claims_in_words

COLUMNS = {"who": "identifier", "age": "quasi", "zip": {"role": "quasi", "hierarchy": {"prefix": 3}}}


def series():
    rules = {"version": 1, "person": "who", "columns": COLUMNS | {"ill": "sensitive"}}
    rules |= {"series": {"method": "m-invariance", "m": 2, "max_risk": 1.0, "max_held": 1.0}}
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
    assert (release.counts.held, release.metrics["counterfeits"]) == (0, 0)


def test_a_value_that_the_group_did_not_show_is_held_back():
    _, engine = series()
    publish(engine, FIRST)
    release = publish(engine, people(("a", 20, "101", "cancer"), ("b", 30, "102", "flu")))
    assert release.explain["held"] == {"no legal place": 1}
    assert NO_PLACE == 2
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
    monkeypatch.setattr(Grouping, "hidden", lambda self, _: self)
    policy, engine = series()
    publish(engine, FIRST)
    verdict = verify([publish(engine, table)], policy)
    assert "no group of one person shows exact quasi-identifiers" in {finding.claim for finding in verdict.refuted}


def test_the_nearest_record_that_differs_most_lends_its_place():
    where = np.array([[0.0, 0.0], [0.0, 0.9], [0.5, 0.5], [0.4, 0.4]], dtype=np.float32)
    grouping = Grouping(
        np.array([0, 2, 5], dtype=np.int64),
        np.array([0, -1, 1, 2, 3], dtype=np.int32),
        np.array([0, 1, 0, 1, 2], dtype=np.int32),
        np.array([0, 0, 1, 2, 3], dtype=np.int32),
        np.zeros(4, dtype=np.uint8),
    )
    assert grouping.hidden(where).donor.tolist() == [0, 3, 1, 2, 3]


def test_a_series_without_a_limit_says_so():
    """`max_risk: 1` is the paper's: that no value is more likely than 1 would be no promise."""
    _, engine = series()
    sentences = claims_in_words(publish(engine, FIRST).guarantee.claims)
    assert "no limit is kept for how likely a value of a person becomes, given all releases" in sentences
