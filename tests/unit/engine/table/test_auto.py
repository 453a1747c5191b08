"""Auto: never worse than its parts, chosen by purpose, within its limits, and reported by figures only."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import reticent
from reticent import _core
from reticent.engine import publisher
from reticent.engine.rng import Rng
from reticent.engine.table import method_selection as contests
from reticent.errors import GuaranteeError, PolicyError, WorkCancelledError
from reticent.policy import Policy
from reticent.verify import verify

PARTS = ("optimal", "local", "mondrian")
TREE = {"tree": {"lung": ["flu", "asthma"], "other": ["gout", "ulcer"]}}
TOWNS = {"tree": {"north": {"sea": ["a", "b"], "hill": ["c", "d"]}, "south": {"vale": ["e", "f"], "moor": ["g", "h"]}}}


def people(rows=500, seed=4):
    rng = np.random.default_rng(seed)
    age, town = (
        rng.integers(20, 80, rows),
        rng.choice(list("abcdefgh"), rows, p=[0.4, 0.2, 0.1, 0.1, 0.08, 0.06, 0.04, 0.02]),
    )
    pay = np.where(age + rng.normal(0, 8, rows) > 50, "high", "low")
    ill = rng.choice(["flu", "asthma", "gout", "ulcer"], rows)
    return pa.table({"age": age, "sex": rng.choice(["f", "m"], rows), "town": town, "pay": pay, "ill": ill})


def rules(privacy, *, pay="plain", **table):
    columns = {
        "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20, 40]}},
        "sex": "quasi",
        "town": {"role": "quasi", "hierarchy": TOWNS},
        "pay": pay,
        "ill": {"role": "sensitive", "hierarchy": TREE},
    }
    return Policy.from_dict({"version": 1, "columns": columns, "privacy": privacy, "table": table})


def release(policy, table, method="auto", token=None):
    engine = publisher(policy, "table", method, rng=Rng.from_seed(1))
    if token is not None:
        engine.use_cancellation(token)
    engine.push(table)
    (made,) = engine.close()
    return made


@pytest.mark.parametrize(
    "privacy", [{"k": 4}, {"k": 4, "suppression": 0.1}, {"k": 3, "l": 3}, {"k": 4, "t": 0.3}], ids=str
)
def test_auto_is_never_worse_than_a_method_alone(privacy):
    policy, table = rules(privacy), people()
    made = release(policy, table)
    assert verify([made], policy).holds
    alone = [release(policy, table, method).metrics["loss"] for method in PARTS]
    alone.append(release(rules(privacy, sets=True), table, "mondrian").metrics["loss"])
    assert made.metrics["loss"] <= min(alone) + 1e-12
    assert made.metrics["loss"] == min(entry["loss"] for entry in made.explain["tried"])


def test_auto_is_the_default_and_reports_every_method():
    assert rules({"k": 4}).table.method == "auto"
    made = release(rules({"k": 4}), people())
    tried = made.explain["tried"]
    assert [entry["method"] for entry in tried] == ["mondrian", "mondrian", "optimal", "local"]
    assert made.method in {entry["method"] for entry in tried}
    assert not any(entry["stopped"] for entry in tried)


def test_a_part_that_cannot_meet_the_policy_leaves_it_to_the_others():
    rng = np.random.default_rng(1)
    table = people().set_column(4, "ill", pa.array(rng.choice(["flu", "gout"], 500, p=[0.97, 0.03])))
    policy = rules({"l": {"entropy": 1.9}, "suppression": 0.98})
    made = release(policy, table)
    assert "mondrian" not in {entry["method"] for entry in made.explain["tried"]}
    assert verify([made], policy).holds
    with pytest.raises(GuaranteeError, match="nothing was published"):
        release(rules({"k": 501}), table)


def test_a_word_in_the_list_of_what_was_tried_is_refuted():
    policy, made = rules({"k": 4}), release(rules({"k": 4}), people())
    for bad in ({"method": "flu"}, {"method": "local", "loss": "gout"}, {"method": "local", "town": 1}):
        planted = replace(made, explain={**made.explain, "tried": [bad]})
        assert not verify([planted], policy).holds


@pytest.mark.parametrize("purpose", ["counts", "model"])
def test_the_purpose_chooses_by_its_own_score(purpose):
    policy = rules({"k": 8}, purpose=purpose, target="pay")
    made = release(policy, people())
    assert verify([made], policy).holds
    tried = made.explain["tried"]
    best = min(tried, key=lambda entry: entry["score"])
    assert best["loss"] == pytest.approx(made.metrics["loss"])
    assert all(0 <= entry["score"] < 1 for entry in tried)
    assert {entry["weighed"] for entry in tried} == ({False, True} if purpose == "model" else {False})


def test_a_target_among_the_quasi_identifiers_is_learned_where_it_is_kept():
    policy = rules({"k": 8}, pay="quasi", purpose="model", target="pay")
    made = release(policy, people())
    assert verify([made], policy).holds
    assert min(entry["score"] for entry in made.explain["tried"]) < 0.35  # age predicts most of it


def test_a_target_that_is_all_there_is_can_be_released():
    """Nothing is left to learn from: all releases score alike, and one of them is made."""
    policy = Policy.from_dict(
        {
            "version": 1,
            "columns": {"pay": {"role": "quasi", "hierarchy": {"intervals": [2, 4]}}},
            "privacy": {"k": 4},
            "table": {"purpose": "model", "target": "pay"},
        }
    )
    table = pa.table({"pay": [str(i % 9) for i in range(90)]})
    made = reticent.anonymize(table, policy, seed=1)
    assert verify([made], policy).holds


def test_a_model_needs_a_target_that_is_published():
    with pytest.raises(PolicyError, match="column to predict"):
        release(rules({"k": 4}, purpose="model", target="nobody"), people())


def test_important_columns_keep_more():
    plain = release(rules({"k": 10}), people()).explain["attributes"]
    policy = rules({"k": 10}, important=["town"])
    assert release(policy, people()).explain["attributes"]["town"]["loss"] <= plain["town"]["loss"]
    with pytest.raises(PolicyError, match="not a quasi-identifier"):
        release(rules({"k": 4}, important=["ill"]), people())


def test_every_part_has_its_share_of_the_time_and_says_that_it_stopped():
    made = release(rules({"k": 4}, time_limit=1e-9), people())
    assert verify([made], rules({"k": 4})).holds
    assert all(entry["stopped"] for entry in made.explain["tried"] if entry["method"] != "optimal")
    assert made.metrics["loss"] > release(rules({"k": 4}), people()).metrics["loss"]


def test_a_cancelled_search_publishes_nothing_and_tries_nothing_more(monkeypatch):
    token, after = _core.table.CancellationToken(), []

    def cancelling(outcome, metrics):
        token.cancel()
        after.append(outcome)
        return 0.0

    monkeypatch.setattr("reticent.engine.table.auto.loss_scorer", lambda _: cancelling)
    with pytest.raises(WorkCancelledError, match="nothing was published"):
        release(rules({"k": 4}), people(), token=token)
    assert len(after) == 1
    with pytest.raises(WorkCancelledError):
        release(rules({"k": 4}), people(), "mondrian", token=token)


def test_the_size_of_a_lattice_is_exact():
    rng = np.random.default_rng(2)
    table = pa.table({f"c{i:02}": rng.integers(0, 100, 60) for i in range(30)})
    columns = {name: {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20, 40]}} for name in table.column_names}
    policy = Policy.from_dict({"version": 1, "columns": columns, "privacy": {"k": 3}, "table": {"time_limit": 0.2}})
    nodes = release(policy, table, "optimal").explain["nodes"]
    assert nodes["lattice"] == 6**30 > 2**64
    assert nodes["checked"] + nodes["not_checked"] == nodes["lattice"]
    assert release(policy, table, "local").explain["nodes"]["lattice"] == 6**30


def test_local_is_never_worse_than_optimal():
    """With a sensitive value of its own in every record, t leaves one class and some to suppress: no group may leave the rest."""
    table = people(300).set_column(4, "ill", pa.array([f"i{i}" for i in range(300)]))
    columns = {"age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20, 40]}}, "sex": "quasi", "town": "quasi"}
    columns |= {"pay": "plain", "ill": "sensitive"}
    rest = {"privacy": {"k": 4, "t": 0.5, "suppression": 0.5}}
    policy = Policy.from_dict({"version": 1, "columns": columns, **rest})
    best = release(policy, table, "optimal").metrics["loss"]
    assert release(policy, table, "local").metrics["loss"] <= best
    assert verify([release(policy, table, "local")], policy).holds


def test_mondrian_publishes_sets_where_they_are_allowed_and_nodes_where_not():
    table = people()
    towns = {"nodes": {"north", "south", "sea", "hill", "vale", "moor", *"abcdefgh", "*"}}
    shown = set(release(rules({"k": 4}), table, "mondrian").tables["data"]["town"].to_pylist())
    assert shown <= towns["nodes"]
    policy = rules({"k": 4}, sets=True)
    made = release(policy, table, "mondrian")
    sets = set(made.tables["data"]["town"].to_pylist()) - towns["nodes"]
    assert sets
    assert all(set(label[1:-1].split(", ")) <= set("abcdefgh") for label in sets)
    assert verify([made], policy).holds
    assert set(release(rules({"k": 4}, sets=False), table, "mondrian").tables["data"]["sex"].to_pylist()) <= set("fm*")


def test_a_column_whose_values_have_commas_is_not_published_by_sets():
    table = people().set_column(1, "sex", pa.array([f"s, {i % 7}" for i in range(500)]))
    policy = rules({"k": 10}, sets=True)
    shown = set(release(policy, table, "mondrian").tables["data"]["sex"].to_pylist())
    assert shown <= {"*", *(f"s, {i}" for i in range(7))}


def test_the_best_entry_wins_and_the_first_of_equals():
    policy = rules({"k": 4})
    encoded = publisher(policy, "table", "auto", rng=Rng.from_seed(1)).encode(people())
    from reticent.engine.table.mondrian import cut

    parts = [contests.SearchMethod(name, cut) for name in ("mondrian", "local", "optimal")]
    scores = iter([2.0, 1.0, 1.0])
    best, entries = contests.select_method(encoded, parts, lambda *_: next(scores))
    assert (best.method.name, len(entries)) == ("local", 3)
    assert math.isinf(contests.loss_scorer(encoded)(None, replace(best.metrics, loss=math.inf)))
