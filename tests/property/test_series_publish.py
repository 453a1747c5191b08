"""Random series: every release is m-unique, legal with a perfect matching, and within the gate, as the verifier computes it."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.engine import publisher
from reticent.engine.rng import Rng
from reticent.engine.series.grouping import Grouping
from reticent.engine.series.m_distinct import MDistinct
from reticent.policy import Policy
from reticent.release import Ledger, LedgerEntry, RecordCounts
from reticent.verify import verify

MODELS = ("m-distinct", "m-distinct*", "m-invariance")


def policy(model, m, *, blocks=8, width=3, max_risk=0.5):
    tree = {f"block {b}": [f"v{b * width + i}" for i in range(width)] for b in range(blocks)}
    return Policy.from_dict(
        {
            "version": 1,
            "person": "who",
            "columns": {
                "who": "identifier",
                "age": "quasi",
                "place": {"role": "quasi", "hierarchy": {"prefix": 2}},
                "ill": {"role": "sensitive", "hierarchy": {"tree": tree}, "updates": {"tree": 1}},
            },
            "series": {"method": model, "m": m, "max_risk": max_risk, "max_withheld": 1.0},
        }
    )


def tables(seed, n, releases, *, blocks=8, width=3, stray=0.0):
    """People come, go and return; values move inside their block, a few (`stray`) anywhere."""
    rng = np.random.default_rng(seed)
    size = blocks * width
    total = n * 2
    value, age = rng.integers(0, size, total), rng.integers(0, 90, total)
    for _ in range(releases):
        here = np.sort(rng.choice(total, n, replace=False))
        moved = rng.random(total) < 0.3
        value = np.where(moved, value // width * width + rng.integers(0, width, total), value)
        value = np.where(rng.random(total) < stray, rng.integers(0, size, total), value)
        age = np.minimum(age + 1, 99)
        yield pa.table(
            {
                "who": [f"p{i}" for i in here],
                "age": age[here],
                "place": [f"{i % 40 + 10}" for i in here],
                "ill": [f"v{v}" for v in value[here]],
            }
        )


def ledger_of(engine):
    ledger = Ledger()
    for number in range(1, engine.releases + 1):
        persons, groups = engine.history.members(number)
        ledger.record(LedgerEntry(number, "", "", "", RecordCounts(), ""), persons, groups)
    return ledger


def run(rules, series, engine=None):
    engine = engine or publisher(rules, "series", rules.series.method, rng=Rng.from_seed(3))
    releases = []
    for table in series:
        engine.push(table)
        releases += engine.cut()
    return engine, releases


@pytest.mark.parametrize("model", MODELS)
@settings(max_examples=12)
@given(seed=st.integers(0, 2**32), n=st.integers(12, 90), m=st.integers(2, 5), stray=st.sampled_from([0.0, 0.1]))
def test_every_release_holds(model, seed, n, m, stray):
    rules = policy(model, m)
    engine, releases = run(rules, tables(seed, n, 4, stray=stray))
    result = verify(releases, rules, ledger=ledger_of(engine))
    assert result.holds, [(f.claim, f.measured, f.where) for f in result.refuted]
    assert not result.unchecked
    for release in releases:
        assert release.records.input == n == release.records.published + release.records.withheld
        fakes = release.tables["counterfeits"].column("count").to_pylist()
        assert release.tables["data"].num_rows == release.records.published + sum(fakes)


@settings(max_examples=12)
@given(seed=st.integers(0, 2**32), n=st.integers(12, 90), m=st.integers(2, 5))
def test_lemma_4_holds_for_equal_sets_without_the_gate(seed, n, m):
    """m-Distinct*: candidate update sets of three values each, all equally likely, so that no risk grows beyond 1/m."""
    _, releases = run(policy("m-distinct*", m, max_risk=1.0), tables(seed, n, 4))
    assert max(release.metrics["max_risk"] for release in releases) <= 1 / m + 1e-9


def test_twenty_releases_hold():
    rules = policy("m-distinct", 4, max_risk=0.25)
    engine, releases = run(rules, tables(5, 400, 20))
    result = verify(releases, rules, ledger=ledger_of(engine))
    assert result.holds, [(f.claim, f.measured) for f in result.refuted]
    assert max(release.metrics["max_risk"] for release in releases) <= 0.25 + 1e-9


@pytest.mark.parametrize("model", MODELS)
def test_restart_between_releases_changes_nothing(model):
    rules = policy(model, 3)
    _, straight = run(rules, tables(9, 60, 4))
    kept = None
    for table, before in zip(tables(9, 60, 4), straight, strict=True):
        fresh = publisher(rules, "series", model, rng=Rng.from_seed(3))
        engine = fresh if kept is None else type(fresh).restore(rules, kept)
        engine.push(table)
        (again,) = engine.cut()
        assert all(again.tables[name].equals(before.tables[name]) for name in before.tables)
        kept = engine.snapshot()


class Ungated(MDistinct):
    """Planted: publishes whatever the risk is."""

    def _enforce_limit(self, people, updates, grouping):
        rows, group, value = grouping.published_records()
        after = self.history.extend(
            people.hashes[rows], people.traits[rows], group, value, (grouping.offsets, grouping.value)
        )
        from reticent.engine.series.update_graph import risk_of

        return grouping, after, risk_of(after, updates, after.last(people.hashes[rows]))


class Forgetful(Ungated):
    """Planted: forms groups anew, as l-diversity would."""

    def _group(self, people, updates, where):
        from reticent.engine.series.history import History

        kept, self.history = self.history, History()
        try:
            return super()._group(people, updates, where)
        finally:
            self.history = kept


class Doubling(Ungated):
    """Planted: shows a value twice in a group."""

    def _group(self, people, updates, where):
        made = super()._group(people, updates, where)
        value = made.value.copy()
        value[1] = value[0]
        return Grouping(made.offsets, made.row, value, made.donor, made.withheld)


@pytest.mark.parametrize(
    ("bug", "claim"),
    [
        (Ungated, "no candidate has a share above max_risk"),
        (Forgetful, "candidates are a legal update instance, one to one"),
        (Doubling, "no group shows a value twice"),
    ],
)
def test_the_verifier_notices_a_planted_bug(bug, claim):
    rules = Policy.from_dict(policy("m-distinct", 4, max_risk=0.26).to_dict() | {})
    rules = Policy.from_dict(
        rules.to_dict()
        | {"series": {"method": "m-distinct", "m": 4, "max_risk": 0.26, "max_withheld": 1.0, "spread": False}}
    )
    engine, releases = run(rules, tables(2, 200, 4), bug(rules, rng=Rng.from_seed(1)))
    result = verify(releases, rules, ledger=ledger_of(engine))
    assert claim in {finding.claim for finding in result.refuted}


def test_without_a_ledger_the_verifier_says_what_it_left_unchecked():
    rules = policy("m-distinct", 3)
    _, releases = run(rules, tables(2, 60, 2))
    result = verify(releases, rules)
    assert result.holds
    assert any("ledger" in claim for claim in result.unchecked)


def test_a_foreign_ledger_is_refuted():
    rules = policy("m-distinct", 3)
    _, releases = run(rules, tables(2, 60, 2))
    other, _ = run(rules, tables(3, 80, 2))
    result = verify(releases, rules, ledger=ledger_of(other))
    assert not result.holds
