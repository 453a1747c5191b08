"""The engines of one table as users meet them: releases that verify, refusals that explain, stories that add up."""

from __future__ import annotations

import warnings

import numpy as np
import pyarrow as pa
import pytest

from reticent.engine import publisher
from reticent.engine.rng import Rng
from reticent.errors import GuaranteeError, PolicyError
from reticent.policy import Policy
from reticent.verify import verify

METHODS = ("auto", "optimal", "local", "mondrian", "supervised")


def people(rows=600, seed=3):
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 80, rows)
    return pa.table(
        {
            "age": age,
            "sex": rng.choice(["f", "m"], rows),
            "zip": [f"{z:03}" for z in rng.integers(100, 140, rows)],
            "ill": rng.choice(["flu", "asthma", "gout", "ulcer"], rows, p=[0.4, 0.3, 0.2, 0.1]),
            "note": np.arange(rows),
        }
    )


def rules(privacy, **table):
    columns = {
        "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20, 40]}},
        "sex": "quasi",
        "zip": {"role": "quasi", "hierarchy": {"prefix": 3}},
        "ill": {"role": "sensitive", "hierarchy": {"tree": {"lung": ["flu", "asthma"], "other": ["gout", "ulcer"]}}},
        "note": "plain",
    }
    table.setdefault("supervision", {"sample": 60})
    return Policy.from_dict({"version": 1, "columns": columns, "privacy": privacy, "table": table})


def release(method, policy, table, seed=1):
    engine = publisher(policy, "table", method, rng=Rng.from_seed(seed))
    engine.push(table)
    (made,) = engine.close()
    return made


PRIVACY = [
    {"k": 4},
    {"k": 4, "suppression": 0.1},
    {"k": 3, "l": 3},
    {"l": {"entropy": 2.5}, "suppression": 0.05},
    {"l": {"recursive": [3, 2]}},
    {"k": 2, "l": {"frequency": 2}, "suppression": 0.2},
    {"k": 4, "t": 0.3},
    {"k": 4, "t": {"ordered": 0.2}, "suppression": 0.1},
    {"k": 4, "t": {"hierarchical": 0.25}},
]


@pytest.mark.parametrize("privacy", PRIVACY, ids=str)
@pytest.mark.parametrize("method", METHODS)
def test_every_release_verifies_and_counts_its_rows(method, privacy):
    policy, table = rules(privacy), people()
    made = release(method, policy, table)
    result = verify([made], policy)
    assert result.holds, [f for f in result.findings if not f.holds]
    data, counts = made.tables["data"], made.records
    assert (counts.input, counts.published) == (600, data.num_rows)
    assert counts.suppressed == 600 - data.num_rows <= int(privacy.get("suppression", 0) * 600)
    assert data.column_names == list(policy.columns)


@pytest.mark.parametrize("method", METHODS)
def test_records_keep_their_sensitive_and_plain_values(method):
    table = people()
    data = release(method, rules({"k": 4}), table).tables["data"]
    ill = dict(zip(table["note"].to_pylist(), table["ill"].to_pylist(), strict=True))
    assert all(ill[n] == v for n, v in zip(data["note"].to_pylist(), data["ill"].to_pylist(), strict=True))
    assert data["note"].to_pylist() != sorted(data["note"].to_pylist()), "the rows must not keep the input's order"


def test_the_story_of_an_optimal_release_adds_up():
    made = release("optimal", rules({"k": 4, "suppression": 0.05}), people())
    said = made.explain
    assert set(said["attributes"]) == {"age", "sex", "zip"}
    assert all(0 <= a["level"] <= a["height"] for a in said["attributes"].values())
    assert said["nodes"]["checked"] + said["nodes"]["pruned"] == said["nodes"]["lattice"] == 6 * 2 * 4
    assert said["optimal"]
    assert said["bound"] == said["score"] == pytest.approx(made.metrics["loss"])
    assert said["suppressed"] == made.records.suppressed


