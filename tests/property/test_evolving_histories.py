"""Random histories of insertions, deletions, updates, feeds, restarts: every method keeps its promises at every step."""

from __future__ import annotations

import os
from collections import Counter

import evolving_cases as cases
import evolving_walks as walks
import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from reticent.errors import DataError, GuaranteeError, InternalError
from reticent.release import Ledger
from reticent.verify import verify

L, DOMAIN = 3, 7
WALKS = int(os.environ.get("RETICENT_WALKS", "40"))  # per method; 10,000 take minutes, with --timeout 0
VALUES = st.lists(st.integers(0, DOMAIN - 1), min_size=1, max_size=12)


class History(RuleBasedStateMachine):
    """The table, and a plain dict that says what must be in it."""

    method: str

    def __init__(self):
        super().__init__()
        self.engine = cases.build(self.method, L)
        self.model: dict[int, tuple[int, int]] = {}  # id -> (zip, value)
        self.following = 0
        self.releases, self.ledger = [], Ledger()

    def rows(self, ids):
        return cases.table(ids, [self.model[i][1] for i in ids], zips=[self.model[i][0] for i in ids])

    def pick(self, data, least=1):
        ids = st.lists(st.sampled_from(sorted(self.model)), min_size=least, max_size=8, unique=True)
        return data.draw(ids, label="ids")

    @rule(values=VALUES)
    def insert(self, values):
        ids = range(self.following, self.following + len(values))
        self.following += len(values)
        self.model |= {i: (i, v) for i, v in zip(ids, values, strict=True)}
        assert self.engine.insert(self.rows(ids)).inserted == len(values)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def delete(self, data):
        ids = self.pick(data)
        change = self.engine.delete([str(i) for i in ids])
        assert change.deleted == len(ids)
        for i in ids:
            del self.model[i]

    @precondition(lambda self: self.model)
    @rule(data=st.data(), moves=st.booleans())
    def update(self, data, moves):
        ids = self.pick(data)
        for i in ids:
            zip_code, value = self.model[i]
            self.model[i] = (zip_code + 1000, value) if moves else (zip_code, (value + 1) % DOMAIN)
        assert self.engine.update(self.rows(ids)).updated == len(ids)

    @precondition(lambda self: self.model)
    @rule(data=st.data(), value=st.integers(0, DOMAIN - 1))
    def feed(self, data, value):
        gone, new = self.pick(data)[0], self.following
        self.following += 1
        del self.model[gone]
        self.model[new] = (new, value)
        batch = pa.concat_tables([cases.table([gone], [0]), self.rows([new])])
        self.engine.push(batch.append_column("op", pa.array(["delete", "c"])))

    @rule()
    def refused_changes_change_nothing(self):
        before = self.engine.snapshot()
        with pytest.raises(DataError):
            self.engine.delete(["nobody"])
        with pytest.raises(DataError):
            self.engine.update(cases.table([10**6], [0]))
        feed = pa.concat_tables([cases.table([10**7], [1]), cases.table([10**6], [0])])
        with pytest.raises(DataError):
            self.engine.apply(feed.append_column("op", pa.array(["insert", "delete"])))
        assert len(self.engine.snapshot()) >= len(before)

    @rule()
    def restart(self):
        self.engine = type(self.engine).restore(self.engine.policy, self.engine.snapshot())

    @rule()
    def publish(self):
        try:
            (release,) = self.engine.cut(again=True)
        except GuaranteeError:
            return
        result = verify([release], self.engine.policy)
        assert result.holds, [f.claim for f in result.refuted]
        rows = release.tables["data" if self.method == "veil" else "qit"]
        shown = Counter(rows.column("zip").to_pylist())
        assert shown <= Counter(f"z{z}" for z, _ in self.model.values())
        assert shown.total() + release.records.withheld == len(self.model)
        if self.method == "veil":
            self.check_trajectories(release)
        elif release.records.withheld == 0:
            st_ = release.tables["st"]
            offered = Counter()
            for value, count in zip(st_.column("value").to_pylist(), st_.column("count").to_pylist(), strict=True):
                offered[value] += count
            assert offered == Counter(f"v{v:02d}" for _, v in self.model.values())

    def check_trajectories(self, release):
        """The verifier follows every person; the true value is a candidate, and an event always has the same candidates."""
        self.releases.append(release)
        cases.enter(self.ledger, release, self.engine.members())
        result = verify(self.releases, self.engine.policy, ledger=self.ledger)
        assert result.holds, [f.claim for f in result.refuted]
        true_values = {f"z{z}": f"v{v:02d}" for z, v in self.model.values()}
        for record in release.tables["data"].to_pylist():
            assert true_values[record["zip"]] in [record[f"ill_{slot}"] for slot in range(1, L + 1)]

    @invariant()
    def counts_add_up(self):
        counts = self.engine.counts
        assert counts.input == len(self.model) == counts.published + counts.withheld


@pytest.mark.parametrize("method", cases.METHODS)
def test_every_history_keeps_the_guarantee(method):
    machine = type(f"History_{method}", (History,), {"method": method})
    machine.TestCase.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
    machine.TestCase().runTest()


@pytest.mark.parametrize("method", walks.METHODS)
def test_random_walks_equal_the_reference_and_publish_l_values(method):
    for seed in range(WALKS):
        walks.walk(method, seed)


@pytest.mark.parametrize("method", walks.METHODS)
def test_similar_records_are_distinguished_on_deletion(method):
    # One quasi-identifier of few values: records of equal value differ in it and in their number alone.
    values = [i % 6 for i in range(300)]
    columns = {"id": "identifier", "zip": "quasi", "ill": "sensitive"}
    engine = cases.build(method, L, columns=columns)
    engine.insert(cases.table(range(300), values, zips=[i % 50 for i in range(300)]).select(list(columns)))
    engine.delete([str(i) for i in range(0, 300, 2)])
    (release,) = engine.cut()
    groups = Counter(release.tables["st"].column("group").to_pylist())
    assert min(groups.values()) >= L
    assert release.tables["qit"].num_rows == 150


def test_a_row_that_no_class_holds_stops_the_deletion():
    class Astray:
        def delete(self, rows, *, key):
            raise RuntimeError("a live row is in no class")

    engine = cases.build("enc", L)
    engine.insert(cases.table(range(9), [i % L for i in range(9)]))
    engine._core = Astray()
    with pytest.raises(InternalError, match="no class"):
        engine.delete(["3"])
    assert engine.counts.input == 9
