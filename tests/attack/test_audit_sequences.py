"""Attacks over several publications: they reduce enc to single candidates."""

from __future__ import annotations

import audit_cases as cases
import evolving_cases
import numpy as np
import pyarrow as pa
import pytest

from reticent.audit.attack import Evidence
from reticent.audit.attack.averaging import averaging
from reticent.audit.attack.intersection import intersection
from reticent.audit.attack.subtraction import subtraction
from reticent.audit.attack.update_graph import update_graph
from reticent.engine import publisher
from reticent.engine.rng import Rng
from reticent.policy import Policy
from reticent.release import Guarantee, Ledger, LedgerEntry, RecordCounts, Release
from reticent.verify.published import read_release


def evidence(releases, policy, **more):
    return Evidence(
        tuple(read_release(r, "") for r in releases), policy, key=b"k", rng=np.random.default_rng(1), **more
    )


def run(method):
    steps = list(evolving_cases.churn(method, n=1200, l=10, domain=40, publications=5, seed=3))
    return evidence([release for release, _, _ in steps], steps[-1][1].policy)


def test_enc_is_reduced_to_single_candidates():
    outcome = subtraction(run("enc"))
    assert outcome.figures["one_candidate"] >= 0.25
    assert outcome.claim is None
    assert outcome.accuracy > 0.4


def test_red_is_beaten_by_intersection_and_averaging():
    found = run("red")
    assert intersection(found).figures["one_candidate"] > 0.3
    assert averaging(found).accuracy > 0.5


def test_a_naive_pair_of_publications_with_a_claim_is_refuted():
    columns = {"id": "identifier", "age": "quasi", "ill": "sensitive"}
    policy = Policy.from_dict({"version": 1, "person": "id", "columns": columns, "evolving": {"l": 2}})
    first = cases.anatomy(
        [(["1", "2"], {"flu": 1, "ulcer": 1}), (["3", "4"], {"flu": 1, "cold": 1})], {"posterior": 0.5}
    )
    second = cases.anatomy(
        [(["1", "3"], {"flu": 1, "cold": 1}), (["2", "4"], {"ulcer": 1, "flu": 1})], {"posterior": 0.5}
    )
    assert intersection(evidence([first, second], policy)).refuted
    assert intersection(evidence([first], policy)) is None
    assert subtraction(evidence([first, second], policy)).sure == 4


UPDATES = {"cold": ["cold", "flu"], "flu": ["flu"], "ulcer": ["ulcer"], "colic": ["colic", "ulcer"]}


def series_policy(folder):
    lines = [f"{value},{following},{1 / len(nexts)}\n" for value, nexts in UPDATES.items() for following in nexts]
    (folder / "updates.csv").write_text("value,next,probability\n" + "".join(lines))
    columns = {
        "id": "identifier",
        "age": "quasi",
        "ill": {"role": "sensitive", "updates": {"file": "updates.csv"}},
    }
    data = {"version": 1, "person": "id", "columns": columns, "series": {"m": 2, "max_risk": 0.5}}
    return Policy.from_dict(data, base=folder)


def series(groups, number):
    rows = [(group, value) for group, offered in enumerate(groups, 1) for value in offered]
    data = pa.table({"group": [g for g, _ in rows], "age": ["*"] * len(rows), "ill": [v for _, v in rows]})
    fakes = pa.table({"group": pa.array([], pa.int64()), "count": pa.array([], pa.int64())})
    tables = {"data": data, "counterfeits": fakes}
    counts = RecordCounts(len(rows), len(rows), 0, 0)
    return Release(
        "series", "m-distinct", "m-distinct", tables, Guarantee({}, "nobody"), counts, "x", explain={"release": number}
    )


def ledger(*groups):
    found = Ledger()
    for number, places in enumerate(groups, 1):
        entry = LedgerEntry(number, "", "x", "m-distinct", RecordCounts(), "")
        found.record(entry, np.arange(len(places), dtype=np.uint64), np.array(places, dtype=np.int64))
    return found


def test_sug_follows_what_illnesses_become(tmp_path):
    """Person 0: {cold, ulcer} then {flu, colic}. Ulcer becomes neither, so it was a cold, and is flu now."""
    policy = series_policy(tmp_path)
    first, second = series([["cold", "ulcer"]], 1), series([["flu", "colic"]], 2)
    broken = update_graph(evidence([first, second], policy, ledger=ledger([1, 1], [1, 1])))
    assert broken.refuted
    assert broken.highest == 1
    again = series([["cold", "ulcer"]], 2)
    safe = update_graph(
        evidence([series([["flu", "ulcer"]], 1), series([["flu", "ulcer"]], 2)], policy, ledger=ledger([1, 1], [1, 1]))
    )
    assert not safe.refuted
    assert safe.highest == pytest.approx(0.5)
    assert update_graph(evidence([first, again], policy)) is None  # without the ledger nobody knows who is who


def engine_series(model, m):
    """Five releases by an engine, values moving inside their branch, with the ledger of who stood where."""
    tree = {f"branch {b}": [f"v{b * 3 + i}" for i in range(3)] for b in range(8)}
    ill = {"role": "sensitive", "hierarchy": {"tree": tree}, "updates": {"tree": 1}}
    columns = {"id": "identifier", "age": "quasi", "ill": ill}
    settings = {"method": model, "m": m, "max_risk": 0.5, "max_withheld": 1.0}
    policy = Policy.from_dict({"version": 1, "person": "id", "columns": columns, "series": settings})
    engine = publisher(policy, "series", model, rng=Rng.from_seed(2))
    rng = np.random.default_rng(2)
    value, releases, known = rng.integers(0, 24, 150), [], Ledger()
    for number in range(1, 6):
        value = np.where(rng.random(150) < 0.3, value // 3 * 3 + rng.integers(0, 3, 150), value)
        here = np.sort(rng.choice(150, 120, replace=False))
        engine.push(pa.table({"id": [f"p{i}" for i in here], "age": here, "ill": [f"v{v}" for v in value[here]]}))
        releases += engine.cut()
        known.record(LedgerEntry(number, "", "", "", RecordCounts(), ""), *engine.history.members(number))
    return evidence(releases, policy, ledger=known)


@pytest.mark.parametrize(("model", "m"), [("m-distinct", 4), ("m-distinct*", 4)])
def test_sug_stays_within_the_limit_of_an_engine_made_series(model, m):
    outcome = update_graph(engine_series(model, m))
    assert outcome.tried > 100
    assert outcome.highest <= outcome.claim + 1e-9
    assert not outcome.refuted