@pytest.mark.parametrize(
    "loss", ["loss", "ncp", "discernibility", "average_class_size", "precision", "height", "entropy"]
)
def test_the_search_minimises_the_metric_the_release_reports(loss):
    policy, table = rules({"k": 4, "suppression": 0.05}, loss=loss), people()
    made = release("optimal", policy, table)
    assert made.explain["score"] == pytest.approx(made.metrics[loss], rel=1e-4)
    other = release("optimal", rules({"k": 4, "suppression": 0.05}, loss="height"), table)
    assert made.metrics[loss] <= other.metrics[loss] * (1 + 1e-4)


def test_weights_protect_an_attribute():
    table = people()
    plain = release("optimal", rules({"k": 4}), table).explain["attributes"]
    heavy = release("optimal", rules({"k": 4}, weights={"age": 1, "sex": 0.01, "zip": 0.01}), table).explain[
        "attributes"
    ]
    assert heavy["age"]["loss"] <= plain["age"]["loss"]


def test_a_time_limit_still_gives_an_answer_with_its_bound():
    made = release("optimal", rules({"k": 4}, time_limit=0.000001), people())
    assert made.explain["bound"] <= made.explain["score"]


@pytest.mark.parametrize("method", METHODS)
def test_a_policy_that_cannot_be_met_is_refused(method):
    with pytest.raises(GuaranteeError, match="nothing was published"):
        release(method, rules({"k": 601}), people())


@pytest.mark.parametrize("method", METHODS)
def test_a_policy_that_asks_for_nothing_is_refused(method):
    with pytest.raises(PolicyError, match="no k, l or t"):
        release(method, rules({}), people())


def test_unknown_weights_are_refused():
    with pytest.raises(PolicyError, match="not a quasi-identifier"):
        release("optimal", rules({"k": 4}, weights={"agee": 1.0}), people())


def test_relaxed_mondrian_makes_more_classes():
    table = people()
    strict = release("mondrian", rules({"k": 4}), table).explain["classes"]
    relaxed = release("mondrian", rules({"k": 4}, cuts="relaxed"), table).explain["classes"]
    assert relaxed > 0
    assert strict > 0


def test_mondrian_publishes_sets_and_intervals_of_what_a_class_holds():
    table = people()
    data = release("mondrian", rules({"k": 4}), table).tables["data"]
    ages = dict(zip(table["note"].to_pylist(), table["age"].to_pylist(), strict=True))
    for note, label in zip(data["note"].to_pylist(), data["age"].to_pylist(), strict=True):
        low, high = (float(x) for x in label.strip("[]").split(",")) if "," in label else (float(label), float(label))
        assert low <= ages[note] <= high


def test_missing_values_are_values_of_their_own():
    table = people(200)
    ages = [None if i % 7 == 0 else a for i, a in enumerate(table["age"].to_pylist())]
    sexes = [None if i % 5 == 0 else s for i, s in enumerate(table["sex"].to_pylist())]
    table = table.set_column(0, "age", pa.array(ages)).set_column(1, "sex", pa.array(sexes))
    for method in ("optimal", "local", "mondrian"):
        policy = rules({"k": 4, "suppression": 0.1})
        assert verify([release(method, policy, table)], policy).holds


def test_the_same_seed_gives_the_same_release():
    table = people()
    for method in METHODS:
        first, second = (release(method, rules({"k": 4}), table, seed=9) for _ in range(2))
        assert first.tables["data"].equals(second.tables["data"])


@pytest.mark.parametrize("method", METHODS)
def test_an_independent_package_agrees(method):
    """pycanon recomputes k, distinct l and t of the published table; nothing is suppressed, so its reference is ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pycanon import anonymity
    frame = release(method, rules({"k": 4, "l": 2, "t": 0.4}), people()).tables["data"].to_pandas().astype(str)
    quasi = ["age", "sex", "zip"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert anonymity.k_anonymity(frame, quasi) >= 4
        assert anonymity.l_diversity(frame, quasi, ["ill"]) >= 2
        assert anonymity.t_closeness(frame, quasi, ["ill"]) <= 0.4 + 1e-9
